/** Reasons that stop all image removal whatever the trigger, except the state of the disk. */
import type { Plan } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { KeepProblem } from "../model/snapshot.ts";
import { watchedSince } from "../model/time.ts";
import { podSourceForImages, podView } from "./container/pod-source.ts";
import type { Facts } from "./facts.ts";
import { creationBlock } from "./image/creations.ts";
import type { Usage } from "./image/usage.ts";

/** The blocks of images, in the order in which they are reported; empty if images may be removed. */
export const imageBlocks = (
  facts: Facts,
  usage: Usage,
  keepProblems: readonly KeepProblem[],
): readonly ImageBlock[] => [
  ...standingBlocks(facts),
  ...keepRulesInvalid(keepProblems),
  ...podsUnknown(facts),
  ...usageUnknown(usage),
  ...creationBlock(facts),
];

/** The blocks of both containers and images: a hold, and the grace period after a boot. */
export function standingBlocks({
  hold,
  ledger,
  limits,
}: Pick<Facts, "hold" | "ledger" | "limits">): readonly ImageBlock[] {
  const held: readonly ImageBlock[] =
    hold.kind === "none" ? [] : [{ kind: "on-hold", until: hold.until, reason: hold.reason }];
  const { graceUntil, graceReason, watched } = ledger;
  if (limits.images.compat === "kubelet" || graceUntil === null || watched >= graceUntil)
    return held;
  const remaining = watchedSince(graceUntil, watched);
  return [...held, { kind: "boot-grace", because: graceReason ?? "boot", remaining }];
}

const keepRulesInvalid = (problems: readonly KeepProblem[]): readonly ImageBlock[] =>
  problems.length === 0 ? [] : [{ kind: "keep-rules-invalid", problems }];

/** Only the kubelet's own list names the images of pods' specifications, so it has to be present and complete. */
function podsUnknown(facts: Facts): readonly ImageBlock[] {
  const { pods } = facts.snapshot;
  if (pods.kind === "none" || pods.source !== "kubelet-api") return [];
  if (pods.kind === "failed") return [{ kind: "pods-unknown", message: pods.message }];
  const source = podSourceForImages(podView(facts), facts.ledger.pods);
  if (source?.kind !== "not-ready") return [];
  const { why, passes } = source;
  return [{ kind: "pods-incomplete", message: why, ...(passes && { passes }) }];
}

const usageUnknown = ({ unknown }: Usage): readonly ImageBlock[] =>
  unknown.length === 0 ? [] : [{ kind: "usage-unknown", unknown }];

/** Whether only containers that are being created block images, and there is something to remove. */
export function waitsForCreations(plan: Plan): boolean {
  const blocks = plan.images?.blocks ?? [];
  return (
    blocks.length > 0 &&
    blocks.every((block) => block.kind === "pod-starting") &&
    plan.images?.triggers.length !== 0
  );
}
