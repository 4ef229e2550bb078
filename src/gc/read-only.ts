/** Plans for read-only commands. */

import type { ImageRecord } from "../model/ledger.ts";
import { instant, watched as watchedAt } from "../model/time.ts";
import { Observer } from "./observe.ts";
import type { ReadEngine } from "./ports.ts";
import { decidedAgain, prepare, type Prepared, type PrepareRequest } from "./prepare.ts";

export type ReadOnlyPass = Pick<PrepareRequest, "purpose" | "parts" | "allLayers" | "evictions">;

/** What `gc` would plan now. The observation counts as its pass would, but nothing is stored. */
export async function readOnlyPass(
  engine: ReadEngine,
  pass: ReadOnlyPass,
  signal: AbortSignal,
): Promise<Prepared> {
  const request = {
    ...pass,
    pressureTargets: [],
    awaited: new Set<string>(),
    paused: new Map(),
    remembers: false,
  };
  const observer = new Observer(engine.observe);
  return prepare(engine, request, { observer, signal });
}

/** The plan as if every image had reached the minimum age: what a new ledger waits for. */
export function asIfOldEnough(engine: ReadEngine, prepared: Prepared): Prepared {
  const { minimumAge } = prepared.limits.images;
  const old = (record: ImageRecord): ImageRecord => ({
    ...record,
    firstSeenAt: instant(record.firstSeenAt - minimumAge),
    firstSeenWatched: watchedAt(record.firstSeenWatched - minimumAge),
  });
  const images = new Map([...prepared.ledger.images].map(([id, record]) => [id, old(record)]));
  return decidedAgain(engine, { ...prepared, ledger: { ...prepared.ledger, images } });
}
