// What doctor says of a node that could be looked at: a snapshot of what is not as on a node without problems.

import { expect, test } from "bun:test";

import { keepCheck, nodeChecks, runtimeCheck } from "../../../src/cli/checks/node.ts";
import { containerId, podUid } from "../../../src/model/ids.ts";
import type { Limits } from "../../../src/model/limits.ts";
import type { WritableLayers } from "../../../src/model/reports.ts";
import type { KeepRules, Snapshot } from "../../../src/model/snapshot.ts";
import type { Facts } from "../../../src/policy/facts.ts";
import { defaultPolicy } from "../../../src/policy/policy.ts";
import { metTargets } from "../../../src/policy/pressure/thresholds.ts";
import type { Verdict } from "../../../src/report/doctor.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
} from "../../support/build/values.ts";

/** `warning: the message (the advice)`. */
const shownOf = (check: Verdict): string =>
  `${check.result}: ${check.message}${check.advice === null ? "" : ` (${check.advice})`}`;

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const calm: Partial<Snapshot> = {
  images: [app, pause],
  sandboxes: [aSandbox("a")],
  containers: [aContainer("web", { imageId: app.id })],
  filesystems: [aFilesystem({ availableBytes: 95n * GIB, imageUsedBytes: GIB / 8n })],
  pods: { kind: "ready", source: "cri", pods: [] },
};

interface Node {
  readonly seen?: Partial<Snapshot>;
  readonly limits?: Limits;
  readonly written?: WritableLayers | null;
}

function checks({ seen = {}, limits = defaultLimits, written = new Map() }: Node = {}) {
  const snapshot = aSnapshot({ ...calm, ...seen });
  const facts: Facts = {
    snapshot,
    ledger: aLedger(),
    limits,
    purpose: { kind: "periodic" },
    parts: { containers: "all", images: true },
    hold: { kind: "none" },
    pressureTargets: metTargets({
      limits: limits.pressure,
      filesystems: snapshot.filesystems,
    }),
    last: new Set(),
    paused: new Map(),
  };
  const prepared = { ...facts, plan: defaultPolicy.decide(facts) };
  return nodeChecks(prepared, limits, written).flatMap(([name, check]) =>
    check === null ? [] : [`${name}: ${shownOf(check)}`],
  );
}

const foreignWeb = aContainer("web", { podUid: podUid(""), imageId: app.id });
const foreign = { sandboxes: [aSandbox("a", { podUid: podUid("") })], containers: [foreignWeb] };
const collectForeign = { ...defaultLimits.containers, collectForeign: true };
const disk = (change: Parameters<typeof aFilesystem>[0]) => ({
  filesystems: [aFilesystem(change)],
});

const largeStore = disk({ availableBytes: 60n * GIB, imageUsedBytes: 40n * GIB });

const nodes: Readonly<Record<string, Node>> = {
  "whose root directory could not be measured": {
    seen: {
      filesystems: [
        ...(calm.filesystems ?? []),
        aFilesystem({
          roles: ["nodefs"],
          device: "/k",
          capacityBytes: 0n,
          unmeasured: "no answer",
        }),
      ],
    },
  },
  "of capacity 0": { seen: disk({ capacityBytes: 0n, availableBytes: 0n }) },
  "where everything is foreign": { seen: foreign },
  "whose foreign containers are collected": {
    seen: foreign,
    limits: { ...defaultLimits, containers: collectForeign },
  },
  "with a foreign container": {
    seen: {
      containers: [...(calm.containers ?? []), { ...foreignWeb, id: containerId("x") }],
    },
  },
  "whose sandbox image is pinned": { seen: { images: [{ ...app, pinned: true }] } },
  "without any sandbox": { seen: { images: [app], sandboxes: [] } },
  "without a known sandbox image": { seen: { images: [app] } },
  "without the sandbox image that its runtime names": {
    seen: { images: [app], runtime: { ...aSnapshot().runtime, sandboxImages: ["r.example/p:3"] } },
  },
  "whose kubelet lists its pods": {
    seen: {
      pods: { kind: "none", why: "x", specs: { pods: [], error: null } },
    },
  },
  "whose kubelet does not answer": {
    seen: {
      pods: { kind: "none", why: "x", specs: { pods: [], error: "status 401" } },
    },
  },
  "with an image without a name": {
    seen: { images: [{ ...app, repoTags: [""], repoDigests: [] }, pause] },
  },
  "with an image that has no name but <none>": {
    seen: { images: [{ ...app, repoTags: ["<none>:<none>"], repoDigests: [] }, pause] },
  },
  "with a disk that no image explains": {
    seen: disk({ availableBytes: 50n * GIB, imageUsedBytes: 1n }),
  },
  "with a store far larger than its images": { seen: largeStore },
  "with such a store, by what containers wrote": {
    seen: largeStore,
    written: new Map([[containerId("c"), 40n * GIB]]),
  },
  "with such a store, while it is unknown what containers wrote": {
    seen: largeStore,
    written: null,
  },
};

test("doctor says of each node what is wrong and what to do", () => {
  const well = checks();
  expect(well.filter((it) => !it.includes(": ok: "))).toEqual([]);
  const said = Object.entries(nodes).map(([name, node]) =>
    [`a node ${name}`, ...checks(node).filter((it) => !well.includes(it))].join("\n  "),
  );
  expect([`a node without problems`, ...well].join("\n  ")).toMatchSnapshot("without problems");
  expect(said.join("\n")).toMatchSnapshot("with one difference each");
});

const rules = (...patterns: readonly string[]): KeepRules => ({
  rules: patterns.map((pattern, at) => ({ pattern, source: `a.list:${at + 1}` })),
  problems: [],
});
const node = { images: [app] };

test.each<[string, KeepRules, typeof node | null, string]>([
  ["none", rules(), node, "ok: 0 valid rules"],
  ["that match an image", rules("registry.example/app"), node, "ok: 1 valid rule"],
  [
    "of which one matches nothing",
    rules("registry.example/app", "gone"),
    node,
    "warning: 2 valid rules, of which 1 match nothing on this node (crigc keep list",
  ],
  [
    "that are invalid",
    { ...rules(), problems: [{ source: "a.list:3", message: "it is no name" }] },
    node,
    "failed: invalid, so no image is removed: a.list:3: it is no name",
  ],
  ["of a node that could not be read", rules("gone"), null, "ok: 1 valid rule"],
])("keep rules %s", (_, keep, seen, shown) => {
  expect(shownOf(keepCheck(keep, seen && seen.images))).toStartWith(shown);
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
