/**
 * Removes one image:
 * 1. Its ledger record ends before the call: an image that comes back before the next observation must not count as the old
 *    one, even if this process ends before the runtime answers.
 * 2. The answer proves nothing either way; `ImageStatus` of the ID does. If the image no longer exists, it was removed, but
 *    for a runtime without space: CRI-O loses the image then and keeps its layers.
 * 3. Success, but the image still exists: a ghost. crigc tries no other name of it: CRI-O removes none of a read-only store
 *    by one, and would then list the image twice.
 * 4. Error, and the image still exists: failed, or busy if somebody else is removing it. The record is restored, unless no
 *    answer came: the runtime may still remove it, and what is pulled then is new.
 * 5. Both calls are refused: failed. A corrupt image, for which a runtime does neither, must not keep the others.
 * 6. If `ImageStatus` fails in another way, the result is unknown, and the pass ends.
 */

import { failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { LedgerMemory, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
import { forgetImages, recallImage } from "../policy/remember.ts";

export interface ImageRemoved {
  /** `busy`: another removal of it is in progress. `unseen`: what came of it could not be read. */
  readonly kind: "gone" | "ghost" | "busy" | "failed" | "unseen";
  /** The error of the removal; `null` if it succeeded. */
  readonly failure: unknown;
  readonly isUnanswered: boolean;
  /** Why it is unseen. */
  readonly message: string;
}

export interface Removing {
  readonly runtime: Pick<RuntimeReader, "imageStatus">;
  readonly writer: Pick<RuntimeWriter, "removeImage">;
  readonly memory: LedgerMemory;
}

/** Never rejects, and never ends early: a removal in flight is finished. */
export async function removeImage(
  removing: Removing,
  candidate: ImageCandidate,
): Promise<ImageRemoved> {
  const { id } = candidate.image;
  const { memory } = removing;
  const before = memory.current().images.get(id);
  forget(memory, id);
  const failure = await failureOf(() => removing.writer.removeImage(id));
  const removed = await verified(removing, id, failure);
  const hasStayed = ["ghost", "failed"].includes(removed.kind) && !removed.isUnanswered;
  // An observation may have happened while the answer was pending.
  if (!hasStayed) forget(memory, id);
  else if (before !== undefined) memory.replace(recallImage(memory.current(), id, before));
  return removed;
}

const forget = (memory: LedgerMemory, id: ImageId): void =>
  memory.replace(forgetImages(memory.current(), [id]));

async function failureOf(call: () => Promise<void>): Promise<unknown> {
  try {
    await call();
    return null;
  } catch (thrown) {
    return thrown;
  }
}

async function verified(
  { runtime }: Removing,
  id: ImageId,
  failure: unknown,
): Promise<ImageRemoved> {
  const isUnanswered = wasUnanswered(failure);
  const ended = (kind: ImageRemoved["kind"]) => ({ kind, failure, isUnanswered, message: "" });
  if (isForWantOfSpace(failure)) return ended("failed");
  try {
    const isThere = (await runtime.imageStatus(id, new AbortController().signal)) !== null;
    if (!isThere) return ended("gone");
    if (failure === null) return ended("ghost");
    return ended(failureCode(failure) === "busy" ? "busy" : "failed");
  } catch (thrown) {
    if (failure !== null && failureCode(thrown) === "failed") return ended("failed");
    const isSilent = isUnanswered || failureCode(thrown) === "deadline";
    return { ...ended("unseen"), isUnanswered: isSilent, message: messageOf(thrown) };
  }
}

/** As the kernel words it, which runtimes pass on. */
export const isForWantOfSpace = (failure: unknown): boolean =>
  failure !== null && /no space left on device/i.test(messageOf(failure));
