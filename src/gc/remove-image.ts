/**
 * Removes one image:
 * 1. Its ledger record ends before the call: an image that comes back before the next observation must not count as the old
 *    one, even if this process ends before the runtime answers.
 * 2. The answer proves nothing either way; `ImageStatus` of the ID does. If the image no longer exists, it was removed.
 * 3. Success, but the image still exists: a ghost, which later passes skip for a while. crigc tries no other name of it:
 *    CRI-O removes none of a read-only store by one, and would then list the image twice.
 * 4. Error, and the image still exists: failed. The record is restored, and the next pass tries again.
 *    If somebody else is removing it, crigc waits a little; if it is still there, it is skipped, and new if it comes back.
 * 5. No answer, and the image still exists: failed. It may still be removed and pulled again before the next observation,
 *    so later passes skip it like a ghost; if the runtime went away during the call, the first time not at all.
 *    Under pressure, too, its whole deadline is awaited: its space may still come, and meanwhile another removal could be one
 *    too many.
 * 6. Both calls are refused: failed. A corrupt image, for which a runtime does neither, must not keep the others.
 * 7. If `ImageStatus` fails in another way, the result is unknown, and the pass ends. If it timed out, later passes skip the
 *    image like a ghost, so that each of them gets further.
 */

import { type FailureCode, failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { ImageResult } from "../model/pass.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type {
  DiskReader,
  LedgerMemory,
  RuntimeReader,
  RuntimeWriter,
  Timer,
} from "../model/ports.ts";
import type { Image, RuntimeInfo, Snapshot } from "../model/snapshot.ts";
import { forgetImages, type GhostAttempt, recallImage, rememberGhost } from "../policy/remember.ts";
import { RECORDS_BESIDES, roomToRecord } from "../policy/space/disk.ts";
import { humanBytes } from "../report/words.ts";
import type { OthersRemovals } from "./calls.ts";

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
  readonly timer: Timer;
  /** The runtime as observed before. */
  readonly info: RuntimeInfo;
  readonly others: OthersRemovals;
}

/** `stop`: aborts when nobody wants to wait any longer. */
type Verifying = Removing & { readonly stop: AbortSignal };

/**
 * Why a removal would lose an image and free nothing; `null` if it would not. CRI-O keeps lists where its images are, where
 * its containers are, and beside its socket, and writes each as a new file.
 */
export async function lossWords(
  node: Snapshot,
  disk: Pick<DiskReader, "measure">,
): Promise<string | null> {
  const room = roomToRecord(node, node.images.length);
  if (room === 0n) return null;
  const stores = node.filesystems.filter(
    ({ roles }) => roles.includes("imagefs") || roles.includes("containerfs"),
  );
  const socket = node.runtime.endpoint.slice("unix://".length);
  const places = [
    ...stores.map(({ path }) => ({ path, words: path, needed: room })),
    {
      path: socket,
      words: `the filesystem of ${socket}`,
      needed: roomToRecord(node, node.containers.length),
    },
  ];
  for (const { path, words, needed } of places) {
    const { capacityBytes, freeBytes = needed, inodes, inodesFree } = await disk.measure(path);
    // Without the figure, which changes all the time: the log folds only lines that are identical.
    const loss = (least: string): string =>
      `${words} has ${least} free, without which CRI-O loses an image whose removal frees nothing; delete other files first`;
    // A tmpfs without a limit, and ramfs, have 0 of 0 bytes free, btrfs 0 of 0 inodes.
    if (capacityBytes > 0n && freeBytes < needed) return loss(`less than ${humanBytes(needed)}`);
    if (inodes > 0n && inodesFree < RECORDS_BESIDES)
      return loss(`fewer than ${RECORDS_BESIDES} inodes`);
  }
  return null;
}

/** How long after a stop was requested a look at what came of a removal may take: a runtime that froze would take its whole deadline once more. */
const STOP_PATIENCE_MS = 10_000;

/** Never rejects. Not to be interrupted: a removal in flight is finished. After `stop`, what came of it is looked at for a moment only. */
export async function removeImage(
  removing: Removing,
  candidate: ImageCandidate,
  stop: AbortSignal,
): Promise<ImageRemoved> {
  const { id } = candidate.image;
  const before = removing.memory.current().images.get(id);
  forget(removing, id);
  const failure = await failureOf(() => removing.writer.removeImage(id));
  const patience = patienceAfter(stop, removing.timer);
  const removed = await verified({ ...removing, stop: patience.signal }, id, failure);
  patience.end();
  const { memory } = removing;
  const mayBeGone = removed.kind === "gone" || removed.kind === "busy";
  if (mayBeGone || (removed.kind === "unseen" && failure === null)) {
    // An observation may have happened while the answer was pending.
    forget(removing, id);
    return removed;
  }
  const record = before ?? candidate.record;
  const recalled =
    before === undefined ? memory.current() : recallImage(memory.current(), id, before);
  const mayGoYet = removed.kind === "ghost" || removed.isUnanswered;
  const attempt = { end: endOf(removed.kind, failure), runtime: removing.info };
  memory.replace(
    mayGoYet ? rememberGhost(recalled, { image: { id }, record, ...attempt }) : recalled,
  );
  return removed;
}

/** While the runtime restarts, its socket may be missing. */
const CUT_OFF: readonly FailureCode[] = ["unreachable", "absent"];

function endOf(kind: ImageRemoved["kind"], failure: unknown): GhostAttempt["end"] {
  if (kind === "ghost") return "answered";
  return CUT_OFF.includes(failureCode(failure)) ? "cut-off" : "unanswered";
}

const forget = ({ memory }: Removing, id: ImageId): void =>
  memory.replace(forgetImages(memory.current(), [id]));

async function failureOf(call: () => Promise<void>): Promise<unknown> {
  try {
    await call();
    return null;
  } catch (thrown) {
    return thrown;
  }
}

function patienceAfter(stop: AbortSignal, timer: Removing["timer"]) {
  const over = new AbortController();
  const patience = new AbortController();
  const begin = (): void =>
    void timer.sleep(STOP_PATIENCE_MS, over.signal).then(() => patience.abort());
  if (stop.aborted) begin();
  else stop.addEventListener("abort", begin, { signal: over.signal });
  return { signal: patience.signal, end: () => over.abort() };
}

async function verified(removing: Verifying, id: ImageId, failure: unknown): Promise<ImageRemoved> {
  const isUnanswered = wasUnanswered(failure);
  const ended = (kind: ImageRemoved["kind"]) => ({ kind, failure, isUnanswered, message: "" });
  const isThere = async () => (await statusOf(removing, id)) !== null;
  try {
    if (!(await isThere())) return ended("gone");
    if (failure === null) return ended("ghost");
    if (failureCode(failure) !== "busy") return ended("failed");
    return ended((await removing.others.fateAfter(failure, isThere)) === "gone" ? "gone" : "busy");
  } catch (thrown) {
    if (failure !== null && failureCode(thrown) === "failed") return ended("failed");
    const isSilent = isUnanswered || failureCode(thrown) === "deadline";
    return { ...ended("unseen"), isUnanswered: isSilent, message: messageOf(thrown) };
  }
}

const statusOf = ({ runtime, stop }: Verifying, reference: string): Promise<Image | null> =>
  runtime.imageStatus(reference, stop);

/** Removed according to the runtime; its space was not measured. */
export const unseen = (image: Image): ImageResult => ({
  kind: "removed",
  reportedBytes: image.sizeBytes,
  measuredBytes: 0n,
  settled: "not-seen",
});

export const failedResult = (thrown: unknown): ImageResult => ({
  kind: "failed",
  message: messageOf(thrown),
  code: failureCode(thrown),
});
