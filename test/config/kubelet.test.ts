// A KubeletConfiguration is read as the kubelet reads it, and what is not for us is left alone.

import { describe, expect, test } from "bun:test";

import { type Config, configOf } from "../../src/config/config.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { readWritten } from "../../src/config/load.ts";
import { printed } from "../../src/config/types.ts";
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

/** What a file gives: thresholds, what else is not the default, and the warnings. */
function given(text: string): string {
  const [{ limits, values, sources, warnings }, { values: defaults }] = [
    load({ files: { [FILE]: text } }),
    load({}),
  ];
  const changed = fieldNames
    .filter((name) => name !== "evictionHard" && !Bun.deepEquals(values[name], defaults[name]))
    .map((name) => {
      const value = JSON.stringify(printed(fieldOf(name).type, values[name]));
      return `${name}: ${value} from ${sources[name].from.join()}`;
    });
  const signals = limits.pressure.thresholds.map(({ signal }) => signal).join(" ");
  const hard = JSON.stringify(values.evictionHard);
  return [`${signals}; evictionHard: ${hard}`, ...changed, ...warnings].join("\n  ");
}

test("a KubeletConfiguration gives what the kubelet reads in it, with file and line", () => {
  const bodies = [
    "",
    // A zero duration counts as unset in the kubelet's kind.
    "imageMinimumGCAge: 0s",
    "imageMinimumGCAge: 0",
    "evictionPressureTransitionPeriod: 0m",
    "imageGCHighThresholdPercent: 75\nimageGCLowThresholdPercent: 60\nimageMaximumGCAge: 12h",
    // Thresholds of eviction: the defaults, none, those given, and none on memory.
    "maxPods: 10",
    "evictionHard: {}",
    "evictionHard:\n  memory.available: 200Mi\n  nodefs.available: 5%",
    "evictionSoft: {memory.available: 1Gi}\nevictionHard: {}",
    // Off in the kubelet, as it should be beside crigc, is off here too.
    "imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: 70",
  ].map((body) => `${body}\n  ${given(kubelets(body))}`);
  const own = ["imageMinimumGCAge: 0s", "imageGCHighThresholdPercent: 100"].map(
    (body) => `${body}, in crigc's kind\n  ${given(ours(body))}`,
  );
  expect([...bodies, ...own].join("\n")).toMatchSnapshot();
});

test("a drop-in of one kind overrides a file of the other", () => {
  const files = {
    [FILE]: KUBEADM,
    [`${DROP_INS}/10-kubelet.conf`]: kubelets("imageGCHighThresholdPercent: 91"),
    [`${DROP_INS}/20-own.yaml`]: ours("keepPerRepository: 7"),
  };
  const config = load({ files });
  expect(config.limits.images.highPercent).toBe(91);
  expect(config.limits.images.keepPerRepository).toBe(7);
});

describe("beside a kubelet", () => {
  const beside = (body = ""): Config =>
    configOf(
      readWritten({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }) }),
      () => true,
    );
  const shownOf = ({ values, sources }: Config): string =>
    (["imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "evictionHard"] as const)
      .map((name) => {
        const { kind, from } = sources[name];
        return `${JSON.stringify(values[name])} ${[kind, ...from].join(" ")}`;
      })
      .join("; ");

  test("default thresholds are reached before the kubelet's, and set ones stay", () => {
    const hard =
      '{"nodefs.available":"15%","nodefs.inodesFree":"10%","imagefs.available":"20%","imagefs.inodesFree":"10%"}';
    const kind = "kubelet beside a kubelet";
    expect(shownOf(beside())).toBe(`75 ${kind}; 70 ${kind}; ${hard} ${kind}`);
    const set = "imageGCHighThresholdPercent: 90\nevictionHard: {imagefs.available: 2%}\n";
    expect(shownOf(beside(set))).toBe(
      `90 file ${FILE}:3; 70 ${kind}; {"imagefs.available":"2%"} file ${FILE}:4`,
    );
  });

  test("with --compat kubelet the defaults are the kubelet's", () => {
    expect(shownOf(beside("compat: kubelet\n"))).toBe(shownOf(load({})));
  });

  test("a set low threshold must be below the default high one", () => {
    expect(() => beside("imageGCLowThresholdPercent: 78\n")).toThrow(
      "must be below imageGCHighThresholdPercent, which is 75 by default",
    );
  });
});
