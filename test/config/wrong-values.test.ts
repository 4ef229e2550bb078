// A wrong type in any field of a file, and a bad text for any flag, is refused with what was expected and where it stands.

import { describe, expect, test } from "bun:test";

import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import type { FieldType } from "../../src/config/types.ts";
import { faultsOf, FILE, issuesOf, ours } from "./loading.ts";

const inFiles = fieldNames.filter((name) => fieldOf(name).outsideFiles !== true);

/** As JSON, whatever no type takes first. */
function wrongFor(type: FieldType): readonly string[] {
  const never = ["[[1]]", '{"a":{"b":1}}', "1.5"];
  switch (type.kind) {
    case "integer":
      return [...never, '"85"', "true", "1e12", '"many"'];
    case "duration":
      return [...never, "5", "true", '"30mins"', '"-1s"', '""', '["2m"]'];
    case "size":
      return [...never, "0", "-5", "true", '"20 GB"', '"lots"'];
    case "boolean":
      return [...never, "1", '"true"', '"yes"'];
    case "choice":
      return [...never, "true", '"other"', '""'];
    case "endpoint":
      return [
        ...never,
        "true",
        '"tcp://127.0.0.1:1"',
        '"run/a.sock"',
        '"unix://run/a.sock"',
        // 109 bytes, more than the kernel takes.
        `"/${"ü".repeat(54)}"`,
      ];
    case "url":
      return [...never, "true", '"127.0.0.1:10250"', '"ftp://a"', '"https://a/b"', '""'];
    case "address":
      return [
        ...never,
        "9419",
        "true",
        '"127.0.0.1"',
        '"127.0.0.1:0"',
        '"127.0.0.1:99999"',
        '"http://a:1"',
      ];
    case "path":
      return [...never, "true", '"a/b"', '"/a/../b"', '"/a\\u0000b"', '"/a\\nb"'];
    case "list":
      return [...never, "true", "[1]", '["a", null]'];
    case "statements":
      return [
        ...never,
        "true",
        '"nodefs.available<10%"',
        '{"nodefs.available": 10}',
        '{"nodefs.available": ""}',
        '{"disk.available": "10%"}',
        '["nodefs.available"]',
        "[]",
      ];
  }
}

describe.each(inFiles.map((name) => [name] as const))("%s", (name) => {
  test.each(wrongFor(fieldOf(name).type).map((json) => [json] as const))(
    "%s is refused",
    (json) => {
      const [outer, inner] = name.split(".");
      const body = inner === undefined ? `${outer}: ${json}` : `${outer}:\n  ${inner}: ${json}`;
      const issues = issuesOf({ files: { [FILE]: ours(body) } });
      expect(issues).toHaveLength(1);
      const [issue] = issues;
      expect(issue?.source).toBe(`${FILE}:${inner === undefined ? 3 : 4}`);
      expect(issue?.message).toContain(`${name}: `);
      expect(issue?.message).toMatch(/ is not (a|an|one|true)|: use |expected/);
      expect(issue?.message).not.toContain("\u0000");
    },
  );
});

describe("texts of flags", () => {
  test.each([
    ["image-gc-high-threshold", "0x10"],
    ["maximum-dead-containers", "9".repeat(400)],
    ["image-gc-period", "0"],
    ["pressure-period", "1ms"],
    ["v", "6"],
    ["pod-source", "kubelet"],
    ["state-dir", "relative"],
    ["image-store-budget", "-1Gi"],
    ["eviction-hard", "imagefs.available<"],
    ["eviction-hard", "imagefs.available"],
    ["eviction-soft-grace-period", "imagefs.available=30mins"],
    ["eviction-minimum-reclaim", "imagefs.available=0%"],
  ])("--%s=%s is refused", (flag, text) => {
    const issues = issuesOf({ flags: [[flag, text]] });
    expect(issues).toHaveLength(1);
    expect(issues[0]?.source).toBe(`--${flag}`);
    expect(issues[0]?.text).toBe(text);
  });

  test("a long text is shortened in the message", () => {
    const [fault = ""] = faultsOf({ flags: [["state-dir", "x".repeat(10_000)]] });
    expect(fault.length).toBeLessThan(200);
  });
});

describe("fields that do not exist", () => {
  test.each([
    ["imageGCHighTresholdPercent: 85", "imageGCHighThresholdPercent"],
    ["imageMinGCAge: 2m", "imageMinimumGCAge"],
    ["evictionhard: {}", "evictionHard"],
    ["mxaImages: 1", "maxImages"],
    ["logging: {verbositiy: 3}", "logging.verbosity"],
  ])("%s: did you mean %s?", (body, meant) => {
    expect(faultsOf({ files: { [FILE]: ours(body) } })).toEqual([
      expect.stringMatching(new RegExp(`unknown field .*did you mean ${meant}\\?$`)),
    ]);
  });

  test.each([
    [
      "logging: 5",
      "logging: 5 is not a map; expected one of logging.format, logging.verbosity in it",
    ],
    ["logging: [a]", "logging: a list is not a map; expected one of"],
  ])("%s, which is a map, is refused as a value", (body, words) => {
    expect(faultsOf({ files: { [FILE]: ours(body) } })).toEqual([
      expect.stringContaining(`${FILE}:3: ${words}`),
    ]);
  });

  test.each(["swapBehavior", "m".repeat(1_000)])(
    "%.20s, without a similar name, is refused without a suggestion",
    (name) => {
      expect(faultsOf({ files: { [FILE]: ours(`${name}: x`) } })).toEqual([
        expect.stringMatching(/unknown field "\w+…?"; crigc config lists the fields$/),
      ]);
    },
  );

  test.each(["config: /a", "configDir: /a"])("%s is refused in a file", (body) => {
    expect(faultsOf({ files: { [FILE]: ours(body) } })).toEqual([
      expect.stringContaining("cannot be set in a configuration file"),
    ]);
  });

  test.each([
    "__proto__: 5",
    "constructor: 5",
    "toString: {a: 1}",
    // An entry of a map, or a group's field, that lost its place.
    'imagefs.available: "20%"',
    "keep.patterns: [x]",
  ])("%s is an unknown field", (body) => {
    expect(faultsOf({ files: { [FILE]: ours(body) } })).toEqual([
      expect.stringContaining("unknown field"),
    ]);
  });
});
