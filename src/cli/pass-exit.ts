/** The exit code of a plan or a finished pass. */

import { blocksOf } from "../loop/pass/pass-failure.ts";
import { assertNever } from "../model/assert.ts";
import { isFailed, thingsOf } from "../model/outcome.ts";
import type { Pass } from "../model/pass.ts";
import type { ContainerPlan, Plan } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import { exit, exitOf } from "./exit.ts";

/**
 * The exit code of a plan alone: invalid rules, unknown usage, invalid disk figures, unreadable logs; `null`: none of
 * these.
 */
export const planExit = (plan: Plan): number | null =>
  faultsExit(blocksOf({ plan, images: null })) ??
  (plan.containers === null || plan.containers.logsError === null ? null : exit.runtime);

const faultsExit = (kinds: readonly ImageBlock["kind"][]): number | null =>
  kinds.map(faultExit).find((code) => code !== null) ?? null;

/** The exit code of a pass of `gc`; the most serious problem decides. */
export function passExit(
  pass: Pass,
  end: { readonly busy: boolean; readonly failure: unknown },
): number {
  if (end.busy) return exit.busy;
  if (pass.error !== null)
    return end.failure === null ? exit.runtime : (exitOf(end.failure) ?? exit.internal);
  const blocks = blocksOf(pass);
  const held = (pass.plan.containers?.blocks ?? []).some(({ kind }) => kind === "on-hold");
  if (held || blocks.includes("on-hold")) return exit.held;
  const fault = faultsExit(blocks);
  if (fault !== null) return fault;
  if (pass.images?.end === "observation-failed") return exit.runtime;
  // A pod source that is not ready is in the report; keeping what it could not judge is not a failure of the command.
  const unready = pass.plan.containers?.podSource.kind === "not-ready" ? 1 : 0;
  if (pass.containers !== null && pass.containers.errors.length > unready) return exit.runtime;
  if (someFailed(pass)) return exit.partial;
  return fellShort(pass) ? exit.shortfall : exit.done;
}

/** Of a block that is something wrong; waiting and futility are none. */
function faultExit(kind: ImageBlock["kind"]): number | null {
  switch (kind) {
    case "keep-rules-invalid":
      return exit.usage;
    case "usage-unknown":
    case "pods-unknown":
    case "pods-incomplete":
    case "invalid-capacity":
      return exit.runtime;
    case "on-hold":
    case "boot-grace":
    case "pod-starting":
    case "futile":
      return null;
    default:
      return assertNever(kind);
  }
}

function someFailed({ images, containers }: Pass): boolean {
  const things = containers === null ? [] : thingsOf(containers);
  const items = images?.items ?? [];
  return [...things, ...items].some(({ result }) => isFailed(result));
}

/** A target was asked for and is still open; a dry run is judged by its plan. A pass that was stopped has not done what it should. */
function fellShort({ images, containers, plan }: Pass): boolean {
  if (containers?.end === "stopped" || images?.end === "stopped") return true;
  if (containers?.end === "blocked" && plan.containers !== null && isHeldBack(plan.containers))
    return true;
  if (plan.images === null) return false;
  // Asked to stop before it came to images.
  if (images === null) return plan.images.candidates.length > 0;
  switch (images.end) {
    case "candidates-exhausted":
      return (
        plan.images.targets.some((target) => target.kind !== "everything") ||
        plan.images.kept.some(({ reason }) => reason.kind === "too-young")
      );
    case "futile":
    case "no-gain":
    case "settle-exhausted":
    case "removal-limit":
      return true;
    case "blocked":
      return plan.images.triggers.length > 0;
    case "dry-run":
      return (
        plan.images.triggers.length > 0 &&
        plan.images.blocks.some(({ kind }) => kind === "futile" || kind === "boot-grace")
      );
    case "nothing-to-do":
    case "target-reached":
    case "own-gain-reached":
    case "invalid-capacity":
    case "observation-failed":
    case "age-removal-errors":
      return false;
    default:
      return assertNever(images.end);
  }
}

/** Something should go, and a block keeps it. */
const isHeldBack = ({ purpose, containers, sandboxes, podLogs }: ContainerPlan): boolean =>
  purpose === "all-unused" ||
  [...containers, ...sandboxes, ...podLogs].some(
    ({ decision }) => decision.kind === "keep" && decision.reason.kind === "blocked",
  );
