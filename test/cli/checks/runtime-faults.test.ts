// Versions of runtimes that doctor warns of.

import { expect, test } from "bun:test";

import { runtimeCheck } from "../../../src/cli/checks/runtime-faults.ts";

test.each([
  ["containerd", "1.7.24", "ok"],
  ["containerd", "2.0.0", "warning"],
  ["containerd", "2.0.0-rc.6", "warning"],
  ["containerd", "v2.0.4", "warning"],
  ["containerd", "2.0.4+unknown", "warning"],
  ["containerd", "2.0.5", "ok"],
  ["containerd", "2.0.10", "ok"],
  ["containerd", "2.1.0", "ok"],
  ["containerd", "12.0.1", "ok"],
  ["containerd", "unknown", "ok"],
  ["cri-o", "2.0.1", "ok"],
])("%s %s: %s", (name, version, result) => {
  expect(runtimeCheck({ name, version }).result).toBe(result as "ok");
});

test("the warning says what to update to", () => {
  expect(runtimeCheck({ name: "containerd", version: "2.0.1" }).advice).toContain("2.0.5");
});
