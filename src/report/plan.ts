/** Document `Plan`: what a pass would do now, with a reason for each image, container, sandbox and log. */
import { frequencyOf } from "../model/frequency.ts";
import type { Pass } from "../model/pass.ts";
import {
  type ContainerPlan,
  type Decision,
  expectedBytes,
  type ImageCandidate,
  type ImagePlan,
  type KeptImage,
  type Plan,
  type PlannedContainer,
  type PlannedSandbox,
} from "../model/plan.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { duration, type Instant } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { counted, humanBytes, humanDuration } from "./bytes.ts";
import {
  containerReasons,
  logReasons,
  podSourceWords,
  sandboxReasons,
} from "./container-reasons.ts";
import {
  containerJson,
  document,
  filesystemJson,
  imageJson,
  type JsonObject,
  jsonOf,
  lazily,
  recordJson,
  runtimeJson,
  sandboxJson,
  timeOf,
} from "./document.ts";
import { imageBlock, imageKeep, imageTrigger, planNote } from "./image-reasons.ts";
import type { Kind, Reasons } from "./reasons.ts";
import { clean } from "./terminal.ts";

export interface PlanReport {
  readonly plan: Plan;
  readonly runtime: RuntimeInfo;
  readonly observedAt: Instant;
  /** Images not in the order of removal. */
  readonly sorted?: ImageOrder;
}

export type ImageOrder = (
  one: Pick<KeptImage, "image" | "record">,
  other: Pick<KeptImage, "image" | "record">,
) => number;

export const planDocument = (report: PlanReport): JsonObject =>
  document("Plan", {
    observedAt: timeOf(report.observedAt),
    runtime: runtimeJson(report.runtime),
    ...planBody(report.plan, report.sorted),
  });

/** Both halves; `null` if not requested. */
export const planBody = (plan: Plan, sorted: ImageOrder = () => 0): JsonObject => ({
  images: plan.images === null ? null : imagePlanJson(plan.images, sorted),
  containers: plan.containers === null ? null : containerPlanJson(plan.containers),
});

const imagePlanJson = (plan: ImagePlan, sorted: ImageOrder): JsonObject => ({
  purpose: plan.purpose,
  now: timeOf(plan.now),
  blocks: plan.blocks.map(imageBlock.json),
  triggers: plan.triggers.map(imageTrigger.json),
  targets: plan.targets.map((target) => ({
    ...target,
    trigger: imageTrigger.json(target.trigger),
  })),
  usage: plan.usage.map((usage) => ({
    ...filesystemJson(usage.filesystem),
    ...jsonOf(usage, "usedPercent", "inodesUsedPercent", "highPercent", "lowPercent"),
    evictions: (usage.evictions ?? []).map((mark) => jsonOf(mark)),
  })),
  futility: plan.futility.map((it) => ({
    ...jsonOf(it, "filesystem", "boundBytes", "neededBytes", "futile", "breakdown"),
    boundInodes: it.inodes?.bound,
    neededInodes: it.inodes?.needed,
  })),
  accounting: plan.accounting,
  notes: plan.notes.map(planNote.text),
  expectedRemovals: plan.candidates.filter((it) => it.expected).length,
  expectedFreedBytes: plannedBytes(plan),
  keptByPreloadedAlone: preloadedOf(plan).length,
  candidates: lazily(placed(plan, sorted), (it) => candidateJson(it.candidate, it.place)),
  kept: lazily(plan.kept.toSorted(sorted), keptJson),
});

export interface Placed {
  readonly candidate: ImageCandidate;
  /** In the order of removal, from 1. */
  readonly place: number;
}

export const placed = (plan: ImagePlan, sorted: ImageOrder = () => 0): readonly Placed[] =>
  plan.candidates
    .map((candidate, index) => ({ candidate, place: index + 1 }))
    .toSorted((one, other) => sorted(one.candidate, other.candidate) || one.place - other.place);

/** `place` counts from 1 in the order of removal. */
export const candidateJson = (candidate: ImageCandidate, place: number): JsonObject => ({
  place,
  ...imageJson(candidate.image),
  ...recordJson(candidate.record),
  ...orderJson(candidate),
  ...jsonOf(candidate, "unusedFor"),
  triggers: candidate.triggers.map(imageTrigger.json),
  expected: candidate.expected,
  ...freesJson(candidate),
});

/** Empty in the order `recent`. */
const orderJson = ({ record, orderKey }: Pick<KeptImage, "record" | "orderKey">): JsonObject =>
  orderKey === undefined ? {} : { uses: frequencyOf(record).uses, orderKey };

/** Estimated bytes by its layers; empty if unknown. */
export const freesJson = ({ chain, frees }: ImageCandidate): JsonObject => ({
  chainId: chain,
  freesBytes: frees?.estimateBytes,
  freesAtLeastBytes: frees?.lowerBytes,
  freesAtMostBytes: frees?.upperBytes,
});

/** What the pass is expected to free. */
export const plannedBytes = ({ candidates }: ImagePlan): bigint =>
  candidates.reduce((sum, it) => (it.expected ? sum + expectedBytes(it) : sum), 0n);

export const keptJson = (kept: KeptImage): JsonObject => ({
  ...imageJson(kept.image),
  ...recordJson(kept.record),
  ...orderJson(kept),
  reason: imageKeep.json(kept.reason),
  tried: kept.tried,
});

const containerPlanJson = (plan: ContainerPlan): JsonObject => ({
  purpose: plan.purpose,
  now: timeOf(plan.now),
  blocks: plan.blocks.map(imageBlock.json),
  podSource: { ...plan.podSource, text: podSourceWords(plan.podSource) },
  containers: lazily(plan.containers, plannedContainerJson),
  sandboxes: lazily(plan.sandboxes, plannedSandboxJson),
  podLogs: lazily(plan.podLogs, ({ directory, decision }) => ({
    entry: directory.entry,
    podUid: directory.uid,
    ...decisionJson(decision, logReasons),
  })),
  danglingLinks: plan.links.map(({ link }) => jsonOf(link, "entry", "containerId")),
  ...jsonOf(plan, "strays", "logsError"),
});

export const plannedContainerJson = (planned: PlannedContainer): JsonObject => ({
  ...containerJson(planned.container),
  stopFirst: planned.stopFirst,
  ...decisionJson(planned.decision, containerReasons),
});

export const plannedSandboxJson = ({ sandbox, decision }: PlannedSandbox): JsonObject => ({
  ...sandboxJson(sandbox),
  ...decisionJson(decision, sandboxReasons),
});

const decisionJson = <Reason extends Kind>(
  decision: Decision<Reason, Reason>,
  reasons: Reasons<Reason>,
): JsonObject => ({
  decision: decision.kind,
  reason: reasons.json(decision.reason),
  tried: decision.tried,
});

/** Images that are only too young, and those that `keepPreloaded` alone keeps; "" if there are none. */
export const keptBackWords = (plan: ImagePlan): string =>
  [youngWords(plan), preloadedWords(plan)].filter((it) => it !== "").join("; ");

/** What only `keepPreloaded` keeps. */
export const preloadedOf = (plan: ImagePlan | null): ImagePlan["kept"] =>
  plan?.keepsPreloaded === true
    ? plan.kept.filter(({ reason }) => reason.kind === "keep-preloaded")
    : [];

/** The plan of the last pass that evaluated images. */
export const lastImagePlan = (passes: readonly Pass[]): ImagePlan | null =>
  passes
    .filter(({ plan }) => plan.images !== null)
    .toSorted((one, other) => compared(other.endedAt, one.endedAt))[0]?.plan.images ?? null;

/** `keepPreloaded alone keeps 39 images (4.1 GiB)`, and why it may be every image; "" if it keeps none. */
export function preloadedWords(plan: ImagePlan | null): string {
  const kept = preloadedOf(plan);
  if (kept.length === 0) return "";
  const bytes = kept.reduce((sum, { image }) => sum + image.sizeBytes, 0n);
  const messages = kept.flatMap(({ reason }) =>
    reason.kind === "keep-preloaded" && reason.message !== undefined ? [reason.message] : [],
  );
  const unread =
    messages.length === 0
      ? ""
      : `, ${messages.length} of them because the kubelet's pull records cannot be read: ${clean(messages[0] ?? "")}`;
  return `keepPreloaded alone keeps ${counted(kept.length, "image")} (${humanBytes(bytes)})${unread}`;
}

/** `39 images (4.1 GiB) become removable in 1m48s`, for images that are only too young; "" if there are none. */
export function youngWords({ kept }: ImagePlan): string {
  const young = kept.flatMap(({ image, reason }) =>
    reason.kind === "too-young"
      ? [{ sizeBytes: image.sizeBytes, left: reason.minimumAge - reason.age }]
      : [],
  );
  if (young.length === 0) return "";
  const bytes = young.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  const last = young.reduce((most, { left }) => (left > most ? left : most), 0n);
  const become = young.length === 1 ? "becomes" : "become";
  const together = young.every(({ left }) => left === last);
  return `${counted(young.length, "image")} (${humanBytes(bytes)}) ${become} removable ${together ? "in" : "within"} ${humanDuration(duration(last))}`;
}
