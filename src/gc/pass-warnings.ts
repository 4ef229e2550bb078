/** What a pass is worth telling: its warning events, and whether it counts as failed. */

import type { PassId } from "../model/ids.ts";
import { type Event, type ImageOutcome, type Pass } from "../model/pass.ts";
import type { Futility, ImagePlan } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Instant } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { breakdownWords } from "../report/disk-usage.ts";
import {
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  invalidDiskCapacityWords,
  nothingFreedWords,
  PASS_ENDS,
} from "../report/pass-words.ts";
import { youngWords } from "../report/plan.ts";
import { imageBlock, imageKeep } from "../report/reasons.ts";
import { imageName } from "../report/words.ts";

/** Warning events in the order of occurrence. */
export function imageEvents(
  plan: ImagePlan,
  outcome: ImageOutcome,
  pass: { readonly id: PassId; readonly now: Instant },
): readonly Event[] {
  const said: [Event["reason"], string][] = [];
  for (const block of plan.blocks) {
    if (block.kind === "keep-rules-invalid")
      said.push(["KeepRulesInvalid", capitalised(imageBlock.text(block))]);
    if (block.kind === "invalid-capacity" && outcome.end === "invalid-capacity")
      said.push(["InvalidDiskCapacity", invalidDiskCapacityWords(block.message)]);
  }
  for (const image of outcome.ghosts)
    said.push([
      "GhostImage",
      `Image ${imageName(image)} is still listed after a successful removal; its space does not count as freed`,
    ]);
  if (outcome.end === "futile") said.push(["ImageGCFutile", withFilled(FUTILE, plan)]);
  const { nothingFreed } = outcome;
  if (nothingFreed !== undefined)
    said.push(["NothingFreed", withFilled(nothingFreedWords(nothingFreed), plan)]);
  if (isShortfall(plan, outcome))
    said.push(["FreeDiskSpaceFailed", shortfallMessage(plan, outcome)]);
  return said.map(([reason, message]) => ({ reason, message, at: pass.now, passId: pass.id }));
}

/** Every candidate was tried, none failed, and a target in bytes or inodes is not reached. */
const isShortfall = (plan: ImagePlan, outcome: ImageOutcome): boolean =>
  outcome.end === "candidates-exhausted" &&
  (outcome.wantedBytes !== null || plan.targets.some(({ kind }) => kind === "free-inodes")) &&
  !outcome.items.some((item) => item.result.kind === "failed");

function shortfallMessage(plan: ImagePlan, outcome: ImageOutcome): string {
  const { wantedBytes, measuredFreedBytes: freedBytes } = outcome;
  if (wantedBytes === null)
    return withFilled("Cannot free enough inodes: no candidates left", plan);
  const budget = plan.targets.find((target) => target.kind === "store-bytes");
  // If a disk triggers too, it matters more to an operator.
  if (budget !== undefined && !plan.targets.some(({ kind }) => kind === "available-bytes"))
    return withFilled(budgetShortfallWords({ ...budget, freedBytes }), plan);
  const said = freeDiskSpaceFailedWords(
    {
      capacityBytes: outcome.capacityBytes ?? 0n,
      availableBytes: outcome.availableAfter ?? 0n,
      wantedBytes,
      freedBytes,
    },
    youngWords(plan),
  );
  return withFilled(said, plan);
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
  return containers === null || containers.errors.length === 0
    ? null
    : containers.errors.join("; ");
}

/** Whether it was ended before its time, on request or by disk pressure, so that it has not succeeded either. */
export const isCutOff = ({ images, containers }: Pick<Pass, "images" | "containers">): boolean =>
  (images ?? containers)?.end === "stopped";

function imageFailure(pass: Pass, images: ImageOutcome): string | null {
  const tried = images.items.filter(({ result }) => result.kind !== "skipped");
  const failed = tried.flatMap(({ result }) => (result.kind === "failed" ? [result.message] : []));
  if (failed.length > 0)
    return `${failed.length} of ${tried.length} image removals failed: ${failed[0]}`;
  if (images.end === "blocked") return blockFailure(pass);
  const { failure } = PASS_ENDS[images.end];
  const wantsNothing = images.end === "candidates-exhausted" && images.wantedBytes === null;
  return failure === undefined || wantsNothing ? null : (images.error ?? failure);
}

/** A hold, a grace period or a container being created is not a failure; invalid rules and unknown usage are. */
function blockFailure(pass: Pass): string | null {
  const planned = (pass.plan.images?.blocks ?? []).find(({ kind }) => isFailure(kind));
  if (planned !== undefined) return imageBlock.text(planned);
  for (const { result } of pass.images?.items ?? []) {
    if (result.kind !== "skipped" || result.reason.kind !== "blocked") continue;
    if (isFailure(result.reason.block)) return imageKeep.text(result.reason);
  }
  return null;
}

const isFailure = (kind: RemovalBlock["kind"]): boolean =>
  ["keep-rules-invalid", "usage-unknown"].includes(kind);

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
