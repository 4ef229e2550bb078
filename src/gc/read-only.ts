/** Plans for read-only commands. */

import { messageOf } from "../model/errors.ts";
import type { ImageRecord } from "../model/ledger.ts";
import type { Plan, PlannedPodLogs } from "../model/plan.ts";
import { instant, watched as watchedAt } from "../model/time.ts";
import { decide } from "../policy/decide.ts";
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
    awaited: new Set<string>(),
    paused: new Map(),
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

/** The plan as if every image had reached the minimum age: what a new ledger waits for. */
export function asIfOldEnough(prepared: Prepared): Prepared {
  const { minimumAge } = prepared.limits.images;
  const old = (record: ImageRecord): ImageRecord => ({
    ...record,
    firstSeenAt: instant(record.firstSeenAt - minimumAge),
    firstSeenWatched: watchedAt(record.firstSeenWatched - minimumAge),
  });
  const images = new Map([...prepared.ledger.images].map(([id, record]) => [id, old(record)]));
  const facts = { ...prepared, ledger: { ...prepared.ledger, images } };
  return { ...facts, plan: decide(facts) };
}
