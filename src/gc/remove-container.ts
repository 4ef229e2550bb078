/**
 * Removes one container: checks it, stops it if its state is unknown, removes it, then its logs. Removes one sandbox:
 * checks it, stops it, removes it. Deletes the log directory of one deleted pod, or one link to a log that no longer exists.
 */

import { failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
import { isSameLog } from "../model/ids.ts";
import {
  type ContainerItem,
  failedStep,
  type LogItem,
  type RemovalResult,
  type SandboxItem,
} from "../model/pass.ts";
import type { ContainerPlan, PlannedContainer } from "../model/plan.ts";
import type {
  ContainerDetail,
  LogRemover,
  RuntimeReader,
  RuntimeWriter,
  SandboxDetail,
} from "../model/ports.ts";
import type {
  ContainerRemoveReason,
  LogRemoveReason,
  SandboxRemoveReason,
} from "../model/reason.ts";
import type { Container, DanglingLogLink, PodLogDirectory, Sandbox } from "../model/snapshot.ts";
import type { Listed } from "../policy/container/pods.ts";
import type { PodLists } from "./pod-lists.ts";
import type { Engine } from "./ports.ts";
import { stopGracefully } from "./stop-pod.ts";

const POD_UID = "io.kubernetes.pod.uid";

/** What it takes to remove what a container plan removes. */
export interface ContainerExecution extends Pick<Engine, "hooks" | "passes" | "timer"> {
  readonly plan: ContainerPlan;
  readonly runtime: Pick<RuntimeReader, "containerDetail" | "sandboxDetail">;
  readonly writer: Omit<RuntimeWriter, "removeImage">;
  /** `null`: the node has no log directory, so no log is touched. */
  readonly logs: LogRemover | null;
  /** The lists of the pass, and when those of the plan were requested, by the monotonic clock. */
  readonly lists: PodLists;
  readonly listedNs: bigint;
  /** The same decision on current lists, by the pod source as it is now; everything else is as at the start of the pass. */
  readonly decideAgain: (lists: Listed) => ContainerPlan | Promise<ContainerPlan>;
  /** Whether a hold has begun, which also stops the running pass. */
  readonly held: () => boolean;
  /** Free bytes of the filesystem that holds the containers; `null`: not measured. */
  readonly measureAvailable: (() => Promise<bigint>) | null;
  /** Cancels a status or a stop; a requested removal is awaited. */
  readonly signal: AbortSignal;
  /** Called with each item as soon as it is done. */
  readonly done: (item: ContainerItem | SandboxItem | LogItem) => void;
}

export interface ContainerRemoval {
  readonly planned: PlannedContainer;
  readonly reason: ContainerRemoveReason;
}

export interface Removed<Item> {
  readonly item: Item;
  /** A call timed out and may still be in progress. */
  readonly unanswered: boolean;
  /** Worth reporting although the container was removed. */
  readonly note?: string;
}

export interface RemovalPorts extends ContainerExecution {
  /** Called if a status contradicts the lists, which say too little about its pod then. */
  readonly outdated: () => void;
  /** The containers that are still there, as last listed. */
  readonly listed: () => readonly Container[];
}

/** Never rejects: a failure is the item's result. */
export async function removeContainer(
  removal: ContainerRemoval,
  ports: RemovalPorts,
): Promise<Removed<ContainerItem>> {
  const { planned } = removal;
  const { container } = planned;
  const ended = (result: RemovalResult, stopped = false): Removed<ContainerItem> => ({
    item: { ...removal, ...untouchedLogs, result, stopped },
    unanswered: false,
  });
  const failed = (step: string, thrown: unknown, stopped = false): Removed<ContainerItem> => ({
    ...ended(failedStep(step, thrown), stopped),
    unanswered: wasUnanswered(thrown),
  });
  const givenUp = (thrown: unknown, step: string): Removed<ContainerItem> =>
    ports.signal.aborted ? { ...ended(GIVEN_UP), unanswered: true } : failed(step, thrown);

  let detail: ContainerDetail | null;
  try {
    detail = await ports.runtime.containerDetail(container.id, ports.signal);
  } catch (thrown) {
    return givenUp(thrown, "status");
  }
  if (detail === null) return ended({ kind: "already-gone" });
  const what = changed(container, detail);
  if (what !== null) {
    ports.outdated();
    return ended({ kind: "skipped", what });
  }

  const isThere = async () =>
    (await ports.runtime.containerDetail(container.id, ports.signal)) !== null;
  const stopFirst = planned.stopFirst && detail.state === "unknown";
  let noted: Pick<Removed<ContainerItem>, "note"> = {};
  if (stopFirst) {
    try {
      const handlerError = await stopGracefully(container, detail, ports);
      if (ports.signal.aborted) return ended(GIVEN_UP, true);
      if (handlerError !== null) noted = { note: `container ${container.id}: ${handlerError}` };
    } catch (thrown) {
      const result = await othersResult(thrown, isThere);
      return result === null ? givenUp(thrown, "stop") : ended(result, true);
    }
  }
  let result: RemovalResult = { kind: "removed" };
  try {
    await ports.writer.removeContainer(container.id);
    ports.lists.containerRemoved(container.id);
  } catch (thrown) {
    const others = await othersResult(thrown, isThere);
    if (others === null) return { ...failed("remove", thrown, stopFirst), ...noted };
    if (others.kind !== "already-gone") return { ...ended(others, stopFirst), ...noted };
    // Whoever removed it, even this call: nothing else deletes its logs while its pod lives.
    result = others;
  }
  const logs = await removeLogs(container, ports);
  return { item: { ...removal, ...logs, result, stopped: stopFirst }, ...noted, unanswered: false };
}

/**
 * The result of a refused call if the kubelet or an operator removes the same; `null`: it has failed. `isThere` may reject,
 * which leaves the failure as it is.
 */
async function othersResult(
  thrown: unknown,
  isThere: () => Promise<boolean>,
): Promise<RemovalResult | null> {
  const otherwise: RemovalResult | null =
    failureCode(thrown) === "busy"
      ? { kind: "skipped", what: "another removal of it is in progress" }
      : null;
  // Asking a runtime that does not answer would take another timeout.
  if (wasUnanswered(thrown)) return null;
  try {
    return (await isThere()) ? otherwise : { kind: "already-gone" };
  } catch {
    return otherwise;
  }
}

const GIVEN_UP: RemovalResult = { kind: "skipped", what: "the pass was stopped" };

/** Why the container is no longer the one that was decided on; `null` if it is. */
function changed(container: Container, detail: ContainerDetail): string | null {
  if (detail.state === "running") return "it is running now";
  const uid = detail.labels[POD_UID] ?? "";
  if (uid !== container.podUid) return `its pod UID is now "${uid}"`;
  const died = container.state === "unknown" && detail.state === "exited";
  return detail.state === container.state || died ? null : `its state is now ${detail.state}`;
}

type LogFields = Pick<ContainerItem, "logFiles" | "logBytes" | "logError">;

export const untouchedLogs: LogFields = { logFiles: [], logBytes: 0n, logError: null };

/** After the container, so that nothing writes to them any more. Errors here do not undo the removal. */
async function removeLogs(
  container: Container,
  { logs, listed }: Pick<RemovalPorts, "logs" | "listed">,
): Promise<LogFields> {
  const isShared = listed().some((it) => it.id !== container.id && isSameLog(it, container));
  if (logs === null || isShared) return untouchedLogs;
  try {
    const { names, bytes, failure } = await logs.removeContainerLogs(container);
    return { logFiles: names, logBytes: bytes, logError: failure?.message ?? null };
  } catch (thrown) {
    return { ...untouchedLogs, logError: messageOf(thrown) };
  }
}

/** Never rejects. A sandbox that cannot be stopped is not removed. */
export async function removeSandbox(
  sandbox: Sandbox,
  reason: SandboxRemoveReason,
  ports: Pick<RemovalPorts, "runtime" | "writer" | "lists" | "signal" | "outdated">,
): Promise<Removed<SandboxItem>> {
  const { id } = sandbox;
  const { runtime, writer, signal } = ports;
  const ended = (result: RemovalResult, unanswered = false): Removed<SandboxItem> => ({
    item: { sandbox, reason, result },
    unanswered,
  });
  let step = "status";
  let detail: SandboxDetail | null = null;
  try {
    detail = await runtime.sandboxDetail(id, signal);
    if (detail?.state === "ready") {
      ports.outdated();
      return ended({ kind: "skipped", what: "it is ready now" });
    }
    step = "stop";
    await writer.stopSandbox(id, signal);
    step = "remove";
    // Also without a status: a runtime may list a leftover record, which only this call removes.
    await writer.removeSandbox(id);
    ports.lists.sandboxRemoved(id);
    return ended({ kind: detail === null ? "already-gone" : "removed" });
  } catch (thrown) {
    if (step !== "remove" && signal.aborted) return ended(GIVEN_UP, true);
    // A leftover record has no status before its removal either.
    const isThere = async () =>
      detail === null || (await runtime.sandboxDetail(id, signal)) !== null;
    const result = step === "status" ? null : await othersResult(thrown, isThere);
    return ended(result ?? failedStep(step, thrown), wasUnanswered(thrown));
  }
}

/** Never rejects. `signal` ends it early; the next pass deletes the rest. */
export async function removePodLogs(
  directory: PodLogDirectory,
  reason: LogRemoveReason,
  { logs, signal }: { readonly logs: LogRemover; readonly signal: AbortSignal },
): Promise<LogItem> {
  const item = { kind: "pod-logs", entry: directory.entry, reason, bytes: 0n } as const;
  try {
    const files = await logs.removePodLogs(directory, signal);
    if (files === null) return { ...item, result: { kind: "already-gone" } };
    const { bytes, failure, isStopped } = files;
    if (failure !== undefined) return { ...item, result: failedStep("remove", failure), bytes };
    return { ...item, result: isStopped === true ? GIVEN_UP : { kind: "removed" }, bytes };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}

/** Never rejects. */
export async function removeLink(link: DanglingLogLink, logs: LogRemover): Promise<LogItem> {
  const reason = { kind: "container-gone" } as const;
  const item = { kind: "log-link", entry: link.entry, reason, bytes: 0n } as const;
  try {
    const removed = await logs.removeLink(link);
    const kept = { kind: "skipped", what: "it is gone, or dangles no more" } as const;
    return { ...item, result: removed ? { kind: "removed" } : kept };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}
