// Every table and document of rich inputs as a snapshot: what an operator or a program reads changes only on purpose.

import { expect, test } from "bun:test";

import { containerId, passId, podUid } from "../../src/model/ids.ts";
import type { LoopStatus } from "../../src/model/pass.ts";
import type { ImageKeepReason, RemovalBlock } from "../../src/model/reason.ts";
import { hours, minutes, plus, seconds } from "../../src/model/time.ts";
import { doctorDocument, doctorTable } from "../../src/report/doctor.ts";
import { type JsonObject, toJson } from "../../src/report/document.ts";
import {
  candidateThing,
  containerThing,
  explanationDocument,
  explanationTable,
  keptThing,
  sandboxThing,
} from "../../src/report/explanation.ts";
import { gcDocument, gcTable } from "../../src/report/gc.ts";
import { historyDocument, historyTable } from "../../src/report/history.ts";
import { entriesOf, imageListDocument, imageListTable } from "../../src/report/images.ts";
import { keepRulesDocument, keepRulesTable } from "../../src/report/keep.ts";
import { planDocument, planTable } from "../../src/report/plan.ts";
import { statusDocument, statusTable } from "../../src/report/status.ts";
import type { Screen } from "../../src/report/terminal.ts";
import { spaceTarget } from "../support/build/values.ts";
import {
  candidate,
  containerOutcome,
  containerPlan,
  filesystem,
  GIB,
  hex,
  image,
  imageOutcome,
  imagePlan,
  kept,
  measured,
  MIB,
  NOW,
  pass,
  passRow,
  removalRow,
  removedContainer,
  removedImage,
  runtime,
  status,
  terminal,
  usage,
} from "./build.ts";

const breakdown = {
  capacityBytes: 50n * GIB,
  availableBytes: 2n * GIB,
  usedBytes: 48n * GIB,
  imagesBytes: GIB,
  containersBytes: null,
  otherBytes: 47n * GIB,
};
const estimateBytes = 2n * MIB;
const blocks: readonly RemovalBlock[] = [
  { kind: "on-hold", until: null, reason: "night" },
  { kind: "on-hold", until: NOW, reason: "" },
  { kind: "boot-grace", because: "boot", remaining: minutes(3) },
  {
    kind: "keep-rules-invalid",
    problems: [
      { source: "a.list:3", message: "is no pattern" },
      { source: "b.list", message: "is empty" },
    ],
  },
  {
    kind: "pod-starting",
    pods: [
      { uid: "u1", container: "web" },
      { uid: "u2", container: "" },
    ],
    remaining: seconds(80),
    until: NOW,
  },
  { kind: "futile", filesystem: "/data", boundBytes: GIB, neededBytes: 3n * GIB },
];
const held = blocks.slice(0, 1);
const user = { kind: "container", name: "web", podName: "s-0", state: "running" } as const;
const reasons: readonly ImageKeepReason[] = [
  {
    kind: "in-use",
    users: [
      { ...user, id: containerId(hex(7)) },
      { kind: "pod-spec", uid: podUid("u1") },
    ],
  },
  {
    kind: "in-use",
    users: [{ kind: "image-volume", id: containerId(hex(1)), name: "web", podName: "" }],
  },
  { kind: "pinned" },
  { kind: "sandbox-image", by: "runtime", name: "pause:3.9" },
  { kind: "keep-rule", pattern: "nginx", source: "--keep", name: "docker.io/library/nginx:1" },
  { kind: "keep-per-repository", repository: "app", place: 2, limit: 3 },
  { kind: "shares-all-layers", images: [{ id: image(9).id, name: "x/z:1" }] },
  { kind: "too-young", age: seconds(40), minimumAge: minutes(2) },
  { kind: "too-young", age: seconds(40), minimumAge: minutes(2), restarted: true },
  { kind: "blocked", block: "futile" },
];
const target = spaceTarget(10n * GIB, 4n * GIB);
const images = imagePlan({
  // Shown with its mount point.
  targets: [{ ...target, path: filesystem().path }],
  usage: [
    usage({
      inodesUsedPercent: 11,
      evictions: [
        { signal: "imagefs.available", limitBytes: GIB, usedPercent: 90, met: false },
        { signal: "nodefs.available", limitBytes: GIB, usedPercent: 95, met: true },
      ],
    }),
  ],
  candidates: [
    candidate(1, { expected: true, estimateBytes }),
    candidate(2, { triggers: [{ kind: "pressure", signal: "imagefs.available" }] }),
  ],
  kept: reasons.map((reason, index) => kept(20 + index, reason)),
  notes: [{ kind: "space-off" }],
  futility: [
    { filesystem: "/data", boundBytes: GIB, neededBytes: 3n * GIB, futile: true, breakdown },
  ],
});
const containers = containerPlan({
  logsError: "cannot open /var/log/pods",
  podSource: { kind: "not-ready", source: "kubelet-dir", why: "status 401" },
});
const blocked = {
  images: imagePlan({ candidates: [], blocks: held }),
  containers: containerPlan({ blocks: held }),
};

const failedPass = pass({
  error: "cannot list images",
  images: imageOutcome({
    items: [
      removedImage(1, { candidate: candidate(1, { estimateBytes }) }),
      removedImage(2, { result: { kind: "ghost" } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
      removedImage(4, { result: { kind: "failed", message: "in use", code: "failed" } }),
    ],
    end: "stopped",
  }),
  containers: containerOutcome({
    logs: [
      {
        kind: "log-link",
        entry: "web.log",
        reason: { kind: "container-gone" },
        result: { kind: "failed", step: "delete", message: "busy", code: "failed" },
        bytes: 0n,
      },
    ],
    errors: ["logs are kept, because of x"],
  }),
  events: [{ reason: "GhostImage", message: "x is listed", at: NOW, passId: null }],
});

const returned = {
  ...removalRow(),
  removedAt: NOW,
  at: plus(NOW, hours(3)),
  returnedAs: `sha256:${hex(2)}`,
  sizeBytes: GIB,
};
const history = {
  passes: [
    passRow(),
    passRow({ id: passId("P2"), error: "cannot open /l" }),
    passRow({ id: passId("P3"), endedAt: null, measuredFreedBytes: 0n, dryRun: true }),
  ],
  removals: [
    removalRow({ estimateBytes: 3n * GIB }),
    removalRow({ passId: passId("P0"), result: "failed", message: "busy" }),
  ],
  events: [{ reason: "ImageGCFutile", message: "n", at: plus(NOW, minutes(-1)), passId: null }],
  returned: [returned],
  hidesIdle: true,
} as const;

const nginx = { pattern: "nginx", source: "/etc/crigc/keep.d/a.list:1" };
const unmatched = { pattern: "x/**", source: "--keep" };
const rules = {
  rules: [nginx, unmatched],
  problems: [{ source: "a.list:3", message: "is no pattern" }],
  matches: new Map([
    [nginx, [image(1)]],
    [unmatched, []],
  ]),
};

const unmeasured = measured({
  roles: ["nodefs"],
  mountpoint: "/gone",
  capacityBytes: 0n,
  availableBytes: 0n,
  unmeasured: "cannot measure the filesystem of /gone",
});
const [loop] = status().loops as readonly [LoopStatus];
const troubled = status({
  runtimeError: "no socket",
  ledgerError: "full",
  hold: { kind: "held", until: NOW, since: null, reason: "night" },
  bootGrace: minutes(2),
  waiting: {
    kind: "pod-starting",
    pods: [{ uid: "u1", container: "web" }],
    remaining: seconds(80),
    until: NOW,
  },
  podSource: { kind: "not-ready", source: "kubelet-dir", why: "status 500" },
  pressure: [
    { signal: "imagefs.available", mountpoint: "/", available: GIB, limit: 2n * GIB, due: true },
    { signal: "nodefs.inodesFree", mountpoint: "/", available: 5n, limit: 9n, due: false },
  ],
  underPressure: true,
  filesystems: [
    { filesystem: measured(), thresholds: { lowPercent: 80, highPercent: 85 } },
    { filesystem: unmeasured, thresholds: null },
  ],
  loops: [
    { ...loop, lastEndedAt: null, nextAt: null, lastStartedAt: null },
    { ...loop, lastEndedAt: null, nextAt: null },
    { ...loop, nextAt: null },
    { ...loop, lastError: "no socket", consecutiveFailures: 2 },
    { ...loop, enabled: false },
  ],
  events: history.events,
  values: [
    {
      field: "evictionHard",
      value: { "nodefs.available": "10%" },
      text: "nodefs.available<10%",
      source: "file",
      from: ["/etc/crigc.yaml:3"],
    },
    { field: "keep", value: ["a", "b"], text: "a, b", source: "flag", from: ["--keep"] },
  ],
});

const freedBytes = ({ id }: { readonly id: string }) => (id === image(1).id ? 2n * MIB : null);
const explanation = {
  reference: "x",
  removed: [],
  things: [
    ...images.kept.map((it) => keptThing(it, freedBytes(it.image))),
    ...images.candidates.map((it, index) =>
      candidateThing(it, [index + 1, 2], freedBytes(it.image)),
    ),
    containerThing(removedContainer(1)),
    ...containers.sandboxes.map((it) => sandboxThing(it)),
  ],
  observedAt: NOW,
  blocks,
};
const checks = (["ok", "warning", "failed"] as const).map((result) => {
  const advice = result === "ok" ? null : "do this";
  return [result, { result, message: `the ${result} check`, advice }] as const;
});
const listed = { observedAt: NOW, entries: entriesOf(images) };

const seen = { runtime, observedAt: NOW };
const planned = { plan: { images, containers }, snapshot: seen };
const past = historyDocument(history);

const shown = <Document extends JsonObject>(
  command: string,
  document: Document,
  table: (document: Document, screen: Screen) => string,
) => [command, table(document, terminal), document] as const;

test.each([
  shown("plan", planDocument(planned), planTable),
  shown("gc", gcDocument(failedPass), gcTable),
  shown("explain", explanationDocument(explanation), explanationTable),
  shown("images", imageListDocument(listed), imageListTable),
  shown("history", past, historyTable),
  shown("keep list", keepRulesDocument(rules), keepRulesTable),
  shown("doctor", doctorDocument(checks), doctorTable),
  shown("status", statusDocument(troubled), statusTable),
])("crigc %s prints the same table and document", (_, table, document) => {
  expect(table).toMatchSnapshot("on a terminal");
  const fields = Object.entries(document).map(
    ([name, value]) => `${name}: ${toJson(value ?? null)}`,
  );
  expect(fields.join("\n")).toMatchSnapshot("as JSON");
});

test("a blocked plan, a clean pass and a dry run match the snapshot", () => {
  expect(planTable(planDocument({ ...planned, plan: blocked }), terminal)).toMatchSnapshot(
    "a blocked plan",
  );
  expect(gcTable(gcDocument(pass()), terminal)).toMatchSnapshot("a clean pass");
  expect(gcTable(gcDocument(pass({ dryRun: true })), terminal)).toMatchSnapshot("a dry run");
});
