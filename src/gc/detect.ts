/** Detection: observes the node and records what is in use, without deciding or removing anything. */

import type { PodUid } from "../model/ids.ts";
import type { Ledger, PodRecord } from "../model/ledger.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { byObject } from "../policy/by-object.ts";
import { usageOf } from "../policy/image/usage.ts";
import { remember } from "../policy/remember.ts";
import { observe } from "./observe.ts";
import type { ReadEngine, Seen } from "./ports.ts";

/** One observation, recorded in the ledger. Only container passes judge pods, so their records stay as they are. */
export async function detect(engine: ReadEngine, signal: AbortSignal): Promise<Seen> {
  const snapshot = await look(engine, { logs: false }, signal);
  engine.memory.replace(remembered(engine, snapshot, engine.memory.current().pods));
  return seenOf(snapshot);
}

export async function look(
  engine: ReadEngine,
  want: { readonly logs: boolean },
  signal: AbortSignal,
): Promise<Snapshot> {
  const limits = engine.limits().containers;
  const needEnds = limits.minimumAge > 0n && limits.compat === "none";
  const ledger = engine.memory.current();
  return observe(engine.observe, { ledger, needEnds, logs: want.logs }, signal);
}

/** The ledger after this snapshot, with the given records of pods. */
export function remembered(
  engine: ReadEngine,
  snapshot: Snapshot,
  pods: ReadonlyMap<PodUid, PodRecord>,
): Ledger {
  return remember({
    ledger: engine.memory.current(),
    snapshot,
    usage: usageOf(snapshot),
    limits: engine.limits().memory,
    pods,
  });
}

export function seenOf(snapshot: Snapshot): Seen {
  return {
    runtime: snapshot.runtime,
    filesystems: snapshot.filesystems,
    deadContainers: deadOf(snapshot.containers),
    observedAt: snapshot.observedAt,
  };
}

const deadOf = byObject(
  (containers: Snapshot["containers"]): number =>
    containers.filter(({ state }) => state === "exited").length,
);
