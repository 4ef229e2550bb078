import { describe, expect, test } from "bun:test";

import { imageVolumesSupported } from "../../../src/policy/image/image-volumes.ts";

describe("which runtimes mount images", () => {
  const rows: readonly [string, string, boolean][] = [
    ["containerd", "1.6.36", false],
    ["containerd", "1.7.24", false],
    ["containerd", "2.0.5-k3s1", false],
    ["containerd", "2.1.0", true],
    ["containerd", "v2.1.0-rc.0", true],
    ["containerd", "2.10.0", true],
    ["containerd", "3.0.0", true],
    ["containerd", "2.0", false],
    ["containerd", "build-2.0.5", true],
    ["cri-o", "1.30.9", false],
    ["cri-o", "1.31.0", true],
    ["cri-o", "2.0.0", true],
    ["containerd", "unknown", true],
    ["docker", "28.0.0", true],
    ["something", "0.1.0", true],
  ];
  for (const [name, version, expected] of rows) {
    test(`${name} ${version} ${expected ? "does" : "does not"}`, () => {
      expect(imageVolumesSupported({ name, version })).toBe(expected);
    });
  }
});
