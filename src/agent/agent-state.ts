/** A running agent's state: read by status, health and metrics, written only by the loops. */

import type { Seen } from "../gc/ports.ts";
import type { LoopName, LoopStatus, Pass } from "../model/pass.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { Image, MeasuredFilesystem } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import type { PressureVerdict } from "../policy/pressure/judge.ts";
import type { Stalled } from "./loop-progress.ts";

export interface LoopState extends LoopStatus {
  /** `null`: it pauses as scheduled, waits for another loop's pass, or has just made progress. */
  readonly stalled: Stalled | null;
}

export interface AgentState {
  readonly loops: readonly LoopState[];
  /** Largest first, as of `cachedAt`. */
  readonly images: readonly Image[];
  readonly cachedAt: Instant | null;
  readonly seen: Seen | null;
  /** The filesystems of `seen`, as last measured by an observation, the pressure check, or between two removals. */
  readonly filesystems: readonly MeasuredFilesystem[];
  readonly pressure: PressureVerdict | null;
  /** The containers being created for which a pass waits now; `null`: none waits. */
  readonly waiting: ImageBlock | null;
  /** Without the decisions on single containers. */
  readonly lastPasses: ReadonlyMap<Pass["kind"], Pass>;
  /** When the runtime last answered a complete run of a loop; `null`: not yet. */
  readonly runtimeAnsweredAt: Instant | null;
  /** Why the runtime does not answer; `null` if it does. */
  readonly runtimeError: string | null;
}

export const initialState: AgentState = {
  loops: [],
  images: [],
  cachedAt: null,
  seen: null,
  filesystems: [],
  pressure: null,
  waiting: null,
  lastPasses: new Map(),
  runtimeAnsweredAt: null,
  runtimeError: null,
};

/** What a loop itself knows; its period and whether it is enabled are those of the configuration. */
export const firstLoopState = (
  name: LoopName,
): Omit<LoopState, "stalled" | "periodMs" | "enabled"> => ({
  name,
  lastStartedAt: null,
  lastEndedAt: null,
  nextAt: null,
  lastError: null,
  consecutiveFailures: 0,
});

export const ofEachLoop = <T>(of: (name: LoopName) => T): Record<LoopName, T> => ({
  "image-cache": of("image-cache"),
  "image-detection": of("image-detection"),
  "image-gc": of("image-gc"),
  "container-gc": of("container-gc"),
  pressure: of("pressure"),
});

/** For status. Otherwise the decisions on, say, twenty thousand containers would stay in memory until the next pass. */
export function withoutDecisions(pass: Pass): Pass {
  const { containers } = pass.plan;
  if (containers === null) return pass;
  const none = { containers: [], sandboxes: [], podLogs: [], links: [] };
  return { ...pass, plan: { ...pass.plan, containers: { ...containers, ...none } } };
}
