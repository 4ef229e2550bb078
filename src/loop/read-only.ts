/** The plan of a node for commands that only look. */

import type { Purpose } from "../model/plan.ts";
import { duration, instantFromMs, instantToMs } from "../model/time.ts";
import type { Parts } from "../policy/decide.ts";
import type { ReadEngine } from "./ports.ts";
import { prepare, type Prepared } from "./prepare.ts";
import { Steps } from "./steps.ts";

export interface ReadOnlyPass {
  readonly purpose: Purpose;
  readonly parts: Parts;
}

/** What `gc` would plan now: the observation counts as its pass would, and nothing is kept of it. */
export async function readOnlyPass(
  engine: ReadEngine,
  pass: ReadOnlyPass,
  signal: AbortSignal,
): Promise<Prepared> {
  const now = () => instantFromMs(instantToMs(engine.observe.host.clocks().wall));
  const steps = new Steps(engine.timer, now);
  const request = {
    ...pass,
    pressureTargets: [],
    waitedForPods: duration(0n),
    countsForPods: pass.parts.containers !== "none",
    remembers: false,
  };
  return prepare(engine, request, { steps, signal });
}
