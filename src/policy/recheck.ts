/** Judges one candidate again on fresh facts, just before its removal. */
import type { ImageCandidate } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import { namesText } from "./image-index.ts";
import { type JudgeImages, judgeImages } from "./judge.ts";
import { protectionOf } from "./protect.ts";

/**
 * Why the candidate may not go after all; `null`: it may. `input.snapshot` is the plan's with fresh lists, image volumes
 * and resolutions: its clocks stay those of the plan, so that no image grows old while the pass runs, and `input.ledger`
 * is the plan's too. A reason of kind `blocked` holds for every candidate on these facts: with `pod-starting` the pass
 * looks again a little later, until it has waited for `POD_START_WAIT` in all and says so in `waitedForPods`.
 */
export function recheckImage(
  candidate: ImageCandidate,
  input: JudgeImages,
): ImageKeepReason | null {
  const { images, context, blocks } = judgeImages(input);
  const [block] = blocks;
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
