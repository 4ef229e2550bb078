/** Judges candidates again on fresh facts, just before their removal. */
import type { ImageCandidate } from "../../model/plan.ts";
import type { ImageBlock, ImageKeepReason } from "../../model/reason.ts";
import type { Facts } from "../facts.ts";
import { namesText } from "./image-index.ts";
import { judgeImages } from "./judge.ts";
import { protectionOf } from "./protect.ts";

/** Why a candidate is kept after all; `null`: it may be removed. */
export type Recheck = (candidate: ImageCandidate) => ImageKeepReason | null;

/**
 * Judges the node once; a candidate then costs a lookup. `input.snapshot` is the plan's with fresh lists, image volumes
 * and resolutions. Its clocks and `input.ledger` stay those of the plan, so that no image ages while the pass runs. A
 * reason of kind `blocked` holds for every candidate on these facts.
 */
export function recheckImages(input: Facts): Recheck {
  // A container that the plan removed first is no longer listed.
  const judgement = judgeImages(input, { without: new Set(), selection: null });
  const [block] = judgement.blocks;
  if (block !== undefined) return () => blocked(block);
  const context = judgement.context();
  return (candidate) => {
    const subject = judgement.image(candidate.image.id);
    if (subject === undefined) return changed("it is no longer listed");
    // The kubelet removes by ID whatever the names are.
    if (
      input.limits.images.compat === "none" &&
      namesText(subject.image) !== namesText(candidate.image)
    )
      return changed("its tags or digests changed");
    const forAge = candidate.triggers.some(({ kind }) => kind === "age");
    return protectionOf(subject, context, forAge ? "age" : "any").reason;
  };
}

export const changed = (what: string): ImageKeepReason => ({ kind: "changed", what });

/** Names what is wrong with the node's use or with the keep rules, for the record of the pass. */
function blocked(block: ImageBlock): ImageKeepReason {
  const faults =
    block.kind === "usage-unknown"
      ? block.unknown.map(({ subject, message }) => `${subject}: ${message}`)
      : block.kind === "keep-rules-invalid"
        ? block.problems.map(({ source, message }) => `${source}: ${message}`)
        : [];
  if (faults.length === 0) return { kind: "blocked", block: block.kind };
  return { kind: "blocked", block: block.kind, detail: faults.join("; ") };
}
