/** Judges one candidate again on fresh facts, just before its removal. */
import type { ImageCandidate } from "../model/plan.ts";
import type { ImageBlock, ImageKeepReason } from "../model/reason.ts";
import type { Image } from "../model/snapshot.ts";
import { namesText } from "./image-index.ts";
import { type JudgeImages, judgeImages } from "./judge.ts";
import { protectionOf } from "./protect.ts";

export type Recheck =
  /** It may go; `image` is as it is listed now. */
  | { readonly kind: "remove"; readonly image: Image }
  /** It stays; the next candidate may go. */
  | { readonly kind: "skip"; readonly reason: ImageKeepReason }
  /** No image may go on these facts. */
  | { readonly kind: "stop"; readonly block: ImageBlock };

/**
 * `input.snapshot` carries the fresh lists, image volumes and resolutions, in the snapshot that the plan was made on:
 * its clocks stay those of the plan, so that no image grows old while the pass runs. `input.ledger` is the plan's.
 */
export function recheckImage(candidate: ImageCandidate, input: JudgeImages): Recheck {
  const { images, context, blocks } = judgeImages(input);
  const [block] = blocks;
  if (block !== undefined) return { kind: "stop", block };
  const subject = images.find(({ image }) => image.id === candidate.image.id);
  if (subject === undefined) return skip("it is no longer listed");
  // The kubelet removes by ID whatever the names are by then.
  if (input.limits.compat === "none" && namesText(subject.image) !== namesText(candidate.image)) {
    return skip("its tags or digests are other ones than when the plan was made");
  }
  const forAge = candidate.triggers.some(({ kind }) => kind === "age");
  const { reason } = protectionOf(subject, context, forAge ? "age" : "any");
  return reason === null ? { kind: "remove", image: subject.image } : { kind: "skip", reason };
}

const skip = (what: string): Recheck => ({ kind: "skip", reason: { kind: "changed", what } });
