/** Makes the next ledger from the last one and an observation, by the clock of all ages. */

import { type ContainerId, type ImageId, isBootId, type SandboxId } from "../model/ids.ts";
import type { ContainerRecord, ImageRecord, Ledger } from "../model/ledger.ts";
import type { LedgerLimits } from "../model/limits.ts";
import type { Clocks, Image, ImageVolumes, Snapshot } from "../model/snapshot.ts";
import { duration, hours, type Instant, type TotalUptime, totalUptime } from "../model/time.ts";
import { atLeastZero, larger, smaller } from "../model/values.ts";
import { sameOr } from "./by-object.ts";
import { listedOwners, type Owner, rememberPods } from "./container/pods.ts";
import type { Parts } from "./facts.ts";
import { distinctImages, namesText } from "./image/reference.ts";
import { usageOf } from "./image/usage.ts";
import { rememberImageConfigs } from "./layers.ts";

export interface Observation {
  /** Before this observation. */
  readonly ledger: Ledger;
  readonly snapshot: Snapshot;
  readonly limits: LedgerLimits;
  readonly parts: Parts;
}

/** The next ledger. Applying the same snapshot twice changes nothing. `owners`: of all that the runtime lists. */
export function remember(
  observation: Observation,
  owners: readonly Owner[] = listedOwners(observation.snapshot),
): Ledger {
  const { snapshot, limits, parts } = observation;
  const { clocks } = snapshot;
  const now = ageNow(observation.ledger, clocks);
  const ledger = forgetUnlisted(observation.ledger, snapshot.images);
  const { users } = usageOf(snapshot);
  const containers = snapshot.containers.map(
    ({ id }) =>
      [id, containerRecord(ledger.containers.get(id), snapshot.imageVolumes.get(id))] as const,
  );
  const records = distinctImages(snapshot.images, "last").map((image) => {
    const before = ledger.images.get(image.id) ?? newRecord(image, clocks.wall, now);
    // Read after the calls, as in the kubelet: an image in use is never older than the pass.
    const usedAt = users.has(image.id) ? snapshot.observedAt : null;
    return [image.id, recordNow(image, before, { usedAt, now })] as const;
  });
  const images = sameOr(ledger.images, new Map(records));
  const view = { ...snapshot, totalUptime: now, limits };
  return {
    ...graceOf({ ...observation, ledger }, now),
    bootId: clocks.bootId,
    observedAt: clocks.wall,
    // An earlier snapshot must not turn the uptime back: that time would count twice.
    uptime: isSameBoot(ledger, clocks)
      ? duration(larger(ledger.uptime, clocks.uptime))
      : clocks.uptime,
    totalUptime: now,
    ageRestartedUptime: ledger.ageRestartDue ? now : ledger.ageRestartedUptime,
    ageRestartDue: false,
    sandboxes: snapshot.sandboxes.map(({ id }) => id).toSorted(),
    images,
    containers: sameOr(ledger.containers, new Map(containers)),
    // Only passes that also read the log directories judge pods.
    pods: parts.containers === "none" ? ledger.pods : rememberPods(ledger.pods, view, owners),
    // Layers are read apart from observations.
    ...rememberImageConfigs(ledger, images.keys(), new Map()),
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

/** Adds a record of each listed image that has none; returns the same ledger if all have one. */
export function seeImages(
  ledger: Ledger,
  listed: readonly Image[],
  at: { readonly wall: Instant; readonly totalUptime: TotalUptime },
): Ledger {
  // Before the first observation no age has begun.
  if (ledger.observedAt === null) return ledger;
  const fresh = listed.filter(({ id }) => !ledger.images.has(id));
  if (fresh.length === 0) return ledger;
  const records = fresh.map(
    (image) => [image.id, newRecord(image, at.wall, at.totalUptime)] as const,
  );
  return { ...ledger, images: new Map([...ledger.images, ...records]) };
}

/** Restores a record that was dropped for a removal that failed; under other names it is another image. */
export function recallImage(ledger: Ledger, id: ImageId, before: ImageRecord): Ledger {
  const since = ledger.images.get(id);
  if (since !== undefined && since.names !== before.names) return ledger;
  const lastUsedAt = since?.lastUsedAt ?? before.lastUsedAt;
  const lastUsedUptime = since?.lastUsedUptime ?? before.lastUsedUptime;
  const record = { ...before, lastUsedAt, lastUsedUptime };
  return { ...ledger, images: new Map(ledger.images).set(id, record) };
}

/** What crigc removed did not vanish: it starts no grace period, and the next list need not include it. */
export const forgetRemoved = (
  ledger: Ledger,
  removed: {
    readonly containers: readonly ContainerId[];
    readonly sandboxes: readonly SandboxId[];
  },
): Ledger => ({
  ...ledger,
  containers: without(ledger.containers, removed.containers),
  sandboxes: ledger.sandboxes.filter((id) => !removed.sandboxes.includes(id)),
});

function without<K, V>(map: ReadonlyMap<K, V>, keys: Iterable<K>): ReadonlyMap<K, V> {
  const rest = new Map(map);
  for (const key of keys) rest.delete(key);
  return rest;
}

type Grace = Pick<Ledger, "graceUntil" | "graceReason">;
const NO_GRACE: Grace = { graceUntil: null, graceReason: null };

/** After a boot, or when all containers vanish at once, the pods may just not be back yet. */
function graceOf({ ledger, snapshot, limits }: Observation, now: TotalUptime): Grace {
  const { bootGrace } = limits;
  const { clocks, containers } = snapshot;
  const left = bootGrace - clocks.uptime;
  if (bootGrace <= 0n) return NO_GRACE;
  // At most once per boot: the record outlasts the grace period.
  if (ledger.graceReason === "containers-vanished" && isSameBoot(ledger, clocks))
    return { graceUntil: ledger.graceUntil, graceReason: ledger.graceReason };
  if (ledger.containers.size > 0 && containers.length === 0)
    return { graceUntil: totalUptime(now + bootGrace), graceReason: "containers-vanished" };
  return left > 0n ? { graceUntil: totalUptime(now + left), graceReason: "boot" } : NO_GRACE;
}

/** The record of an image that was never seen before. */
export const newRecord = (
  image: Image,
  firstSeenAt: Instant,
  firstSeenUptime: TotalUptime,
): ImageRecord => ({
  firstSeenAt,
  firstSeenUptime,
  lastUsedAt: null,
  lastUsedUptime: null,
  ageRestartedUptime: null,
  names: namesText(image),
  sizeBytes: image.sizeBytes,
});

/** `usedAt`: `null` if it is not in use. */
function recordNow(
  image: Image,
  before: ImageRecord,
  { usedAt, now }: { readonly usedAt: Instant | null; readonly now: TotalUptime },
): ImageRecord {
  const { sizeBytes } = image;
  const names = namesText(image);
  if (usedAt === null && before.names === names && before.sizeBytes === sizeBytes) return before;
  return {
    ...before,
    ...(usedAt !== null && { lastUsedAt: usedAt, lastUsedUptime: now }),
    // It may have been removed and pulled again.
    ...(before.names !== names && { ageRestartedUptime: now }),
    names,
    sizeBytes,
  };
}

function containerRecord(
  before: ContainerRecord | undefined,
  volumes: ImageVolumes | undefined,
): ContainerRecord {
  const known = volumes?.kind === "known" ? volumes.references : null;
  const imageVolumes = known ?? before?.imageVolumes ?? null;
  return before?.imageVolumes === imageVolumes ? before : { imageVolumes };
}

// The clock of all ages: the machine's uptime, summed in the ledger from look to look, and never the wall clock

/** A longer time without a look counts as this much. */
const GAP_MAX = hours(24);

/** A restarted minimum age keeps an image for at most this long. */
export const AGE_RESTART_MAX = hours(1);

/**
 * Counts the uptime since the last look of the same boot, or since the boot if the look was in an earlier one; boots
 * between them count nothing.
 */
export function ageNow(
  ledger: Pick<Ledger, "bootId" | "observedAt" | "uptime" | "totalUptime">,
  { bootId, uptime }: Pick<Clocks, "bootId" | "uptime">,
): TotalUptime {
  if (ledger.observedAt === null) return ledger.totalUptime;
  const passed = isSameBoot(ledger, { bootId, uptime }) ? uptime - ledger.uptime : uptime;
  return totalUptime(ledger.totalUptime + smaller(atLeastZero(passed), GAP_MAX));
}

/** Without a boot ID, an uptime that is not lower counts as the same boot, which adds less time. */
export const isSameBoot = (
  ledger: Pick<Ledger, "bootId" | "uptime">,
  { bootId, uptime }: Pick<Clocks, "bootId" | "uptime">,
): boolean =>
  bootId === ledger.bootId ||
  (!(isBootId(bootId) && isBootId(ledger.bootId)) && uptime >= ledger.uptime);
