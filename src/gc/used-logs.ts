/** Log directories that a plan would delete, but that a listed container or sandbox uses: `gc` skips them in every pass. */

import { messageOf } from "../model/errors.ts";
import type { Plan, PlannedPodLogs } from "../model/plan.ts";
import { LogUse } from "./container/log-use.ts";
import { LogUsers } from "./container/log-users.ts";
import type { ReadEngine } from "./ports.ts";

/** For a plan that is shown and not executed; costs nothing unless it deletes a log directory. */
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
  const use = new LogUse({ users, logs: engine.remover }, removed, signal);
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
