/** Makes the next ledger from the last one and an observation, by the clock of all ages. */

import {
  type ContainerId,
  type ImageId,
  isBootId,
  type PodUid,
  type SandboxId,
} from "../model/ids.ts";
import {
  type ContainerRecord,
  type ImageRecord,
  type Ledger,
  type PodRecord,
  unusedRecord,
} from "../model/ledger.ts";
import type { LedgerLimits } from "../model/limits.ts";
import type { Clocks, Image, Snapshot } from "../model/snapshot.ts";
import { duration, hours, type Instant, type TotalUptime, totalUptime } from "../model/time.ts";
import { atLeastZero, larger, smaller } from "../model/values.ts";
import { keyed } from "./by-object.ts";
import { distinctImages, namesText } from "./image/reference.ts";
import type { Usage } from "./image/usage.ts";
import { rememberImageConfigs } from "./layers.ts";

export interface Remember {
  readonly ledger: Ledger;
  readonly snapshot: Snapshot;
  /** All uses in this snapshot. */
  readonly usage: Usage;
  readonly limits: LedgerLimits;
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
    // An earlier snapshot must not turn the uptime back: that time would count twice.
    uptime: isSameBoot(ledger, clocks)
      ? duration(larger(ledger.uptime, clocks.uptime))
      : clocks.uptime,
    totalUptime: now,
    ageRestartedUptime: ledger.ageRestartDue ? now : ledger.ageRestartedUptime,
    ageRestartDue: false,
    hadContainers: snapshot.containers.length > 0,
    sandboxes: snapshot.sandboxes.map(({ id }) => id).toSorted(),
    images,
    containers,
    pods: input.pods,
    // Layers are read apart from observations.
    ...rememberImageConfigs(ledger, snapshot.images, new Map()),
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
  const images = new Map(ledger.images);
  for (const image of fresh)
    images.set(
      image.id,
      unusedRecord({
        firstSeenAt: at.wall,
        firstSeenUptime: at.totalUptime,
        names: namesText(image),
        sizeBytes: image.sizeBytes,
      }),
    );
  return { ...ledger, images };
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
    /** Containers that remain. */
    readonly remaining: number;
  },
): Ledger => ({
  ...ledger,
  hadContainers: ledger.hadContainers && removed.remaining > 0,
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
function graceOf({ ledger, snapshot, limits }: Remember, now: TotalUptime): Grace {
  const { bootGrace } = limits;
  const { clocks, containers } = snapshot;
  const left = bootGrace - clocks.uptime;
  if (bootGrace <= 0n) return NO_GRACE;
  // At most once per boot: the record outlasts the grace period.
  if (ledger.graceReason === "containers-vanished" && isSameBoot(ledger, clocks))
    return { graceUntil: ledger.graceUntil, graceReason: ledger.graceReason };
  if (ledger.hadContainers && containers.length === 0)
    return { graceUntil: totalUptime(now + bootGrace), graceReason: "containers-vanished" };
  return left > 0n ? { graceUntil: totalUptime(now + left), graceReason: "boot" } : NO_GRACE;
}

function imageRecord(input: Remember, image: Image, now: TotalUptime): ImageRecord {
  const { ledger, snapshot, usage } = input;
  const before = ledger.images.get(image.id);
  const names = namesText(image);
  const used = usage.users.has(image.id);
  if (!used && before?.names === names && before.sizeBytes === image.sizeBytes) return before;
  return {
    firstSeenAt: before?.firstSeenAt ?? snapshot.clocks.wall,
    firstSeenUptime: before?.firstSeenUptime ?? now,
    // Read after the calls, as in the kubelet: an image in use is never older than the pass.
    lastUsedAt: used ? snapshot.observedAt : (before?.lastUsedAt ?? null),
    lastUsedUptime: used ? now : (before?.lastUsedUptime ?? null),
    // It may have been removed and pulled again.
    ageRestartedUptime:
      before === undefined || before.names === names ? (before?.ageRestartedUptime ?? null) : now,
    names,
    sizeBytes: image.sizeBytes,
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
