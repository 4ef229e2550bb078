import { expect, test } from "bun:test";

import { isVersionWithin } from "../../src/policy/version.ts";

test.each([
  ["9.11.11", false],
  ["10.9.11", false],
  ["10.10.9", false],
  ["10.10.10", true],
  ["v10.10.11-rc.1", true],
  ["10.12.0", true],
  ["10.20.9", true],
  ["10.20.10", false],
  ["10.21.0", false],
  ["11.0.0", false],
  ["build-10.12.0", false],
  ["10.12", false],
])("%s is within 10.10.10 and 10.20.10: %p", (version, expected) => {
  expect(isVersionWithin(version, { from: [10, 10, 10], until: [10, 20, 10] })).toBe(expected);
});
