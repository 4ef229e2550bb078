// Conflicts between the kubelet's thresholds and crigc's.

import { expect, test } from "bun:test";

import type { KubeletFact } from "../../../src/agent/openers.ts";
import { kubeletChecks } from "../../../src/cli/checks/kubelet.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { load } from "../../config/loading.ts";
import { aFilesystem, GIB } from "../../support/build/values.ts";

interface Node {
  readonly settings?: Readonly<Record<string, string>>;
  readonly ours?: readonly (readonly [string, string])[];
  readonly filesystem?: Filesystem | null;
  readonly kubelet?: Partial<KubeletFact>;
}

function checks({ settings = {}, ours = [], filesystem, kubelet }: Node) {
  const found = kubeletChecks(
    {
      signs: ["/etc/systemd/system/kubelet.service"],
      running: [],
      settings: Object.entries(settings).map(([field, text]) => ({
        field,
        text,
        source: "/var/lib/kubelet/config.yaml",
      })),
      problems: [],
      ...kubelet,
    },
    load({ flags: ours }),
    filesystem === undefined ? aFilesystem() : filesystem,
  );
  return new Map(found.filter(([, check]) => check !== null));
}

/** `warning: the message (the advice)`; "": not checked. */
const shownOf = (node: Node, name: string): string => {
  const check = checks(node).get(name);
  return check == null
    ? ""
    : `${check.result}: ${check.message}${check.advice === null ? "" : ` (${check.advice})`}`;
};
const oursAt = (text: string) => ({ ours: [["eviction-hard", text]] as const });
const theirs = (evictionHard: string) => ({ settings: { evictionHard } });
const SECOND =
  "ok: crigc frees space at imagefs.available<20%, before the kubelet evicts pods at imagefs.available<15%";
const FIRST = "warning: the kubelet evicts pods at imagefs.available<15%; crigc ";
const APART = aFilesystem({ roles: ["imagefs"] });

test("a node without a sign of a kubelet has one line about it", () => {
  expect([...checks({ kubelet: { signs: [] } }).values()]).toEqual([
    { result: "ok", message: "no sign of a kubelet on this node", advice: null },
  ]);
});

test("a kubelet with an unreadable configuration is reported without thresholds", () => {
  const found = checks({ kubelet: { problems: ["cannot read x: permission denied"] } });
  expect([...found].map(([name, check]) => [name, check?.result])).toEqual([
    ["kubelet", "warning"],
  ]);
});

test("a kubelet configured by kubeadm is understood", () => {
  const [imageMaximumGCAge, imageMinimumGCAge] = ["0s", "0s"];
  const settings = {
    imageMaximumGCAge,
    imageMinimumGCAge,
    containerRuntimeEndpoint: "",
    evictionSoft: "",
  };
  const names = ["kubelet", "kubelet-image-gc", "kubelet-eviction"];
  expect([...checks({ settings }).keys()]).toEqual(names);
});

test.each<[check: string, what: string, Node, shown: string]>([
  [
    "kubelet",
    "that is only running",
    { kubelet: { signs: [], running: [4711] } },
    "ok: this node has a kubelet (process 4711)",
  ],
  [
    "kubelet-image-gc",
    "that also removes images",
    { settings: { imageGCHighThresholdPercent: "90", imageGCLowThresholdPercent: "70" } },
    "warning: the kubelet also removes images, from 90% down to 70%, and ignores keep rules",
  ],
  ["kubelet-image-gc", "whose is off", { settings: { imageGCHighThresholdPercent: "100" } }, "ok"],
  [
    "kubelet-image-age",
    "that removes images by age",
    { settings: { imageMaximumGCAge: "72h" } },
    "warning: the kubelet removes images unused for 3d",
  ],
  ["kubelet-eviction", "whose threshold is below crigc's", oursAt("imagefs.available<20%"), SECOND],
  ["kubelet-eviction", "above crigc's", oursAt("imagefs.available<2%"), FIRST],
  ["kubelet-eviction", "at crigc's", oursAt("imagefs.available<15%"), FIRST],
  ["kubelet-eviction", "with no such threshold of crigc", oursAt("nodefs.inodesFree<5%"), FIRST],
  [
    "kubelet-eviction",
    "with no such threshold itself",
    theirs("memory.available<100Mi,nodefs.available<5%"),
    "ok",
  ],
  [
    "kubelet-eviction",
    "with an amount of bytes, as a share of this filesystem",
    { ...theirs("imagefs.available<20Gi"), filesystem: aFilesystem({ capacityBytes: 100n * GIB }) },
    "warning: the kubelet evicts pods at imagefs.available<20%",
  ],
  [
    "kubelet-eviction",
    "with the same amount of a larger filesystem",
    {
      ...theirs("imagefs.available<20Gi"),
      filesystem: aFilesystem({ capacityBytes: 1000n * GIB }),
    },
    "ok",
  ],
  [
    "kubelet-eviction",
    "with an amount of bytes of an unread filesystem",
    { ...theirs("imagefs.available<20Gi"), filesystem: null },
    "skipped",
  ],
  ["kubelet-eviction", "with a share of an unread filesystem", { filesystem: null }, "warning"],
  [
    "kubelet-eviction",
    "for the node's filesystem, which holds images",
    theirs("nodefs.available<30%"),
    "warning",
  ],
  [
    "kubelet-eviction",
    "for the node's filesystem, which holds none",
    { ...theirs("nodefs.available<30%"), filesystem: APART },
    "ok",
  ],
  [
    "kubelet-eviction",
    "with a soft threshold",
    {
      settings: {
        evictionHard: "imagefs.available<5%",
        evictionSoft: "imagefs.available<25%",
        evictionSoftGracePeriod: "imagefs.available=1m",
      },
    },
    "warning: the kubelet evicts pods at imagefs.available<25%",
  ],
])("%s, %s", (name, _, node, shown) => {
  expect(shownOf(node, name)).toStartWith(shown);
});

// A new value replaces all thresholds, so the advice repeats crigc's others.
test.each([
  [
    {},
    "(set --eviction-hard to nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<20%,imagefs.inodesFree<5%)",
  ],
  [
    oursAt("nodefs.available<8%,imagefs.available<5%"),
    "(omit --eviction-hard, whose default is above the kubelet's, or set it to nodefs.available<8%,imagefs.available<20%)",
  ],
])("advice about eviction of %j keeps crigc's other thresholds", (node, advice) => {
  expect(shownOf(node, "kubelet-eviction")).toEndWith(advice);
});
