/** The ledger with `compat: kubelet`: a process forgets images, and leaves valid records of them on disk. */

import { volatileMemory } from "../gc/ports.ts";
import type { PodUid } from "../model/ids.ts";
import {
  emptyLedger,
  type ImageRecord,
  type Ledger,
  type PodRecord,
  unusedRecord,
} from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { LedgerMemory } from "../model/ports.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Instant, type ObservedTime, watched } from "../model/time.ts";
import { isSettled } from "../policy/image/pulls.ts";
import { observedTime } from "../policy/observed-time.ts";
import type { Recorder } from "../store/recorder.ts";

/** Where and when a process with `compat: kubelet` starts. */
export interface KubeletStart {
  readonly clocks: Clocks;
  readonly limits: Pick<MemoryLimits, "bootGrace" | "detectionPeriod">;
}

export function kubeletMemory(
  recorder: Pick<Recorder, "ledger" | "saveLedger">,
  start: KubeletStart,
): LedgerMemory {
  const memory = volatileMemory(forgotten(recorder.ledger(), start));
  return {
    current: () => memory.current(),
    replace: (next) => {
      const { keepDirectories, pods, outlivedPulls } = memory.current();
      const learned =
        next.keepDirectories.length > keepDirectories.length ||
        next.pods !== pods ||
        next.outlivedPulls !== outlivedPulls;
      memory.replace(next);
      const before = recorder.ledger();
      const images = withPulls(stillThere(before.images, next.images), next.images, before);
      if (learned || images !== before.images)
        recorder.saveLedger({
          ...before,
          ...observedNow(before, next, start.limits),
          images,
          keepDirectories: next.keepDirectories,
          outlivedPulls: since(next.outlivedPulls, before.watched),
          pods: onClock(next.pods, (uid, since) => before.pods.get(uid)?.[since] ?? before.watched),
        });
    },
  };
}

/**
 * The clocks by which the next process knows how long ago this was. Observed time on disk stands still, because no use of
 * an image is recorded there; and a boot that this process saw starts the grace period of the next one that has any.
 */
const observedNow = (
  before: Ledger,
  { bootId, observedAt, uptime }: Ledger,
  { bootGrace }: KubeletStart["limits"],
): Partial<Ledger> => ({
  ...(before.bootId === bootId
    ? {}
    : { graceUntil: watched(before.watched + bootGrace), graceReason: "boot" }),
  bootId,
  observedAt,
  uptime,
});

/**
 * The ledger of a kubelet that just started: no images. Keep rules apply in every mode, and only the ledger knows whether a
 * missing keep directory once existed. What a kubelet knows of pods at once, crigc knows after two passes far enough
 * apart, of which another process may have made the first.
 */
export function forgotten(ledger: Ledger, { clocks, limits }: KubeletStart): Ledger {
  const ago = observedTime(ledger, clocks, limits).watched - ledger.watched;
  return {
    ...emptyLedger,
    keepDirectories: ledger.keepDirectories,
    outlivedPulls: since(ledger.outlivedPulls, emptyLedger.watched),
    images: seenNow(ledger.images, clocks.wall),
    pods: onClock(ledger.pods, () => watched(emptyLedger.watched - ago)),
  };
}

/** Only what keep rules need: the names of images, and whether the kubelet pulled them. */
const seenNow = (images: Ledger["images"], firstSeenAt: Instant): Ledger["images"] =>
  new Map(
    [...images].map(([id, { names, earlierNames, sizeBytes, pull }]) => {
      const firstSeenWatched = emptyLedger.watched;
      const known = { firstSeenAt, firstSeenWatched, names, earlierNames, sizeBytes, pull };
      return [id, unusedRecord(known)];
    }),
  );

/** What is settled stays, also of images that the ledger on disk does not have: they are new there. */
function withPulls(
  images: Ledger["images"],
  next: Ledger["images"],
  { watched: firstSeenWatched }: Ledger,
): Ledger["images"] {
  const settled = [...next].filter(([id, it]) => isSettled(it) && images.get(id)?.pull !== it.pull);
  if (settled.length === 0) return images;
  const records = settled.map(([id, { pull, firstSeenAt, names, sizeBytes }]) => {
    const fresh = unusedRecord({ firstSeenAt, firstSeenWatched, names, sizeBytes });
    return [id, { ...(images.get(id) ?? fresh), pull }] as const;
  });
  return new Map([...images, ...records]);
}

const since = (outlived: Ledger["outlivedPulls"], at: ObservedTime): Ledger["outlivedPulls"] =>
  new Map([...outlived.keys()].map((key) => [key, at]));

/** The same records on another clock: this process counts time from its start, and that of the ledger on disk does not advance. */
function onClock(
  pods: Ledger["pods"],
  timeOf: (uid: PodUid, since: "absentSinceWatched" | "deadSinceWatched") => ObservedTime,
): Ledger["pods"] {
  const moved = (uid: PodUid, record: PodRecord): PodRecord => ({
    ...record,
    absentSinceWatched:
      record.absentSinceWatched === null ? null : timeOf(uid, "absentSinceWatched"),
    deadSinceWatched: record.deadSinceWatched === null ? null : timeOf(uid, "deadSinceWatched"),
  });
  return new Map([...pods].map(([uid, record]) => [uid, moved(uid, record)]));
}

/** An image that vanished or was renamed is new on disk too; its earlier names stay. */
function stillThere(before: Ledger["images"], next: Ledger["images"]): Ledger["images"] {
  const images = new Map(before);
  let changes = 0;
  for (const [id, known] of before) {
    const now = next.get(id);
    if (known.names === now?.names) continue;
    if (now === undefined) images.delete(id);
    else {
      const renamed = renamedTo(known, now);
      const isSame = renamed.earlierNames.join() === known.earlierNames.join();
      if (isSame && known.names === OTHER_NAMES) continue;
      images.set(id, renamed);
    }
    changes += 1;
  }
  return changes === 0 ? before : images;
}

/** Matches no image's names, so that any image counts as renamed. */
const OTHER_NAMES = "\n";

const renamedTo = (known: ImageRecord, { names, earlierNames }: ImageRecord): ImageRecord => ({
  ...known,
  names: OTHER_NAMES,
  earlierNames: [...new Set([...names.split("\n"), ...earlierNames])].filter((name) => name !== ""),
});
