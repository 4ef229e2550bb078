/** Document `Plan`: what a pass would do now, with a reason for each image, container, sandbox and log; and words of plans. */

import { assertNever } from "../model/errors.ts";
import {
  type ContainerPlan,
  type Decision,
  type ImageCandidate,
  type ImagePlan,
  type ImageTarget,
  type KeptImage,
  type Plan,
  type PlannedContainer,
  type PlannedSandbox,
} from "../model/plan.ts";
import { duration, toRfc3339 } from "../model/time.ts";
import { type PodReason, podReasons, podSourceWords } from "./container-reasons.ts";
import { usageJson } from "./disk.ts";
import {
  containerJson,
  document,
  imageJson,
  jsonOf,
  lazily,
  recordJson,
  runtimeJson,
  sandboxJson,
  type SeenNode,
} from "./document.ts";
import { imageBlock, imageKeep, imageTrigger, planNote } from "./image-reasons.ts";
import { clean } from "./terminal.ts";
import { counted, humanBytes, humanDuration } from "./words.ts";

export type PlanDocument = ReturnType<typeof planDocument>;

export const planDocument = ({
  plan,
  snapshot,
}: {
  readonly plan: Plan;
  readonly snapshot: SeenNode;
}) =>
  document("Plan", {
    observedAt: toRfc3339(snapshot.observedAt),
    runtime: runtimeJson(snapshot.runtime),
    ...planBody(plan),
  });

/** Both halves; `null` if not requested. */
export const planBody = (plan: Plan) => ({
  images: plan.images === null ? null : imagePlanJson(plan.images),
  containers: plan.containers === null ? null : containerPlanJson(plan.containers),
});

export type ImagePlanJson = ReturnType<typeof imagePlanJson>;

const imagePlanJson = (plan: ImagePlan) => ({
  ...jsonOf(plan, "purpose", "now"),
  blocks: plan.blocks.map(imageBlock.json),
  triggers: plan.triggers.map(imageTrigger.json),
  targets: plan.targets.map((target) => ({
    ...target,
    trigger: imageTrigger.json(target.trigger),
    text: targetWords(atMountpoint(target, plan)),
  })),
  usage: plan.usage.map(usageJson),
  futility: plan.futility.map((it) => ({
    ...jsonOf(it, "filesystem", "boundBytes", "neededBytes", "futile", "breakdown"),
    boundInodes: it.inodes?.bound,
    neededInodes: it.inodes?.needed,
  })),
  notes: plan.notes.map(planNote.text),
  expectedRemovals: plan.candidates.filter((it) => it.expected).length,
  expectedFreedBytes: expectedFreedBytes(plan),
  youngText: youngWords(plan) || null,
  candidates: lazily(plan.candidates, (candidate, index) => candidateJson(candidate, index + 1)),
  kept: lazily(plan.kept, keptJson),
});

/** With the mount point instead of the path that the runtime reports, as in the usage. */
function atMountpoint(target: ImageTarget, { usage }: ImagePlan): ImageTarget {
  if (!("path" in target)) return target;
  const at = usage.find(({ filesystem }) => filesystem.path === target.path);
  return at === undefined ? target : { ...target, path: at.filesystem.mountpoint };
}

/** By the estimate; the pass measures. */
const expectedFreedBytes = ({ candidates }: ImagePlan): bigint =>
  candidates.reduce((sum, it) => (it.expected ? sum + it.estimateBytes : sum), 0n);

export type CandidateJson = ReturnType<typeof candidateJson>;

/** `place` counts from 1 in the order of removal. */
export const candidateJson = (candidate: ImageCandidate, place: number) => ({
  place,
  ...imageJson(candidate.image),
  ...recordJson(candidate.record),
  ...jsonOf(candidate, "unusedFor"),
  triggers: candidate.triggers.map(imageTrigger.json),
  expected: candidate.expected,
  ...jsonOf(candidate, "estimateBytes"),
});

export type KeptJson = ReturnType<typeof keptJson>;

export const keptJson = (kept: KeptImage) => ({
  ...imageJson(kept.image),
  ...recordJson(kept.record),
  reason: imageKeep.json(kept.reason),
  tried: kept.tried,
});

export type ContainerPlanJson = ReturnType<typeof containerPlanJson>;

const containerPlanJson = (plan: ContainerPlan) => ({
  ...jsonOf(plan, "purpose", "now"),
  blocks: plan.blocks.map(imageBlock.json),
  podSource: { ...plan.podSource, text: podSourceWords(plan.podSource) },
  containers: lazily(plan.containers, plannedContainerJson),
  sandboxes: lazily(plan.sandboxes, plannedSandboxJson),
  podLogs: lazily(plan.podLogs, ({ directory, decision }) => ({
    entry: directory.entry,
    podUid: directory.uid,
    ...decisionJson(decision),
  })),
  danglingLinks: plan.links.map((link) => jsonOf(link, "entry", "podUid", "name", "attempt")),
  ...jsonOf(plan, "strays", "logsError"),
});

export const plannedContainerJson = (planned: PlannedContainer) => ({
  ...containerJson(planned.container),
  stopFirst: planned.stopFirst,
  ...decisionJson(planned.decision),
});

export const plannedSandboxJson = ({ sandbox, decision }: PlannedSandbox) => ({
  ...sandboxJson(sandbox),
  ...decisionJson(decision),
});

export type DecisionJson = ReturnType<typeof decisionJson>;

const decisionJson = ({ kind, reason, tried }: Decision<PodReason, PodReason>) => ({
  decision: kind,
  reason: podReasons.json(reason),
  tried,
});

/** A target of a pass as an imperative: what to free, and why. */
export function targetWords(target: ImageTarget): string {
  const why = imageTrigger.text(target.trigger);
  switch (target.kind) {
    case "available-bytes":
      return `free ${humanBytes(target.wantedBytes)} on ${clean(target.path)} (to ${humanBytes(target.availableBytes)} available): ${why}`;
    case "free-inodes":
      return `free ${counted(target.wantedInodes, "inode")} on ${clean(target.path)} (to ${target.inodesFree} free): ${why}`;
    case "store-bytes":
      return `shrink the image store by ${humanBytes(target.wantedBytes)} (to ${humanBytes(target.maximumBytes)}): ${why}`;
    case "everything":
      return `remove every candidate: ${why}`;
    default:
      return assertNever(target);
  }
}

export const STOP_WORDS = "the disk is measured after each removal";

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
