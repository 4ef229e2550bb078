/** Health and readiness of the agent, each as a list of named checks. */

import type { AgentState } from "../loop/agent/agent-state.ts";
import type { HealthCheck } from "../report/http/routes.ts";

/** A loop is alive while it pauses on time, or makes progress of its own while it works. */
export function healthOf(state: AgentState | null, patienceMs: number): readonly HealthCheck[] {
  if (state === null) return [{ name: "waiting for the runtime", problem: null }];
  return state.loops
    .filter((loop) => loop.enabled)
    .map(({ name, stalled }) => {
      if (stalled === null || stalled.forMs <= patienceMs) return { name, problem: null };
      const seconds = Math.round(stalled.forMs / 1000);
      const problem =
        stalled.kind === "working" ? `no progress for ${seconds} s` : `overdue by ${seconds} s`;
      return { name, problem };
    });
}

/** Ready once the runtime was reached and the ledger is loaded, even if only in memory. */
export function readinessOf(
  state: AgentState | null,
  connectError: string | null,
): readonly HealthCheck[] {
  const silent = state === null ? (connectError ?? "not asked yet") : state.runtimeError;
  const unasked = state !== null && state.runtimeAnsweredAt === null ? "not asked yet" : null;
  return [
    { name: "runtime", problem: silent ?? unasked },
    { name: "ledger", problem: state === null ? "not loaded yet" : null },
  ];
}
