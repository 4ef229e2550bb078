/** Removes one sandbox: checks it, stops it, removes it. */

import { wasUnanswered } from "../../model/errors.ts";
import { failedStep, type RemovalResult, type SandboxItem } from "../../model/outcome.ts";
import type { SandboxRemoveReason } from "../../model/reason.ts";
import type { Sandbox, SandboxDetail } from "../../model/snapshot.ts";
import type { OthersRemovals } from "../others-removal.ts";
import type { ContainerPorts } from "./container-ports.ts";
import { GIVEN_UP, RESULT_OF } from "./container-removal.ts";

export interface RemovedSandbox {
  readonly item: SandboxItem;
  /** A call timed out and may still be in progress. */
  readonly unanswered: boolean;
}

interface SandboxPorts extends Pick<ContainerPorts, "runtime" | "writer"> {
  /** Cancels a status or a stop; a requested removal is awaited. */
  readonly signal: AbortSignal;
  readonly others: OthersRemovals;
}

/** Never rejects. A sandbox that cannot be stopped is not removed. */
export async function removeSandbox(
  sandbox: Sandbox,
  reason: SandboxRemoveReason,
  ports: SandboxPorts,
): Promise<RemovedSandbox> {
  const { id } = sandbox;
  const { runtime, writer, signal } = ports;
  const ended = (result: RemovalResult, unanswered = false): RemovedSandbox => ({
    item: { sandbox, reason, result },
    unanswered,
  });
  let step = "status";
  let detail: SandboxDetail | null = null;
  try {
    detail = await runtime.sandboxDetail(id, signal);
    if (detail?.state === "ready") return ended({ kind: "skipped", what: "it is ready now" });
    step = "stop";
    await writer.stopSandbox(id, signal);
    step = "remove";
    // Also without a status: a runtime may list a leftover record, which only this call removes.
    await writer.removeSandbox(id);
    return ended({ kind: detail === null ? "already-gone" : "removed" });
  } catch (thrown) {
    if (step !== "remove" && signal.aborted) return ended(GIVEN_UP, true);
    // A leftover record has no status before its removal either.
    const isThere = async () =>
      detail === null || (await runtime.sandboxDetail(id, signal)) !== null;
    const result =
      step === "status" ? null : RESULT_OF[await ports.others.fateAfter(thrown, isThere)];
    return ended(result ?? failedStep(step, thrown), wasUnanswered(thrown));
  }
}
