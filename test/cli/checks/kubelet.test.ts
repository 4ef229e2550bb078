// Conflicts between the kubelet's thresholds and crigc's: a snapshot of what doctor says of each.

import { expect, test } from "bun:test";

import { kubeletChecks } from "../../../src/cli/checks/kubelet.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import type { KubeletFact } from "../../../src/node/kubelet/pods.ts";
import { kubelets, load } from "../../config/loading.ts";
import { aFilesystem, GIB } from "../../support/build/values.ts";

interface Node {
  /** Of the kubelet's file, as YAML. */
  readonly settings?: string;
  readonly ours?: readonly (readonly [string, string])[];
  readonly filesystem?: Filesystem | null;
  readonly kubelet?: Partial<KubeletFact>;
}

function checks({ settings = "", ours = [], filesystem, kubelet }: Node) {
  const found = kubeletChecks(
    {
      sign: "process 4711 (kubelet)",
      file: {
        path: "/var/lib/kubelet/config.yaml",
        text: kubelets(settings),
        why: "",
      },
      ...kubelet,
    },
    load({ flags: ours }),
    filesystem === undefined ? aFilesystem() : filesystem,
  );
  return found.flatMap(([name, check]) =>
    check === null
      ? []
      : [
          `${name}: ${check.result}: ${check.message}${check.advice === null ? "" : ` (${check.advice})`}`,
        ],
  );
}

const oursAt = (text: string): Node => ({ ours: [["eviction-hard", text]] });
const theirs = (evictionHard: string): Node => ({ settings: `evictionHard: {${evictionHard}}` });
const sized = (gib: bigint) => aFilesystem({ capacityBytes: gib * GIB });
const APART = aFilesystem({ roles: ["imagefs"] });

const nodes: Readonly<Record<string, Node>> = {
  "without a sign of one": { kubelet: { sign: null } },
  "with an unreadable configuration": {
    kubelet: { file: { path: "/etc/x.yaml", text: null, why: "permission denied" } },
  },
  "with an invalid configuration": { settings: "imageGCHighThresholdPercent: lots" },
  "configured by kubeadm": {
    settings: 'imageMaximumGCAge: 0s\nimageMinimumGCAge: 0s\ncontainerRuntimeEndpoint: ""',
  },
  "without a configuration file": { kubelet: { file: null } },
  "that also removes images": {
    settings: "imageGCHighThresholdPercent: 90\nimageGCLowThresholdPercent: 70",
  },
  "that removes images earlier": {
    settings: "imageGCHighThresholdPercent: 85",
    ours: [["image-gc-high-threshold", "90"]],
  },
  "whose own collection is off": { settings: "imageGCHighThresholdPercent: 100" },
  "that removes images by age": { settings: "imageMaximumGCAge: 72h" },
  "whose threshold is below crigc's": oursAt("imagefs.available<20%"),
  "whose threshold is above crigc's": oursAt("imagefs.available<2%"),
  "whose threshold is crigc's": oursAt("imagefs.available<15%"),
  "with a threshold that crigc lacks": oursAt("nodefs.inodesFree<5%"),
  // A new value replaces all thresholds, so the advice repeats crigc's others.
  "whose threshold is above one of two": oursAt("nodefs.available<8%,imagefs.available<5%"),
  "with no such threshold": theirs("memory.available: 100Mi, nodefs.available: 5%"),
  "with bytes, of 100 GiB": { ...theirs("imagefs.available: 20Gi"), filesystem: sized(100n) },
  "with bytes, of 1000 GiB": { ...theirs("imagefs.available: 20Gi"), filesystem: sized(1000n) },
  "with bytes of what was not read": { ...theirs("imagefs.available: 20Gi"), filesystem: null },
  "for a node filesystem with images": theirs("nodefs.available: 30%"),
  "for one without images": { ...theirs("nodefs.available: 30%"), filesystem: APART },
  "with a soft threshold": {
    settings:
      "evictionHard: {imagefs.available: 5%}\nevictionSoft: {imagefs.available: 25%}\nevictionSoftGracePeriod: {imagefs.available: 1m}",
  },
};

test("doctor compares the kubelet's thresholds with crigc's, and says what to set", () => {
  const said = Object.entries(nodes).map(([name, node]) =>
    [`a kubelet ${name}`, ...checks(node)].join("\n  "),
  );
  expect(said.join("\n")).toMatchSnapshot();
});
