// Rules between values, and the ranges of single ones; numbers are those of the kubelet's acceptance vectors.

import { describe, expect, test } from "bun:test";

import { seconds } from "../../src/model/time.ts";
import { faultsOf, FILE, load, ours, type Sources } from "./loading.ts";

const flags = (...given: readonly (readonly [string, string])[]): Sources => ({ flags: given });

describe("vector 51: what the kubelet's validation refuses, named by field and flag", () => {
  test.each([
    ["--image-gc-high-threshold=101", "imageGCHighThresholdPercent"],
    ["--image-gc-low-threshold=-1", "imageGCLowThresholdPercent"],
    ["--image-gc-low-threshold=0 --image-gc-high-threshold=0", "imageGCLowThresholdPercent"],
    ["--image-gc-low-threshold=1 --image-gc-high-threshold=0", "imageGCLowThresholdPercent"],
    ["--image-maximum-gc-age=-1ns", "imageMaximumGCAge"],
    ["--image-maximum-gc-age=1ns --minimum-image-ttl-duration=2ns", "imageMaximumGCAge"],
    ["--minimum-image-ttl-duration=-1ns", "imageMinimumGCAge"],
    ["--pod-logs-dir=", "podLogsDir"],
  ])("%s", (line, field) => {
    const given = line.split(" ").map((it) => it.slice(2).split("=") as [string, string]);
    const faults = faultsOf({ flags: given });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(field);
    expect(faults[0]).toContain(`--${given[0]?.[0]}`);
  });

  test("the same values from a file are named by field and flag too", () => {
    expect(
      faultsOf({
        files: { [FILE]: ours("imageGCHighThresholdPercent: 101\nimageMinimumGCAge: -1ns") },
      }),
    ).toEqual([
      `${FILE}:3: imageGCHighThresholdPercent: 101 is not a whole number from 0 to 100 (flag --image-gc-high-threshold)`,
      `${FILE}:4: imageMinimumGCAge: "-1ns" is not a duration of 0s or more, such as 30s, 5m, 1h30m or 7d (flag --minimum-image-ttl-duration)`,
    ]);
  });
});

describe("values that contradict each other", () => {
  test("a low threshold above the high one is refused with both values and places", () => {
    expect(
      faultsOf({
        files: { [FILE]: ours("imageGCLowThresholdPercent: 90") },
        env: { CRIGC_IMAGE_GC_HIGH_THRESHOLD: "88" },
      }),
    ).toEqual([
      `${FILE}:3: imageGCLowThresholdPercent is 90 and must be below imageGCHighThresholdPercent, which is 88 (CRIGC_IMAGE_GC_HIGH_THRESHOLD)`,
    ]);
  });

  test("a high threshold below the default low one is at fault", () => {
    expect(faultsOf(flags(["image-gc-high-threshold", "70"]))).toEqual([
      "--image-gc-high-threshold: imageGCLowThresholdPercent is 80 by default and must be below 70",
    ]);
  });

  test("a maximum age equal to the minimum is refused, a larger one accepted", () => {
    expect(faultsOf(flags(["image-maximum-gc-age", "2m"]))).toHaveLength(1);
    expect(faultsOf(flags(["image-maximum-gc-age", "2m1ns"]))).toEqual([]);
    expect(faultsOf(flags(["minimum-image-ttl-duration", "1ns"]))).toEqual([]);
  });

  test.each<[string, Sources]>([
    ["a low inode threshold without a high one", flags(["image-gc-inode-low-threshold", "80"])],
    [
      "inode thresholds that are equal",
      flags(["image-gc-inode-low-threshold", "80"], ["image-gc-inode-high-threshold", "80"]),
    ],
    ["a high inode threshold of 0", flags(["image-gc-inode-high-threshold", "0"])],
    ["a client certificate without its key", flags(["kubelet-client-cert", "/c.pem"])],
    ["a client key without its certificate", flags(["kubelet-client-key", "/k.pem"])],
    ["a soft threshold without a grace period", flags(["eviction-soft", "nodefs.available<10%"])],
  ])("%s is refused", (_, sources) => {
    expect(faultsOf(sources)).toHaveLength(1);
  });

  test("a high inode threshold alone leaves the low one to policy", () => {
    const { images } = load(flags(["image-gc-inode-high-threshold", "90"])).limits;
    expect([images.inodeHighPercent, images.inodeLowPercent]).toEqual([90, null]);
  });
});

describe("compat kubelet", () => {
  test("implies reported, collect, collect-foreign and no boot grace", () => {
    const config = load(flags(["compat", "kubelet"]));
    expect(config.limits).toMatchObject({
      images: { accounting: "reported", whenFutile: "collect" },
      memory: { bootGrace: seconds(0) },
      containers: { collectForeign: true },
    });
    expect(config.sources.whenFutile).toEqual({ kind: "flag", from: ["--compat"] });
  });

  test.each([
    ["space-accounting", "measured", "reported"],
    ["when-futile", "keep", "collect"],
    ["boot-grace", "1m", "0s"],
    ["collect-foreign", "false", "true"],
    ["max-images", "5", "off"],
    ["image-order", "frequent", "recent"],
    ["image-store-budget", "1Gi", "off"],
    ["image-gc-inode-high-threshold", "90", "off"],
    ["keep-loaded", null, "true"],
    ["keep-per-repository", null, "3"],
  ])("--%s contradicts it as %s, and agrees with it as %s", (flag, contradicting, agreeing) => {
    const faults = (text: string) => faultsOf(flags(["compat", "kubelet"], [flag, text]));
    if (contradicting !== null)
      expect(faults(contradicting)).toEqual([expect.stringContaining(`--${flag}: `)]);
    expect(faults(agreeing)).toEqual([]);
  });

  test("a file that contradicts the flag is named by its line", () => {
    expect(
      faultsOf({ files: { [FILE]: ours("whenFutile: keep") }, flags: [["compat", "kubelet"]] }),
    ).toEqual([
      `${FILE}:3: whenFutile is keep and contradicts --compat kubelet; leave one of them out`,
    ]);
  });
});

test("an unknown variable gives a warning with a suggestion", () => {
  expect(load({ env: { CRIGC_MAX_IMAGE: "5" } }).warnings).toEqual([
    "unknown environment variable CRIGC_MAX_IMAGE; did you mean CRIGC_MAX_IMAGES?",
  ]);
});

test("all errors are reported at once", () => {
  const faults = faultsOf({
    files: { [FILE]: ours("maxImages: 0\nbootGrace: soon") },
    env: { CRIGC_DRY_RUN: "maybe" },
    flags: [["eviction-hard", "nodefs.available<150%"]],
  });
  expect(faults).toEqual([
    `${FILE}:3: maxImages: 0 is not a whole number of 1 or more, or off (flag --max-images)`,
    `${FILE}:4: bootGrace: "soon" is not a duration of 0s or more, such as 30s, 5m, 1h30m or 7d (flag --boot-grace)`,
    'CRIGC_DRY_RUN: "maybe" is not true or false (dryRun, flag --dry-run)',
    '--eviction-hard: invalid threshold "150%" for nodefs.available: use a quantity above 0 such as 10Gi, or a percentage from 0% to 100% (evictionHard)',
  ]);
});
