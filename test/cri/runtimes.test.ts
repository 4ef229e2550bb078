import { expect, test } from "bun:test";

import { faultsOf, mountsImages } from "../../src/cri/runtimes.ts";

test.each([
  ["1.7.24", false],
  ["2.0.0", true],
  ["v2.0.0-rc.1", true],
  ["2.0.4", true],
  ["2.0.5", false],
  ["2.1.0", false],
  ["build-2.0.1", false],
  ["2.0", true],
  ["2.0~ds1", true],
])("containerd %s frees space late: %p", (version, expected) => {
  expect(faultsOf({ name: "containerd", version })).toHaveLength(expected ? 1 : 0);
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
