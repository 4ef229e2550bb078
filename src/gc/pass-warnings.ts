/** What a pass is worth telling: its warning events, and whether it counts as failed. */

import type { PassId } from "../model/ids.ts";
import type { Event, EventReason, ImageOutcome, Pass } from "../model/pass.ts";
import type { Futility, ImagePlan } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Instant } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { breakdownWords } from "../report/disk-usage.ts";
import {
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  imagePassWords,
  invalidDiskCapacityWords,
  nothingFreedWords,
  PASS_ENDS,
} from "../report/pass-words.ts";
import { youngWords } from "../report/plan.ts";
import { imageBlock } from "../report/reasons.ts";
import { imageName } from "../report/words.ts";

/** Each image that is still listed, and one event at most beside them. */
export function imageEvents(
  plan: ImagePlan,
  outcome: ImageOutcome,
  { id: passId, now: at }: { readonly id: PassId; readonly now: Instant },
): readonly Event[] {
  const told: Told[] = outcome.ghosts.map((image) => [
    "GhostImage",
    `Image ${imageName(image)} is still listed after a successful removal; its space does not count as freed`,
  ]);
  const trouble = troubleOf(plan, outcome);
  if (trouble !== null) told.push(trouble);
  return told.map(([reason, message]) => ({ reason, message, at, passId }));
}

type Told = readonly [reason: EventReason, message: string];

/** What keeps a pass from freeing what it should; `null`: nothing that an operator must know. */
function troubleOf(plan: ImagePlan, outcome: ImageOutcome): Told | null {
  for (const block of plan.blocks) {
    if (block.kind === "keep-rules-invalid")
      return ["KeepRulesInvalid", capitalised(imageBlock.text(block))];
    if (block.kind === "invalid-capacity" && outcome.end === "invalid-capacity")
      return ["InvalidDiskCapacity", invalidDiskCapacityWords(block.message)];
  }
  const { end, nothingFreed } = outcome;
  if (end === "futile") return ["ImageGCFutile", withFilled(FUTILE, plan)];
  if (nothingFreed !== undefined)
    return ["NothingFreed", withFilled(nothingFreedWords(nothingFreed), plan)];
  const shortfall = shortfallWords(plan, outcome);
  return shortfall === null ? null : ["FreeDiskSpaceFailed", withFilled(shortfall, plan)];
}

/** What a pass frees too little of: three conditions, of which one may last while another begins. */
export function shortageOf(
  { targets }: ImagePlan,
  { wantedBytes }: ImageOutcome,
): "inodes" | "budget" | "bytes" {
  if (wantedBytes === null) return "inodes";
  // If a disk triggers too, it matters more to an operator.
  return targets.some(({ kind }) => kind === "available-bytes") ? "bytes" : "budget";
}

/** Every candidate was tried, none failed, and a target in bytes or inodes is not reached; else `null`. */
function shortfallWords(plan: ImagePlan, outcome: ImageOutcome): string | null {
  const { end, items } = outcome;
  const { targets } = plan;
  if (end !== "candidates-exhausted" || items.some(({ result }) => result.kind === "failed"))
    return null;
  const shortage = shortageOf(plan, outcome);
  if (shortage === "inodes")
    return targets.some(({ kind }) => kind === "free-inodes")
      ? "Cannot free enough inodes: no candidates left"
      : null;
  const budget = targets.find((target) => target.kind === "store-bytes");
  return budget !== undefined && shortage === "budget"
    ? budgetShortfallWords(budget, outcome)
    : freeDiskSpaceFailedWords(outcome, youngWords(plan));
}

const FUTILE =
  "Removing every unused image cannot free enough, so crigc keeps them; crigc df shows what else fills the disk";

/** Says once for each disk in question what fills it. */
function withFilled(words: string, { futility }: ImagePlan): string {
  const filled = [...new Set(futility.map(filledBy))].join("; ");
  return filled === "" ? words : `${words}: ${filled}`;
}

function filledBy({ filesystem, inodes, breakdown }: Futility): string {
  if (inodes === undefined) return `${filesystem} has ${breakdownWords(breakdown)}`;
  return `${filesystem} has ${inodes.free} of ${inodes.capacity} inodes free${inodes.bound === null ? "" : `, and images take at most ${inodes.bound} of the rest`}`;
}

/** Why a pass counts as failed; `null` if it did not. A futile pass did not fail. */
export function failureOf(pass: Pass): string | null {
  if (pass.error !== null) return pass.error;
  const { images, containers } = pass;
  const ofImages = images === null ? null : imageFailure(pass, images);
  // If removing images ended the pressure, container errors do not matter.
  if (ofImages !== null || (pass.kind === "pressure" && images !== null)) return ofImages;
  return containers?.errors.join("; ") || null;
}

/** Whether it was ended before its time, on request or by disk pressure, so that it has not succeeded either. */
export const isCutOff = ({ images, containers }: Pick<Pass, "images" | "containers">): boolean =>
  (images ?? containers)?.end === "stopped";

function imageFailure(pass: Pass, images: ImageOutcome): string | null {
  const tried = images.items.filter(({ result }) => result.kind !== "skipped");
  const failed = tried.flatMap(({ result }) => (result.kind === "failed" ? [result.message] : []));
  if (failed.length > 0)
    return `${failed.length} of ${tried.length} image removals failed: ${failed[0]}`;
  // A hold, a grace period or a pod that is starting is not a failure; invalid rules and unknown usage are.
  if (images.end === "blocked")
    return blocksOf(pass).some((kind) => ["keep-rules-invalid", "usage-unknown"].includes(kind))
      ? imagePassWords(pass)
      : null;
  const { words, isFailure = false } = PASS_ENDS[images.end];
  const wantsNothing = images.end === "candidates-exhausted" && images.wantedBytes === null;
  return !isFailure || wantsNothing ? null : (images.error ?? words);
}

/** What blocked the images of a pass, from its plan on or in the middle of it. */
export function blocksOf({
  plan,
  images,
}: Pick<Pass, "plan" | "images">): readonly RemovalBlock["kind"][] {
  const planned = (plan.images?.blocks ?? []).map(({ kind }) => kind);
  const met = (images?.items ?? []).flatMap(({ result }) =>
    result.kind === "skipped" && result.reason.kind === "blocked" ? [result.reason.block] : [],
  );
  return [...planned, ...met];
}
