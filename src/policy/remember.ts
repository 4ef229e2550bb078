/** Makes the next ledger from the last one and an observation. */
import type { ContainerId, ImageId, PodUid, SandboxId } from "../model/ids.ts";
import {
  type ContainerRecord,
  type Ghost,
  type ImageRecord,
  type Ledger,
  type PodRecord,
} from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { Image, RuntimeInfo, Snapshot } from "../model/snapshot.ts";
import { hours, type ObservedTime, watched } from "../model/time.ts";
import { ageNow, isSameBoot } from "./age-clock.ts";
import { keyed } from "./by-object.ts";
import { rememberCreations } from "./image/creations.ts";
import { distinctImages, namesText } from "./image/image-index.ts";
import type { Usage } from "./image/usage.ts";
import { rememberOrigins } from "./layer/origins.ts";
import { stillNothingFreed } from "./space/freed.ts";
import { releaseKey } from "./version.ts";

export interface Remember {
  readonly ledger: Ledger;
  readonly snapshot: Snapshot;
  /** All uses in this snapshot. */
  readonly usage: Usage;
  readonly limits: MemoryLimits;
  /** The pods' records as judged on this snapshot. */
  readonly pods: ReadonlyMap<PodUid, PodRecord>;
}

/** The next ledger. Applying the same snapshot twice changes nothing. */
export function remember(given: Remember): Ledger {
  const { snapshot } = given;
  const { clocks } = snapshot;
  const now = ageNow(given.ledger, clocks);
  const ledger = forgetUnlisted(given.ledger, snapshot.images);
  const containers = keyed(ledger.containers, snapshot.containers, ({ id }) =>
    containerRecord({ ledger, snapshot }, id),
  );
  const input = { ...given, ledger };
  const images = keyed(ledger.images, distinctImages(snapshot.images, "last"), (image) =>
    imageRecord(input, image, now),
  );
  return {
    ...graceOf(input, now),
    bootId: clocks.bootId,
    observedAt: clocks.wall,
    // Or the time in between would count twice.
    uptime:
      isSameBoot(ledger, clocks) && ledger.uptime > clocks.uptime ? ledger.uptime : clocks.uptime,
    watched: now,
    ageRestartedWatched: ledger.ageRestartDue ? now : ledger.ageRestartedWatched,
    ageRestartDue: false,
    hadContainers: snapshot.containers.length > 0,
    images,
    containers,
    pods: input.pods,
    creations: rememberCreations(ledger, { ...snapshot, now: snapshot.observedAt }, now),
    heldUpPasses: ledger.heldUpPasses,
    sandboxImages: keyed(
      ledger.sandboxImages,
      snapshot.sandboxes,
      ({ id }) => snapshot.sandboxImages.get(id) ?? ledger.sandboxImages.get(id),
    ),
    // Layers are read apart from observations.
    ...rememberOrigins(ledger, snapshot.images, new Map()),
    gains: ledger.gains,
    nothingFreed: stillNothingFreed(ledger.nothingFreed, snapshot.filesystems),
  };
}

/** Drops the records of removed images, so that one that comes back is new. */
export function forgetImages(ledger: Ledger, removed: Iterable<ImageId>): Ledger {
  const gone = [...removed].filter((id) => ledger.images.has(id));
  if (gone.length === 0) return ledger;
  return { ...ledger, images: without(ledger.images, gone) };
}

/** Drops the records of images that a complete list lacks; returns the same ledger if it lists all of them. */
export function forgetUnlisted(ledger: Ledger, listed: readonly Pick<Image, "id">[]): Ledger {
  const there = new Set(listed.map(({ id }) => id));
  return forgetImages(
    ledger,
    [...ledger.images.keys()].filter((id) => !there.has(id)),
  );
}

/** Restores a record that was dropped for a removal that failed; under other names it is another image. */
export function recallImage(ledger: Ledger, id: ImageId, before: ImageRecord): Ledger {
  const since = ledger.images.get(id);
  if (since !== undefined && since.names !== before.names) return ledger;
  const record =
    since === undefined || since.lastUsedAt === null
      ? before
      : { ...before, lastUsedAt: since.lastUsedAt, lastUsedWatched: since.lastUsedWatched };
  return { ...ledger, images: new Map(ledger.images).set(id, record) };
}

/** What crigc removed did not vanish: it starts no grace period, and the next list need not include it. */
export const forgetRemoved = (
  ledger: Ledger,
  removed: {
    readonly containers: readonly ContainerId[];
    readonly sandboxes: readonly SandboxId[];
    /** Containers that remain. */
    readonly remaining: number;
  },
): Ledger => ({
  ...ledger,
  hadContainers: ledger.hadContainers && removed.remaining > 0,
  containers: without(ledger.containers, removed.containers),
  sandboxImages: without(ledger.sandboxImages, removed.sandboxes),
});

function without<K, V>(map: ReadonlyMap<K, V>, keys: Iterable<K>): ReadonlyMap<K, V> {
  const rest = new Map(map);
  for (const key of keys) rest.delete(key);
  return rest;
}

type Grace = Pick<Ledger, "graceUntil" | "graceReason">;
const NO_GRACE: Grace = { graceUntil: null, graceReason: null };

/** After a boot, or when all containers vanish at once, the pods may just not be back yet. */
function graceOf({ ledger, snapshot, limits }: Remember, now: ObservedTime): Grace {
  const { bootGrace } = limits;
  const { clocks, containers } = snapshot;
  const left = bootGrace - clocks.uptime;
  if (bootGrace <= 0n) return NO_GRACE;
  // Once a boot: the record stays when its time is over.
  if (ledger.graceReason === "containers-vanished" && isSameBoot(ledger, clocks))
    return { graceUntil: ledger.graceUntil, graceReason: ledger.graceReason };
  if (ledger.hadContainers && containers.length === 0)
    return { graceUntil: watched(now + bootGrace), graceReason: "containers-vanished" };
  return left > 0n ? { graceUntil: watched(now + left), graceReason: "boot" } : NO_GRACE;
}

function imageRecord(input: Remember, image: Image, now: ObservedTime): ImageRecord {
  const { ledger, snapshot, usage } = input;
  const before = ledger.images.get(image.id);
  const names = namesText(image);
  const used = usage.users.has(image.id);
  const { runtime } = snapshot;
  // A removal without effect often takes the names, so other names do not end every ghost.
  const ghost = before?.ghost ? ghostNow(before.ghost, { names, runtime, now }) : null;
  if (
    !used &&
    before?.names === names &&
    before.sizeBytes === image.sizeBytes &&
    before.ghost === ghost
  )
    return before;
  return {
    firstSeenAt: before?.firstSeenAt ?? snapshot.clocks.wall,
    firstSeenWatched: before?.firstSeenWatched ?? now,
    // Read after the calls, as in the kubelet: an image in use is never older than the pass.
    lastUsedAt: used ? snapshot.observedAt : (before?.lastUsedAt ?? null),
    lastUsedWatched: used ? now : (before?.lastUsedWatched ?? null),
    // It may have been removed and pulled again.
    ageRestartedWatched:
      before === undefined || before.names === names ? (before?.ageRestartedWatched ?? null) : now,
    names,
    sizeBytes: image.sizeBytes,
    ghost,
  };
}

function containerRecord(
  { ledger, snapshot }: Pick<Remember, "ledger" | "snapshot">,
  id: ContainerId,
): ContainerRecord {
  const before = ledger.containers.get(id);
  const volumes = snapshot.imageVolumes.get(id);
  const imageVolumes =
    volumes?.kind === "known" ? volumes.references : (before?.imageVolumes ?? null);
  const finishedAt = snapshot.containerEnds.get(id) ?? before?.finishedAt ?? null;
  return before?.imageVolumes === imageVolumes && before.finishedAt === finishedAt
    ? before
    : { imageVolumes, finishedAt };
}

/** A ghost, which is still listed after its removal, is tried again after an hour, which doubles with each attempt up to this. */
const PAUSE_HOURS_MAX = 24;

export interface GhostAttempt {
  readonly image: Pick<Image, "id">;
  readonly record: ImageRecord;
  /** `cut-off`: the runtime went away during the call. */
  readonly end: "answered" | "unanswered" | "cut-off";
  readonly runtime: RuntimeInfo;
}

/** Records an image that is still listed although its removal succeeded, timed out or was cut off. */
export function rememberGhost(ledger: Ledger, attempt: GhostAttempt): Ledger {
  if (ledger.observedAt === null) return ledger;
  const { image, end, runtime } = attempt;
  const record = ledger.images.get(image.id) ?? attempt.record;
  const before = record.ghost;
  const answered = before?.answeredWatched ?? null;
  const wasRetriedAtOnce = before?.retriedAtOnce === true;
  const isAtOnce = end === "cut-off" && !wasRetriedAtOnce;
  const retriedAtOnce = isAtOnce || wasRetriedAtOnce;
  const attempts = (before?.attempts ?? 0) + 1;
  const pauses = Math.max(1, attempts - Number(retriedAtOnce));
  const pauseHours = Math.min(2 ** Math.min(pauses - 1, 10), PAUSE_HOURS_MAX);
  const ghost: Ghost = {
    since: before?.since ?? ledger.observedAt,
    attempts,
    retryWatched: isAtOnce ? ledger.watched : watched(ledger.watched + hours(pauseHours)),
    answeredWatched: answered ?? (end === "answered" ? ledger.watched : null),
    isFinal: end === "answered" && answered !== null && ledger.watched - answered >= hours(1),
    names: null,
    runtime: releaseKey(runtime),
    instance: runtime.instance,
    retriedAtOnce,
  };
  return { ...ledger, images: new Map(ledger.images).set(image.id, { ...record, ghost }) };
}

/** The ghost at this observation; the same object if nothing changed, `null` if it may be removed like any image. */
function ghostNow(
  ghost: Ghost,
  {
    names,
    runtime,
    now,
  }: { readonly names: string; readonly runtime: RuntimeInfo; readonly now: ObservedTime },
): Ghost | null {
  if (ghost.isFinal) {
    if (ghost.runtime !== releaseKey(runtime)) return null;
    if (ghost.names === null) return { ...ghost, names };
    return ghost.names === names ? ghost : null;
  }
  const isRestarted =
    ghost.instance !== "" && runtime.instance !== "" && ghost.instance !== runtime.instance;
  if (!isRestarted || ghost.retriedAtOnce || ghost.retryWatched <= now) return ghost;
  return { ...ghost, retryWatched: now, retriedAtOnce: true };
}
