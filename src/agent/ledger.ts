/** The ledger of a process: on disk; of a dry run; or with `compat: kubelet`, by which a process forgets images, and leaves valid records of them on disk. */

import type { Config } from "../config/config.ts";
import { volatileMemory } from "../gc/ports.ts";
import { HostError } from "../model/errors.ts";
import type { PodUid } from "../model/ids.ts";
import {
  emptyLedger,
  type ImageRecord,
  type Ledger,
  type PodRecord,
  unusedRecord,
} from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { LedgerMemory, WriterPresence } from "../model/ports.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Instant, type ObservedTime, watched } from "../model/time.ts";
import { readClocks } from "../node/clock.ts";
import type { LockPlaces } from "../node/lock.ts";
import { enterWriters, otherWriters } from "../node/writers.ts";
import { isSettled } from "../policy/image/pulls.ts";
import { observedTime } from "../policy/observed-time.ts";
import type { StoreNotice } from "../store/errors.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import type { Recorder } from "../store/recorder.ts";
import { processChannel } from "./state-process.ts";
import { lockPlaces, type Process } from "./world.ts";

/**
 * The ledger and the recorder; a dry run records nothing and has its own ledger. The kubelet forgets images when its process
 * ends; with compat kubelet crigc does so too, and leaves valid records on disk.
 */
export async function openState(
  config: Config,
  self: Process,
  notify: (notice: StoreNotice) => void,
): Promise<{ readonly memory: LedgerMemory; readonly recorder: Recorder | null }> {
  const directory = config.values.stateDir;
  if (config.values.dryRun) {
    const ledger = ledgerOnDisk(config, notify);
    return { memory: volatileMemory(knownLedger(config, ledger)), recorder: null };
  }
  const presence = enteredWriters(directory, lockPlaces(config, self));
  const channel = processChannel({ program: self.program, directory, writer: presence?.id });
  const recorder = await openStore({ channel, directory, presence, notify });
  const memory: LedgerMemory =
    config.values.compat === "kubelet"
      ? kubeletMemory(recorder, kubeletStart(config))
      : { current: () => recorder.ledger(), replace: (next) => recorder.saveLedger(next) };
  return { memory, recorder };
}

/** What a process that starts now knows. */
export const knownLedger = (config: Config, ledger: Ledger): Ledger =>
  config.values.compat === "kubelet" ? newProcessLedger(ledger, kubeletStart(config)) : ledger;

const kubeletStart = (config: Config): KubeletStart => ({
  clocks: readClocks(),
  limits: config.limits.memory,
});

export function ledgerOnDisk(config: Config, notify: (notice: StoreNotice) => void): Ledger {
  const { stateDir: directory } = config.values;
  const others = () => otherWriters(directory, lockPlaces(config, { userId: 0 }));
  using store = openStoreReader({ directory, notify, others });
  return store.ledger();
}

/** Where no lock can be taken, no pass begins either, and says why. */
function enteredWriters(directory: string, places: LockPlaces): WriterPresence | undefined {
  try {
    return enterWriters(directory, places);
  } catch (thrown) {
    if (thrown instanceof HostError) return undefined;
    throw thrown;
  }
}

/** Where and when a process with `compat: kubelet` starts. */
export interface KubeletStart {
  readonly clocks: Clocks;
  readonly limits: Pick<MemoryLimits, "bootGrace" | "detectionPeriod">;
}

export function kubeletMemory(
  recorder: Pick<Recorder, "ledger" | "saveLedger">,
  start: KubeletStart,
): LedgerMemory {
  const memory = volatileMemory(newProcessLedger(recorder.ledger(), start));
  return {
    current: () => memory.current(),
    replace: (next) => {
      const { keepDirectories, pods, outlivedPulls, heldUpPasses } = memory.current();
      const learned =
        next.keepDirectories.length > keepDirectories.length ||
        next.pods !== pods ||
        next.heldUpPasses !== heldUpPasses ||
        next.outlivedPulls !== outlivedPulls;
      memory.replace(next);
      const before = recorder.ledger();
      const images = withPulls(presentImages(before.images, next.images), next.images, before);
      if (learned || images !== before.images)
        recorder.saveLedger({
          ...before,
          ...clocksOf(before, next, start.limits),
          images,
          keepDirectories: next.keepDirectories,
          heldUpPasses: next.heldUpPasses,
          outlivedPulls: since(next.outlivedPulls, before.watched),
          pods: podsOnClock(
            next.pods,
            (uid, since) => before.pods.get(uid)?.[since] ?? before.watched,
          ),
        });
    },
  };
}

/**
 * The clocks by which the next process knows how long ago this was. Observed time on disk stands still, because no use of
 * an image is recorded there; and a boot that this process saw starts the grace period of the next one that has any.
 */
const clocksOf = (
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
export function newProcessLedger(ledger: Ledger, { clocks, limits }: KubeletStart): Ledger {
  const ago = observedTime(ledger, clocks, limits).watched - ledger.watched;
  return {
    ...emptyLedger,
    keepDirectories: ledger.keepDirectories,
    heldUpPasses: ledger.heldUpPasses,
    outlivedPulls: since(ledger.outlivedPulls, emptyLedger.watched),
    images: namesOnly(ledger.images, clocks.wall),
    pods: podsOnClock(ledger.pods, () => watched(emptyLedger.watched - ago)),
  };
}

/** Only what keep rules need: the names of images, and whether the kubelet pulled them. */
const namesOnly = (images: Ledger["images"], firstSeenAt: Instant): Ledger["images"] =>
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
  const settled = [...next].filter(([id, it]) => {
    const known = images.get(id)?.pull;
    // Another process may have seen the image come back.
    return isSettled(it) && known !== it.pull && known !== "no-record";
  });
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
function podsOnClock(
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
function presentImages(before: Ledger["images"], next: Ledger["images"]): Ledger["images"] {
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
