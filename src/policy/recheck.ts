/** Judges one candidate again on fresh facts, just before its removal. */
import type { ImageCandidate } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import { namesText } from "./image-index.ts";
import { type JudgeImages, judgeImages } from "./judge.ts";
import { protectionOf } from "./protect.ts";

/**
 * Why the candidate may not go after all; `null`: it may. `input.snapshot` is the plan's with fresh lists, image volumes
 * and resolutions: its clocks stay those of the plan, so that no image grows old while the pass runs, and `input.ledger`
 * is the plan's too. Starting pods are no matter here: the look that brought the facts has waited for them.
 */
export function recheckImage(
  candidate: ImageCandidate,
  input: JudgeImages,
): ImageKeepReason | null {
  const { images, context, blocks } = judgeImages(input);
  const block = blocks.find(({ kind }) => kind !== "pod-starting");
  if (block !== undefined) return { kind: "blocked", block: block.kind };
  const subject = images.find(({ image }) => image.id === candidate.image.id);
  if (subject === undefined) return changed("it is no longer listed");
  // The kubelet removes by ID whatever the names are by then.
  if (input.limits.compat === "none" && namesText(subject.image) !== namesText(candidate.image)) {
    return changed("its tags or digests are other ones than when the plan was made");
  }
  const forAge = candidate.triggers.some(({ kind }) => kind === "age");
  return protectionOf(subject, context, forAge ? "age" : "any").reason;
}

const changed = (what: string): ImageKeepReason => ({ kind: "changed", what });
