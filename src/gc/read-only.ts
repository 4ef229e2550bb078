/** Plans for read-only commands. */

import { messageOf } from "../model/errors.ts";
import type { ImageRecord, Ledger } from "../model/ledger.ts";
import type { Plan, PlannedPodLogs } from "../model/plan.ts";
import { type Duration, instant, type ObservedTime, watched as watchedAt } from "../model/time.ts";
import { decide } from "../policy/decide.ts";
import { FULL_PATIENCE } from "../policy/image/creations.ts";
import { LogUse, LogUsers } from "./log-users.ts";
import { Observer } from "./observe.ts";
import type { ReadEngine } from "./ports.ts";
import { prepare, type Prepared, type PrepareRequest } from "./prepare.ts";
import { Steps } from "./steps.ts";

export type ReadOnlyPass = Pick<
  PrepareRequest,
  "purpose" | "parts" | "allLayers" | "storeSize" | "evictions"
>;

/** What `gc` would plan now. The observation counts as its pass would, but nothing is stored. */
export async function readOnlyPass(
  engine: ReadEngine,
  pass: ReadOnlyPass,
  signal: AbortSignal,
): Promise<Prepared> {
  const steps = new Steps(engine);
  const request = {
    ...pass,
    pressureTargets: [],
    creationPatience: FULL_PATIENCE,
    remembers: false,
  };
  const observer = new Observer(engine.observe);
  const prepared = await prepare(engine, request, { observer, steps, signal });
  return withUsedLogs(engine, prepared, signal);
}

/**
 * Keeps log directories that the plan would delete, but that a listed container or sandbox uses: `gc` skips them in every
 * pass. Costs nothing unless the plan deletes a log directory.
 */
export async function withUsedLogs<Of extends { readonly plan: Plan }>(
  engine: Pick<ReadEngine, "observe" | "timer" | "remover">,
  prepared: Of,
  signal: AbortSignal,
): Promise<Of> {
  const plan = prepared.plan.containers;
  if (plan === null || !plan.podLogs.some(isRemoved)) return prepared;
  // What the plan removes no longer uses anything by the time of the logs.
  const removed = new Set<string>([
    ...plan.containers.filter(isRemoved).map(({ container }) => container.id),
    ...plan.sandboxes.filter(isRemoved).map(({ sandbox }) => sandbox.id),
  ]);
  const listed = {
    containers: plan.containers.map(({ container }) => container),
    sandboxes: plan.sandboxes.map(({ sandbox }) => sandbox),
  };
  const users = new LogUsers(engine.observe.runtime, engine.timer);
  const use = new LogUse({ ...engine, users, logs: engine.remover }, removed, signal);
  const judged = async (planned: PlannedPodLogs): Promise<PlannedPodLogs> => {
    const { directory, decision } = planned;
    if (decision.kind === "keep") return planned;
    const what = await use.userOf(directory, listed).catch(messageOf);
    if (what === null) return planned;
    const reason = { kind: "in-use", what } as const;
    return { directory, decision: { kind: "keep", reason, tried: [...decision.tried, "in-use"] } };
  };
  const containers = { ...plan, podLogs: await Promise.all(plan.podLogs.map(judged)) };
  return { ...prepared, plan: { ...prepared.plan, containers } };
}

const isRemoved = ({ decision }: { readonly decision: { readonly kind: string } }): boolean =>
  decision.kind === "remove";

/** The plan as if every image had been first seen this much earlier: what a new ledger waits for. */
export function assumingSeen(prepared: Prepared, span: Duration): Prepared {
  const { ledger, agesFrom: from } = prepared;
  const { watched: now, graceUntil } = ledger;
  const shifted = (at: ObservedTime | null): ObservedTime | null =>
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
  const agesFrom = from && { watched: watchedAt(from.watched - span), at: instant(from.at - span) };
  const facts = { ...prepared, ledger: assumed, agesFrom };
  return { ...facts, plan: decide(facts) };
}
