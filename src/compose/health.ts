/** Health and readiness of the agent, each as a list of named checks. */

import type { AgentState } from "../loop/agent-state.ts";
import { type Instant, since, toMs } from "../model/time.ts";
import type { HealthCheck } from "../report/http/routes.ts";

export interface HealthFacts {
  readonly now: Instant;
  /** When a call to the runtime last ended, or a pass did. */
  readonly lastProgress: Instant;
  /** How long a loop may be busy without any progress. */
  readonly patienceMs: number;
}

/** A loop is alive while it pauses on time, or makes progress while it is busy. */
export function healthOf(state: AgentState | null, facts: HealthFacts): readonly HealthCheck[] {
  if (state === null) return [{ name: "waiting for the runtime", problem: null }];
  const idleMs = toMs(since(facts.now, facts.lastProgress));
  return state.loops
    .filter((loop) => loop.enabled)
    .map((loop) => {
      const busy =
        loop.lastStartedAt !== null &&
        (loop.lastEndedAt === null || loop.lastEndedAt < loop.lastStartedAt);
      const overdueMs = loop.nextAt === null ? 0 : toMs(since(facts.now, loop.nextAt));
      const busyMs =
        busy && loop.lastStartedAt !== null ? toMs(since(facts.now, loop.lastStartedAt)) : 0;
      if (busyMs > facts.patienceMs && idleMs > facts.patienceMs) {
        return {
          name: loop.name,
          problem: `busy for ${Math.round(busyMs / 1000)} s without any progress`,
        };
      }
      if (overdueMs > facts.patienceMs && idleMs > facts.patienceMs) {
        return { name: loop.name, problem: `overdue by ${Math.round(overdueMs / 1000)} s` };
      }
      return { name: loop.name, problem: null };
    });
}

/** Ready once the runtime was reached and the ledger is there. A ledger that is in memory alone for now is loaded all the same. */
export function readinessOf(
  state: AgentState | null,
  facts: { readonly connectError: string | null; readonly ledgerError: string | null },
): readonly HealthCheck[] {
  const silent = state === null ? (facts.connectError ?? "not asked yet") : state.runtimeError;
  const unasked = state !== null && state.runtimeAnsweredAt === null ? "not asked yet" : null;
  return [
    { name: "runtime", problem: silent ?? unasked },
    { name: "ledger", problem: state === null ? "not loaded yet" : null },
  ];
}
