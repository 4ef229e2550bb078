// Merges what two processes made of one ledger, record by record; if both changed one, the younger and safer one
// counts.

import type { CreationRecord, ImageRecord, Ledger, PodRecord } from "../../model/ledger.ts";
import type { Watched } from "../../model/time.ts";
import { isEqual } from "./ledger.ts";

export interface Diverged {
  /** The common ancestor. */
  readonly base: Ledger;
  readonly ours: Ledger;
  readonly theirs: Ledger;
}

export function mergeLedgers({ base, ours, theirs }: Diverged): Ledger {
  // The later observation: observed time only grows.
  const later = ours.watched >= theirs.watched ? ours : theirs;
  const grace = (ours.graceUntil ?? 0n) >= (theirs.graceUntil ?? 0n) ? ours : theirs;
  const join = <Key, Value>(
    of: (ledger: Ledger) => ReadonlyMap<Key, Value>,
    both: (ours: Value, theirs: Value) => Value = (own) => own,
  ): ReadonlyMap<Key, Value> =>
    mergeMaps({ base: of(base), ours: of(ours), theirs: of(theirs) }, both);
  return {
    ...later,
    graceUntil: grace.graceUntil,
    graceReason: grace.graceReason,
    images: join((ledger) => ledger.images, youngerImage),
    containers: join((ledger) => ledger.containers),
    pods: join((ledger) => ledger.pods, livelierPod),
    creations: join((ledger) => ledger.creations, olderCreation),
    // Whoever ended a pass since.
    heldUpPasses: ours.heldUpPasses === base.heldUpPasses ? theirs.heldUpPasses : ours.heldUpPasses,
    sandboxImages: join((ledger) => ledger.sandboxImages),
    nothingFreed: join(
      (ledger) => ledger.nothingFreed,
      (one, other) => (one.pauses >= other.pauses ? one : other),
    ),
    keepDirectories: [...new Set([...theirs.keepDirectories, ...ours.keepDirectories])].toSorted(),
  };
}

interface Maps<Key, Value> {
  readonly base: ReadonlyMap<Key, Value>;
  readonly ours: ReadonlyMap<Key, Value>;
  readonly theirs: ReadonlyMap<Key, Value>;
}

function mergeMaps<Key, Value>(
  { base, ours, theirs }: Maps<Key, Value>,
  both: (ours: Value, theirs: Value) => Value,
): ReadonlyMap<Key, Value> {
  const merged = new Map(theirs);
  for (const key of base.keys()) if (!ours.has(key)) merged.delete(key);
  for (const [key, own] of ours) {
    const before = base.get(key);
    if (before !== undefined && isEqual(own, before)) continue;
    const other = theirs.get(key);
    // What one of them saw removed no longer exists, and is new if it comes back.
    if (other === undefined && before !== undefined) continue;
    const isOurs = other === undefined || (before !== undefined && isEqual(other, before));
    merged.set(key, isOurs ? own : both(own, other));
  }
  return merged;
}

function youngerImage(ours: ImageRecord, theirs: ImageRecord): ImageRecord {
  const younger = ours.firstSeenWatched >= theirs.firstSeenWatched ? ours : theirs;
  const used = (ours.lastUsedWatched ?? -1n) >= (theirs.lastUsedWatched ?? -1n) ? ours : theirs;
  return {
    ...younger,
    lastUsedAt: used.lastUsedAt,
    lastUsedWatched: used.lastUsedWatched,
    earlierNames: [...new Set([...ours.earlierNames, ...theirs.earlierNames])].slice(0, 32),
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
  origin: ours.origin ?? theirs.origin,
});

const later = (one: Watched | null, other: Watched | null): Watched | null =>
  one === null || other === null ? null : one >= other ? one : other;
