// A KubeletConfiguration is read as the kubelet reads it, and what is not for us is left alone.

import { describe, expect, test } from "bun:test";

import { type Config, configOf } from "../../src/config/config.ts";
import type { KubeletOnNode } from "../../src/config/kubelet.ts";
import { readWritten } from "../../src/config/load.ts";
import { seconds } from "../../src/model/time.ts";
import { DROP_INS, FILE, kubelets, load, ours, readerOf } from "./loading.ts";

/** As kubeadm writes it, with the kubelet's zero durations. */
const KUBEADM = kubelets(`authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
clusterDNS:
- 10.96.0.10
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}}
  verbosity: 0
runtimeRequestTimeout: 0s
staticPodPath: /etc/kubernetes/manifests
`);

const read = (body: string) => load({ files: { [FILE]: kubelets(body) } });

test("a file written by kubeadm gives the defaults", () => {
  const config = load({ files: { [FILE]: KUBEADM } });
  expect(config.limits).toEqual(load({}).limits);
  expect(config.values.runtimeRequestTimeout).toBe(seconds(120));
  expect(config.values.containerRuntimeEndpoint).toBeNull();
  expect(config.values["logging.verbosity"]).toBe(2);
  expect(config.warnings).toEqual([]);
});

test("a zero duration counts as unset in the kubelet's kind, and as zero in crigc's", () => {
  expect(read("imageMinimumGCAge: 0s").limits.images.minimumAge).toBe(seconds(120));
  expect(read("evictionPressureTransitionPeriod: 0m").limits.pressure.transitionPeriod).toBe(
    seconds(300),
  );
  expect(read("imageMinimumGCAge: 0").limits.images.minimumAge).toBe(seconds(120));
  expect(load({ files: { [FILE]: ours("imageMinimumGCAge: 0s") } }).limits.images.minimumAge).toBe(
    seconds(0),
  );
});

test("values are adopted with file and line", () => {
  const { values, sources } = read(
    "imageGCHighThresholdPercent: 75\nimageGCLowThresholdPercent: 60\nimageMaximumGCAge: 12h",
  );
  expect(values.imageGCLowThresholdPercent).toBe(60);
  expect(sources.imageGCLowThresholdPercent).toEqual({ kind: "file", from: [`${FILE}:4`] });
  expect(sources.imageMaximumGCAge.kind).toBe("file");
});

describe("thresholds of eviction", () => {
  test.each([
    [
      "the defaults if evictionHard is missing",
      "maxPods: 10",
      "nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree",
    ],
    ["none if it is empty", "evictionHard: {}", ""],
    [
      "only the given ones, and those on memory without a warning",
      "evictionHard:\n  memory.available: 200Mi\n  nodefs.available: 5%",
      "nodefs.available",
    ],
    [
      "none for a soft one on memory, which needs no grace period",
      "evictionSoft: {memory.available: 1Gi}\nevictionHard: {}",
      "",
    ],
  ])("are %s", (_, body, signals) => {
    const { limits, warnings } = read(body);
    expect(limits.pressure.thresholds.map(({ signal }) => signal).join(" ")).toBe(signals);
    expect(warnings).toEqual([]);
  });

  test("mergeDefaultEvictionSettings adds the defaults that are missing", () => {
    const config = read(
      "mergeDefaultEvictionSettings: true\nevictionHard:\n  nodefs.available: 3%",
    );
    expect(config.values.evictionHard).toEqual({
      "nodefs.available": "3%",
      "nodefs.inodesFree": "5%",
      "imagefs.available": "15%",
      "imagefs.inodesFree": "5%",
    });
  });
});

describe("a high threshold of 100, which turns off the kubelet's own collection", () => {
  test.each([
    [70, 70, `${FILE}: imageGCHighThresholdPercent is 100`],
    // Above the default of the high one.
    [99, 80, "and imageGCLowThresholdPercent: set the threshold"],
  ])("is not adopted, with a warning, and a low one of %d is %d", (low, expected, warning) => {
    const config = read(`imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: ${low}`);
    expect(config.limits.images).toMatchObject({ highPercent: 85, lowPercent: expected });
    expect(config.sources.imageGCHighThresholdPercent.kind).toBe("default");
    expect(config.warnings).toEqual([expect.stringContaining(warning)]);
  });

  test("is adopted from crigc's own kind", () => {
    expect(
      load({ files: { [FILE]: ours("imageGCHighThresholdPercent: 100") } }).limits.images
        .highPercent,
    ).toBe(100);
  });
});

test("a drop-in of one kind overrides a file of the other", () => {
  const files = {
    [FILE]: KUBEADM,
    [`${DROP_INS}/10-kubelet.conf`]: kubelets("imageGCHighThresholdPercent: 91"),
    [`${DROP_INS}/20-own.yaml`]: ours("maxImages: 7"),
  };
  const config = load({ files });
  expect(config.limits.images.highPercent).toBe(91);
  expect(config.limits.images.maximumImages).toBe(7);
});

const SOURCE = "/var/lib/kubelet/config.yaml";

const kubelet = (settings: Readonly<Record<string, string>>): KubeletOnNode => ({
  settings: Object.entries(settings).map(([field, text]) => ({ field, text, source: SOURCE })),
});

const loadOn = (found: KubeletOnNode | null, body = ""): Config =>
  configOf(readWritten({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }) }), found);

const hard = ({ values, sources }: Config) => ({
  ...sources.evictionHard,
  value: values.evictionHard,
});

describe("our default eviction thresholds", () => {
  test("are the kubelet's defaults if there is no kubelet", () => {
    expect(hard(loadOn(null))).toMatchObject({
      kind: "default",
      value: { "imagefs.available": "15%" },
    });
  });

  test("are five points above a kubelet's defaults, and say so", () => {
    expect(hard(loadOn(kubelet({})))).toEqual({
      value: {
        "nodefs.available": "15%",
        "nodefs.inodesFree": "10%",
        "imagefs.available": "20%",
        "imagefs.inodesFree": "10%",
      },
      kind: "kubelet",
      from: ["above the kubelet's (its defaults)"],
    });
  });

  test("are above the kubelet's own, hard and soft", () => {
    const config = loadOn(
      kubelet({
        evictionHard: "imagefs.available<10%,nodefs.available<2%",
        evictionSoft: "imagefs.available<25%",
        evictionSoftGracePeriod: "imagefs.available=1m",
      }),
    );
    expect(hard(config)).toMatchObject({
      value: { "imagefs.available": "30%", "nodefs.available": "7%" },
      from: [`above the kubelet's (${SOURCE})`],
    });
    const images = config.limits.pressure.thresholds.find(
      (it) => it.signal === "imagefs.available",
    );
    expect(images?.amount).toEqual({ kind: "fraction", value: Math.fround(0.3) });
  });

  test.each([
    ["imagefs.available<4Gi", { "imagefs.available": "5Gi" }],
    ["imagefs.available<80Gi", { "imagefs.available": "100Gi" }],
    ["imagefs.available<98%", { "imagefs.available": "99%" }],
    // Signals that the kubelet does not watch keep our defaults.
    ["memory.available<100Mi", { "imagefs.available": "15%", "nodefs.available": "10%" }],
    // Invalid settings count as its defaults.
    ["imagefs.available<lots", { "imagefs.available": "20%" }],
  ])("over a kubelet's %s are %o", (text, above) => {
    expect(hard(loadOn(kubelet({ evictionHard: text }))).value).toMatchObject(above);
  });

  test("are overridden by the operator's, and by the kubelet's own with compat kubelet", () => {
    const body = "evictionHard: {imagefs.available: 2%}\n";
    expect(hard(loadOn(kubelet({}), body))).toMatchObject({
      kind: "file",
      value: { "imagefs.available": "2%" },
    });
    expect(hard(loadOn(kubelet({}), "compat: kubelet\n"))).toMatchObject({
      kind: "default",
      value: { "imagefs.available": "15%" },
    });
  });
});
