/** The exit codes, and which error, plan or pass ends with which. */

import { blocksOf } from "../gc/pass-warnings.ts";
import { ConfigError, HostError, RuntimeError } from "../model/errors.ts";
import { type ImageEnd, isFailed, type Pass, passItems } from "../model/pass.ts";
import type { ContainerPlan, ImagePlan, Plan } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import { PASS_ENDS } from "../report/pass-words.ts";

export const exit = {
  done: 0,
  internal: 1,
  usage: 2,
  runtime: 3,
  shortfall: 4,
  partial: 5,
  busy: 6,
  held: 7,
  unknown: 8,
} as const;

/** The meaning of each code, for help and documentation. */
export const exitTable: Readonly<Record<number, string>> = {
  [exit.done]: "done, or nothing to do",
  [exit.internal]: "internal error; output or a removal's record that could not be written",
  [exit.usage]:
    "invalid usage, configuration or keep rules; several runtimes answer and none was specified",
  [exit.runtime]:
    "runtime unreachable or too old, a list or stat failed, or capacity 0; log directories unreadable (the rest was done)",
  [exit.shortfall]:
    "too little could be freed (`futile`, `nothing-freed`, `no-room`, or not visible yet), images too young, boot grace, a pod that is starting, or interrupted",
  [exit.partial]:
    "some removals failed or had no effect, the rest was done; a named image is in use or kept by a rule (rm)",
  [exit.busy]: "another process holds the node and does not accept the request, or a second run",
  [exit.held]: "on hold, which crigc release ends",
  [exit.unknown]:
    "unknown REF (explain, rm) or PATTERN (keep test), no agent (status), a failed check (doctor)",
};

/** `null`: a bug, printed with its stack. */
export function exitOf(thrown: unknown): number | null {
  if (thrown instanceof ConfigError) return exit.usage;
  if (thrown instanceof RuntimeError)
    return thrown.kind === "ambiguous" ? exit.usage : exit.runtime;
  return thrown instanceof HostError ? (HOST_EXITS[thrown.kind] ?? exit.internal) : null;
}

const HOST_EXITS: Readonly<Partial<Record<HostError["kind"], number>>> = {
  stat: exit.runtime,
  // An unreadable directory is a failed list too.
  read: exit.runtime,
  // Another process holds the node. A lock that cannot be taken at all is another error.
  lock: exit.busy,
  // Interrupted before the pass began.
  stopped: exit.shortfall,
};

/**
 * The exit code of a plan: invalid rules, unknown usage, invalid disk figures, unreadable logs; `null`: none of
 * these.
 */
export const planExit = (plan: Plan): number | null =>
  faultsExit(blocksOf({ plan, images: null })) ??
  (plan.containers === null || plan.containers.logsError === null ? null : exit.runtime);

const faultsExit = (kinds: readonly RemovalBlock["kind"][]): number | null =>
  kinds.map((kind) => FAULTS[kind]).find((code) => code !== undefined) ?? null;

/** The exit code of a pass of `gc`; the most serious problem decides. `failure`: what ended it early, or `null`. */
export function passExit(pass: Pass, failure: unknown): number {
  if (failure !== null) return exitOf(failure) ?? exit.internal;
  const blocks = blocksOf(pass);
  const ofContainers = pass.plan.containers?.blocks ?? [];
  // Of all blocks, only a hold begins in the middle of a container pass.
  const held =
    ofContainers.some(({ kind }) => kind === "on-hold") ||
    (pass.containers?.end === "blocked" && ofContainers.length === 0);
  if (held || blocks.includes("on-hold")) return exit.held;
  const fault = faultsExit(blocks);
  if (fault !== null) return fault;
  if (pass.images !== null && PASS_ENDS[pass.images.end].exit === exit.runtime) return exit.runtime;
  // The report names a pod source that is not ready; keeping what it could not judge is not a failure.
  const unready = pass.plan.containers?.podSource.kind === "not-ready" ? 1 : 0;
  if (pass.containers !== null && pass.containers.errors.length > unready) return exit.runtime;
  if (passItems(pass).some(({ result }) => isFailed(result))) return exit.partial;
  return missedTarget(pass) ? exit.shortfall : exit.done;
}

/** Blocks that are errors; waiting and futility are not. */
const FAULTS: Readonly<Partial<Record<RemovalBlock["kind"], number>>> = {
  "keep-rules-invalid": exit.usage,
  "usage-unknown": exit.runtime,
  "invalid-capacity": exit.runtime,
};

/** Whether a target was not reached. A dry run is judged by its plan; a stopped pass did not reach it. */
function missedTarget({ images, containers, plan }: Pass): boolean {
  if (containers?.end === "stopped" || images?.end === "stopped") return true;
  if (containers?.end === "blocked" && plan.containers !== null && isHeldBack(plan.containers))
    return true;
  if (plan.images === null) return false;
  // Stopped before the images.
  if (images === null) return plan.images.candidates.length > 0;
  const code = PASS_ENDS[images.end].exit;
  return code === "plan" ? isMissing(images.end, plan.images) : code === exit.shortfall;
}

function isMissing(end: ImageEnd, plan: ImagePlan): boolean {
  const { triggers, targets, candidates, kept, blocks, notes } = plan;
  const isShort =
    targets.some((target) => target.kind !== "everything") ||
    kept.some(({ reason }) => reason.kind === "too-young");
  if (end === "candidates-exhausted") return isShort;
  if (end === "blocked") return triggers.length > 0;
  const removesNothing = triggers.length > 0 && candidates.length === 0;
  return (
    notes.some(({ kind }) => kind === "out-of-reach") ||
    (removesNothing && (blocks.length > 0 || isShort))
  );
}

/** A block keeps something that would be removed. */
const isHeldBack = ({ purpose, containers, sandboxes, podLogs }: ContainerPlan): boolean =>
  purpose === "all-unused" ||
  [...containers, ...sandboxes, ...podLogs].some(
    ({ decision }) => decision.kind === "keep" && decision.reason.kind === "blocked",
  );
