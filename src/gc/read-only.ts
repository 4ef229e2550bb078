/** The plan of a node for read-only commands. */

import type { ImageRecord, Ledger } from "../model/ledger.ts";
import type { ImagePlan } from "../model/plan.ts";
import {
  type Duration,
  instant,
  instantFromMs,
  instantToMs,
  type Watched,
  watched as watchedAt,
} from "../model/time.ts";
import { decide } from "../policy/decide.ts";
import { FULL_PATIENCE } from "../policy/image/creations.ts";
import { unusedFor } from "../policy/image/rank.ts";
import { usageOf } from "../policy/image/usage.ts";
import { remember } from "../policy/remember.ts";
import type { ReadEngine } from "./ports.ts";
import { prepare, type Prepared, type PrepareRequest } from "./prepare.ts";
import { Steps } from "./steps.ts";

export type ReadOnlyPass = Pick<PrepareRequest, "purpose" | "parts" | "allLayers" | "evictions">;

/** What `gc` would plan now. The observation counts as its pass would, but nothing is stored. */
export async function readOnlyPass(
  engine: ReadEngine,
  pass: ReadOnlyPass,
  signal: AbortSignal,
): Promise<Prepared> {
  const now = () => instantFromMs(instantToMs(engine.observe.host.clocks().wall));
  const steps = new Steps(engine, now);
  const request = {
    ...pass,
    pressureTargets: [],
    creationPatience: FULL_PATIENCE,
    remembers: false,
  };
  return prepare(engine, request, { steps, signal });
}

/** The plan as if every image had been first seen this much earlier: what a new ledger waits for. */
export function assumingSeen(prepared: Prepared, span: Duration): Prepared {
  const { ledger, decided } = prepared;
  const { watched: now, graceUntil } = ledger;
  const shifted = (at: Watched | null): Watched | null =>
    at === null ? null : watchedAt(at - span);
  const earlier = (record: ImageRecord): ImageRecord => ({
    ...record,
    firstSeenAt: instant(record.firstSeenAt - span),
    firstSeenWatched: watchedAt(record.firstSeenWatched - span),
    ageRestartedWatched: shifted(record.ageRestartedWatched),
  });
  const assumed: Ledger = {
    ...ledger,
    images: new Map([...ledger.images].map(([id, record]) => [id, earlier(record)])),
    ageRestartedWatched: shifted(ledger.ageRestartedWatched),
    graceUntil: graceUntil === null || graceUntil - span <= now ? null : graceUntil,
  };
  const again = { ...decided, ledger: assumed };
  return { ...prepared, ledger: assumed, plan: decide(again), decided: again };
}

/** The same decisions, with what a ledger knows but did not enter them: first seen, last used, ghosts. For display only. */
export function withMemory(prepared: Prepared, known: Ledger): Prepared {
  const { snapshot, plan, decided } = prepared;
  const ledger = remember({
    ledger: known,
    snapshot,
    usage: usageOf(snapshot),
    limits: { ...decided.limits.memory, compat: "none" },
    pods: known.pods,
  });
  const images = plan.images === null ? null : withRecords(plan.images, ledger);
  return { ...prepared, ledger, plan: { ...plan, images } };
}

function withRecords(plan: ImagePlan, { images, watched }: Ledger): ImagePlan {
  return {
    ...plan,
    kept: plan.kept.map((it) => ({ ...it, record: images.get(it.image.id) ?? it.record })),
    candidates: plan.candidates.map((it) => {
      const record = images.get(it.image.id);
      return record === undefined ? it : { ...it, record, unusedFor: unusedFor(record, watched) };
    }),
  };
}
