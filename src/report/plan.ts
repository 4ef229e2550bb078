/** Document `Plan`: what a pass would do now, with a reason for each image, container, sandbox and log. */

import { frequencyOf } from "../model/frequency.ts";
import type {
  ContainerPlan,
  Decision,
  ImageCandidate,
  ImagePlan,
  KeptImage,
  Plan,
  PlannedContainer,
  PlannedSandbox,
} from "../model/plan.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
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
import { preloadedOf } from "./kept-back.ts";
import type { Kind, Reasons } from "./reasons.ts";

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

/** Estimated bytes by its layers, else the reported size. */
export const expectedBytes = ({ frees, image }: ImageCandidate): bigint =>
  frees?.estimateBytes ?? image.sizeBytes;

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
