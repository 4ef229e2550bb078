/** When a pass counts as failed, for the rule that turns repeated failures into events. */

import { assertNever } from "../model/assert.ts";
import type { ImageOutcome } from "../model/outcome.ts";
import type { Pass } from "../model/pass.ts";
import type { ImageBlock } from "../model/reason.ts";
import { imageBlock, imageKeep } from "../report/image-reasons.ts";

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

function imageFailure(pass: Pass, images: ImageOutcome): string | null {
  const tried = images.items.filter(({ result }) => result.kind !== "skipped");
  const failed = tried.flatMap(({ result }) => (result.kind === "failed" ? [result.message] : []));
  if (failed.length > 0)
    return `${failed.length} of ${tried.length} image removals failed: ${failed[0]}`;
  switch (images.end) {
    case "candidates-exhausted":
      return images.wantedBytes === null ? null : "cannot free enough space";
    case "invalid-capacity":
      return "invalid figures of the image filesystem";
    case "observation-failed":
      return images.error ?? "a list or a measurement failed";
    case "blocked":
      return blockFailure(pass);
    case "nothing-to-do":
    case "target-reached":
    case "own-gain-reached":
    case "futile":
    case "nothing-freed":
    case "removal-limit":
    case "settle-exhausted":
    case "age-removal-errors":
    case "stopped":
    case "dry-run":
      return null;
    default:
      return assertNever(images.end);
  }
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

const isFailure = (kind: ImageBlock["kind"]): boolean =>
  ["keep-rules-invalid", "usage-unknown", "pods-unknown", "pods-incomplete"].includes(kind);

/** What blocked the images of a pass, from its plan on or in the middle of it. */
export function blocksOf({
  plan,
  images,
}: Pick<Pass, "plan" | "images">): readonly ImageBlock["kind"][] {
  const planned = (plan.images?.blocks ?? []).map(({ kind }) => kind);
  const met = (images?.items ?? []).flatMap(({ result }) =>
    result.kind === "skipped" && result.reason.kind === "blocked" ? [result.reason.block] : [],
  );
  return [...planned, ...met];
}
