// What doctor says of a node that could be looked at.

import { expect, test } from "bun:test";

import type { Verdict } from "../../../src/cli/checks/check.ts";
import { keepCheck, nodeChecks, runtimeCheck } from "../../../src/cli/checks/node.ts";
import { prepareRecorded } from "../../../src/gc/read-only.ts";
import { containerId, podUid } from "../../../src/model/ids.ts";
import type { Limits } from "../../../src/model/limits.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import type { KeepRules, Snapshot } from "../../../src/model/snapshot.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  NOW,
} from "../../support/build/values.ts";

/** `warning: the message (the advice)`. */
const shownOf = (check: Verdict | null | undefined): string =>
  `${check?.result}: ${check?.message}${check?.advice == null ? "" : ` (${check.advice})`}`;

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const calm: Partial<Snapshot> = {
  images: [app, pause],
  sandboxes: [aSandbox("a")],
  containers: [aContainer("web", { imageId: app.id })],
  filesystems: [aFilesystem({ availableBytes: 60n * GIB })],
  pods: { kind: "ready", source: "cri", pods: [] },
};

function checks(
  change: Partial<Snapshot> = {},
  around: { readonly limits?: Limits; readonly hold?: HoldState } = {},
) {
  const { limits = defaultLimits, hold = { kind: "none" } } = around;
  const prepared = prepareRecorded(
    { snapshot: aSnapshot({ ...calm, ...change }), ledger: aLedger() },
    {
      limits,
      purpose: { kind: "periodic" },
      parts: { containers: "all", images: true },
      hold,
      startedAt: null,
    },
  );
  return new Map(nodeChecks(prepared, limits));
}

const FILESYSTEM = "filesystem-imagefs-containerfs-nodefs";
const foreign = {
  sandboxes: [aSandbox("a", { podUid: podUid("") })],
  containers: [aContainer("web", { podUid: podUid(""), imageId: app.id })],
};
const full = { filesystems: [aFilesystem({ availableBytes: 10n * GIB })] };
const noCapacity = { filesystems: [aFilesystem({ capacityBytes: 0n, availableBytes: 0n })] };
const unauthorised = {
  pods: { kind: "failed", source: "kubelet-api", message: "status 401" },
} as const;
// As after the last pod of the API server was deleted.
const mirror = { finished: false, evicted: false, images: [], origin: "static" } as const;
const onlyStatic: Partial<Snapshot> = {
  pods: {
    kind: "ready",
    source: "kubelet-api",
    pods: [{ ...mirror, uid: podUid("0123456789abcdef0123456789abcdef") }],
  },
  sandboxes: [aSandbox("a", { podUid: podUid("uid-dead"), state: "not-ready" })],
  containers: [],
};
const KUBELET = /^failed: .*\(.*--kubelet-endpoint/;
const API_SERVER = /^warning: .*\(.*API server/;
const logs = {
  kind: "read" as const,
  podLogsDirectory: "/var/log/pods",
  podLogs: [{ entry: "a_b_u", uid: podUid("u") }],
  strays: ["lost+found"],
  danglingLinks: [],
  sizeBytes: null,
};

test("a node without problems has no warning", () => {
  expect([...checks()].filter(([, check]) => check?.result !== "ok")).toEqual([]);
});

test.each<[check: string, node: string, Partial<Snapshot>, shown: string | RegExp]>([
  [
    FILESYSTEM,
    "over its high threshold",
    full,
    "warning: /var/lib/containerd (mounted at /) is 90% full, 10.0 GiB of 100.0 GiB available, at or over the high threshold of 85% (crigc plan shows",
  ],
  [FILESYSTEM, "with capacity 0", noCapacity, "failed: "],
  ["block-invalid-capacity", "with capacity 0", noCapacity, "failed: "],
  [
    "block-usage-unknown",
    "whose images in use are unknown",
    { containers: [aContainer("web", { imageName: "registry.example/x:1" })] },
    "failed: ",
  ],
  [
    "owners",
    "where everything is foreign",
    foreign,
    "warning: everything on the node is foreign: none of its 1 container and 1 sandbox was created by Kubernetes, so only images are collected (set --collect-foreign to collect dead ones)",
  ],
  [
    "owners",
    "with a foreign container",
    {
      containers: [
        ...(calm.containers ?? []),
        aContainer("x", { id: containerId("x"), imageId: app.id, podUid: podUid("") }),
      ],
    },
    "ok: 1 container and 0 sandboxes not created by Kubernetes; they are left alone",
  ],
  ["sandbox-image", "with an image that a built-in pattern matches", {}, "ok"],
  ["sandbox-image", "with a pinned image", { images: [{ ...app, pinned: true }] }, "ok"],
  ["sandbox-image", "without any sandbox", { images: [app], sandboxes: [] }, "ok"],
  ["sandbox-image", "without a known one", { images: [app] }, "warning"],
  ["pod-source", "without one", { pods: { kind: "none", why: "signs of a kubelet" } }, "warning"],
  // It lists none of the live pods.
  [
    "pod-source",
    "with that of another node",
    { pods: { kind: "ready", source: "kubelet-dir", pods: [] } },
    "failed",
  ],
  ["pod-source", "with one that fails", unauthorised, KUBELET],
  ["block-pods-unknown", "with one that fails", unauthorised, KUBELET],
  ["pod-source", "that has only static pods", onlyStatic, API_SERVER],
  ["block-pods-incomplete", "that has only static pods", onlyStatic, API_SERVER],
  [
    "pod-logs",
    "with a stray entry",
    { logs },
    "ok: /var/log/pods has the logs of 1 pod; 1 other entry left alone",
  ],
])("%s of a node %s", (name, _, change, shown) => {
  expect(shownOf(checks(change).get(name))).toMatch(
    typeof shown === "string" ? new RegExp(`^${RegExp.escape(shown)}`) : shown,
  );
});

test("a hold is a warning that says until when", () => {
  const hold: HoldState = { kind: "held", until: NOW, since: NOW, reason: "swap" };
  expect(shownOf(checks({}, { hold }).get("block-on-hold"))).toMatch(
    /^warning: .*until 2026-01-01T00:00:00Z \(swap\)/,
  );
});

test("foreign containers are no warning if they are collected", () => {
  const containers = { ...defaultLimits.containers, collectForeign: true };
  const limits: Limits = { ...defaultLimits, containers };
  expect(checks(foreign, { limits }).get("owners")?.result).toBe("ok");
});

const rules = (...patterns: readonly string[]): KeepRules => ({
  rules: patterns.map((pattern, at) => ({ pattern, source: `a.list:${at + 1}` })),
  problems: [],
  directoriesRead: [],
});
const node = { images: [app], ledger: aLedger() };

test.each<[string, KeepRules, typeof node | null, string]>([
  ["none", rules(), node, "ok: none"],
  ["that match an image", rules("registry.example/app"), node, "ok: 1 valid rule"],
  [
    "of which one matches nothing",
    rules("registry.example/app", "gone"),
    node,
    "warning: 2 valid rules, 1 of which matches nothing on this node (crigc keep list",
  ],
  [
    "that are invalid",
    { ...rules(), problems: [{ source: "a.list:3", message: "it is no name" }] },
    node,
    "failed: invalid, so no image is removed: a.list:3: it is no name",
  ],
  ["of a node that could not be read", rules("gone"), null, "ok: 1 valid rule"],
])("keep rules %s", (_, keep, seen, shown) => {
  expect(shownOf(keepCheck(keep, seen))).toStartWith(shown);
});

test.each([
  ["containerd", "1.7.24", "ok"],
  ["containerd", "2.0.0", "warning"],
  ["containerd", "v2.0.4", "warning"],
  ["containerd", "2.0.5", "ok"],
  ["containerd", "2.0.10", "ok"],
  ["containerd", "unknown", "ok"],
  ["cri-o", "2.0.1", "ok"],
])("the version of %s %s is checked for known faults: %s", (name, version, result) => {
  expect(runtimeCheck({ name, version }).result).toBe(result as "ok");
});
