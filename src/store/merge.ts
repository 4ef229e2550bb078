// Merges what two processes made of one ledger, record by record; if both changed one, the younger and safer one
// counts.

import {
  type CreationRecord,
  type ImageRecord,
  type Ledger,
  type PodRecord,
} from "../model/ledger.ts";
import type { ObservedTime } from "../model/time.ts";
import { mapNames } from "./ledger-rows.ts";

export interface LedgerVersions {
  /** The common ancestor. */
  readonly base: Ledger;
  readonly ours: Ledger;
  readonly theirs: Ledger;
}

export function mergeLedgers(versions: LedgerVersions): Ledger {
  const { base } = versions;
  if (versions.ours === base) return versions.theirs;
  // The later observation: observed time only grows.
  const isOursLater = versions.ours.watched >= versions.theirs.watched;
  const ours = isOursLater ? versions.ours : caughtUp(versions.ours, versions.theirs, base);
  const theirs = isOursLater ? caughtUp(versions.theirs, versions.ours, base) : versions.theirs;
  const later = isOursLater ? ours : theirs;
  // Whoever looked last, or the time in between would count for what it saw.
  const isOursLast = ours.bootId !== theirs.bootId || ours.uptime >= theirs.uptime;
  const last = ours.observedAt !== null && isOursLast ? ours : theirs;
  const grace = (ours.graceUntil ?? 0n) >= (theirs.graceUntil ?? 0n) ? ours : theirs;
  // One read the other's ledger late: it may have seen that an image was gone that is there again.
  const wereApart =
    base.observedAt === null && ours.observedAt !== null && theirs.observedAt !== null;
  const maps = mapNames.map((kind) => {
    const both = MERGED_RECORDS.get(kind) ?? ((own, other) => (later === ours ? own : other));
    return [
      kind,
      mergeMaps<unknown>({ base: base[kind], ours: ours[kind], theirs: theirs[kind] }, both),
    ];
  });
  return {
    ...later,
    observedAt: last.observedAt,
    uptime: last.uptime,
    graceUntil: grace.graceUntil,
    graceReason: grace.graceReason,
    // Whoever ended a pass since.
    heldUpPasses: ours.heldUpPasses === base.heldUpPasses ? theirs.heldUpPasses : ours.heldUpPasses,
    ageRestartedWatched: latest(ours.ageRestartedWatched, theirs.ageRestartedWatched),
    agingTerm: latest(ours.agingTerm, theirs.agingTerm),
    ageRestartDue: ours.ageRestartDue || theirs.ageRestartDue || wereApart,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each map was made of the same maps
    ...(Object.fromEntries(maps) as Pick<Ledger, (typeof mapNames)[number]>),
  };
}

/**
 * The ledger of a process that missed observations, or began before it could read the other: what it has and the base
 * has not is as old at the other's observed time as it was at its own.
 */
function caughtUp(ledger: Ledger, other: Ledger, base: Ledger): Ledger {
  const by = other.watched - ledger.watched;
  const moved = <Value>(value: Value, before: unknown, known?: unknown): Value =>
    Bun.deepEquals(value, before) ? value : movedBy(value, known, by);
  const maps = mapNames.map((kind) => {
    const before: ReadonlyMap<string, unknown> = base[kind];
    const known: ReadonlyMap<string, unknown> = other[kind];
    const records = [...ledger[kind]].map(
      ([id, it]) => [id, moved<unknown>(it, before.get(id), known.get(id))] as const,
    );
    return [kind, new Map(records)];
  });
  return {
    ...ledger,
    graceUntil: moved(ledger.graceUntil, base.graceUntil),
    ageRestartedWatched: moved(ledger.ageRestartedWatched, base.ageRestartedWatched),
    ...Object.fromEntries(maps),
  };
}

/** With all observed times so much later; those of its first observation are as old as `known` says, except a use. */
function movedBy<Value>(value: Value, known: unknown, by: bigint): Value;
function movedBy(value: unknown, known: unknown, by: bigint): unknown {
  if (typeof value === "bigint")
    return value === 0n && typeof known === "bigint" ? known : value + by;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const others = new Map(Object.entries(known ?? {}));
  others.delete("lastUsedWatched");
  const times = Object.entries(value)
    .filter(([name, it]) => name.endsWith("Watched") || typeof it === "object")
    .map(([name, it]) => [name, movedBy(it, others.get(name), by)]);
  return { ...value, ...Object.fromEntries(times) };
}

const latest = <Value extends bigint | number>(a: Value | null, b: Value | null): Value | null =>
  (a ?? -1) >= (b ?? -1) ? a : b;

interface Maps<Value> {
  readonly base: ReadonlyMap<string, Value>;
  readonly ours: ReadonlyMap<string, Value>;
  readonly theirs: ReadonlyMap<string, Value>;
}

function mergeMaps<Value>(
  { base, ours, theirs }: Maps<Value>,
  both: (ours: Value, theirs: Value) => Value,
): ReadonlyMap<string, Value> {
  const merged = new Map(theirs);
  for (const key of base.keys()) if (!ours.has(key)) merged.delete(key);
  for (const [key, own] of ours) {
    const before = base.get(key);
    if (before !== undefined && Bun.deepEquals(own, before)) continue;
    const other = theirs.get(key);
    // What one of them saw removed no longer exists, and is new if it comes back.
    if (other === undefined && before !== undefined) continue;
    const isOurs = other === undefined || (before !== undefined && Bun.deepEquals(other, before));
    merged.set(key, isOurs ? own : both(own, other));
  }
  return merged;
}

function youngerImage(ours: ImageRecord, theirs: ImageRecord): ImageRecord {
  const younger = ours.firstSeenWatched >= theirs.firstSeenWatched ? ours : theirs;
  const used = (ours.lastUsedWatched ?? -1n) >= (theirs.lastUsedWatched ?? -1n) ? ours : theirs;
  return {
    ...younger,
    ageRestartedWatched: latest(ours.ageRestartedWatched, theirs.ageRestartedWatched),
    lastUsedAt: used.lastUsedAt,
    lastUsedWatched: used.lastUsedWatched,
    ghost: ours.ghost ?? theirs.ghost,
  };
}

const olderCreation = (ours: CreationRecord, theirs: CreationRecord): CreationRecord => ({
  ...(ours.firstSeenWatched <= theirs.firstSeenWatched ? ours : theirs),
  awaited: ours.awaited || theirs.awaited,
});

const livelierPod = (ours: PodRecord, theirs: PodRecord): PodRecord => ({
  ...ours,
  absentSinceWatched: later(ours.absentSinceWatched, theirs.absentSinceWatched),
  deadSinceWatched: later(ours.deadSinceWatched, theirs.deadSinceWatched),
});

const later = (one: ObservedTime | null, other: ObservedTime | null): ObservedTime | null =>
  one === null || other === null ? null : one >= other ? one : other;

/** What counts if both changed a record; otherwise that of the later ledger. */
const MERGED_RECORDS: ReadonlyMap<string, (ours: unknown, theirs: unknown) => unknown> = new Map<
  string,
  // oxlint-disable-next-line typescript/no-explicit-any -- by the kind of the map
  (ours: any, theirs: any) => unknown
>([
  ["images", youngerImage],
  ["pods", livelierPod],
  ["creations", olderCreation],
  ["nothingFreed", (one, other) => (one.pauses >= other.pauses ? one : other)],
]);
