import { expect, test } from "bun:test";

import { isVersionWithin, mountsImages } from "../../src/cri/runtimes.ts";

test.each([
  ["9.11.11", false],
  ["10.10.9", false],
  ["10.10.10", true],
  ["v10.10.11-rc.1", true],
  ["10.20.10", false],
  ["10.21.0", false],
  ["build-10.12.0", false],
  ["10.12", true],
  ["10.12~ds1", true],
])("%s is within 10.10.10 and 10.20.10: %p", (version, expected) => {
  expect(isVersionWithin(version, { from: [10, 10, 10], until: [10, 20, 10] })).toBe(expected);
});

test.each([
  ["containerd", "1.7.24", false],
  ["containerd", "2.0.5-k3s1", false],
  ["containerd", "2.1.0", true],
  ["containerd", "v2.1.0-rc.0", true],
  ["containerd", "3.0.0", true],
  ["containerd", "build-2.0.5", true],
  ["CRI-O", "1.30.9", false],
  ["cri-o", "1.31.0", true],
  ["containerd", "unknown", true],
  ["docker", "28.0.0", true],
])("whether %s %s mounts images as volumes: %p", (name, version, expected) => {
  expect(mountsImages({ name, version })).toBe(expected);
});
