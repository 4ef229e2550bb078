// A KubeletConfiguration is read as the kubelet reads it, and what is not for us is left alone.

import { expect, test } from "bun:test";

import { type Config, configOf } from "../../src/config/config.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import type { KubeletOnNode } from "../../src/config/kubelet.ts";
import { readWritten } from "../../src/config/load.ts";
import { printed } from "../../src/config/values.ts";
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
    "mergeDefaultEvictionSettings: true\nevictionHard:\n  nodefs.available: 3%",
    // A high threshold of 100 turns off the kubelet's own collection; the low one may be above our high one.
    "imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: 70",
    "imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: 99",
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
    [`${DROP_INS}/20-own.yaml`]: ours("maxImages: 7"),
  };
  const config = load({ files });
  expect(config.limits.images.highPercent).toBe(91);
  expect(config.limits.images.maxImages).toBe(7);
});

const SOURCE = "/var/lib/kubelet/config.yaml";

const kubelet = (settings: Readonly<Record<string, string>>): KubeletOnNode => ({
  settings: Object.entries(settings).map(([field, text]) => ({ field, text, source: SOURCE })),
});

const loadOn = (found: KubeletOnNode | null, body = ""): Config =>
  configOf(readWritten({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }) }), found);

test("our default eviction thresholds are above those of the node's kubelet", () => {
  const nodes: readonly (readonly [string, KubeletOnNode | null, string?])[] = [
    ["no kubelet", null],
    ["its defaults", kubelet({})],
    [
      "its own, hard and soft",
      kubelet({
        evictionHard: "imagefs.available<10%,nodefs.available<2%",
        evictionSoft: "imagefs.available<25%",
        evictionSoftGracePeriod: "imagefs.available=1m",
      }),
    ],
    ...["<4Gi", "<80Gi", "<98%", "<lots"].map(
      (amount) => [amount, kubelet({ evictionHard: `imagefs.available${amount}` })] as const,
    ),
    // Signals that the kubelet does not watch keep our defaults.
    ["memory alone", kubelet({ evictionHard: "memory.available<100Mi" })],
    ["no thresholds", kubelet({ evictionHard: "" })],
    ["its defaults, and an operator's", kubelet({}), "evictionHard: {imagefs.available: 2%}\n"],
    ["its defaults, with compat kubelet", kubelet({}), "compat: kubelet\n"],
  ];
  const found = nodes.map(([name, on, body]) => {
    const { values, sources, limits } = loadOn(on, body);
    const { kind, from } = sources.evictionHard;
    const images = limits.pressure.thresholds.find((it) => it.signal === "imagefs.available");
    const amount = String(images?.amount.value);
    return `${name}: ${kind} ${from.join()}\n  ${JSON.stringify(values.evictionHard)} ${amount}`;
  });
  expect(found.join("\n")).toMatchSnapshot();
});
