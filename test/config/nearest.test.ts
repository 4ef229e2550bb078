import { expect, test } from "bun:test";

import { nearest } from "../../src/config/source/nearest.ts";

test.each([
  ["verbositiy", "verbosity"],
  ["maxImage", "maxImages"],
  ["imgaes", "images"],
  ["maximages", "maxImages"],
])("%s is near to %s", (text, name) => {
  expect(nearest(text, ["dryRun", "maxImages", "images", "verbosity"])).toBe(name);
});

test.each(["x", "somethingElse", "", "m".repeat(1_000_000)])("%.20s is near to nothing", (text) => {
  expect(nearest(text, ["dryRun", "maxImages", "verbosity"])).toBeNull();
});
