/**
 * Removes one container: checks it, stops it if its state is unknown, removes it, then its logs. Removes one sandbox:
 * checks it, stops it, removes it. Deletes the log directory of one deleted pod, or one link to a log that no longer exists.
 */

import { failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
import { isSameLog } from "../model/ids.ts";
import {
  type ContainerItem,
  failedStep,
  isGone,
  type LogItem,
  type RemovalResult,
  type SandboxItem,
} from "../model/pass.ts";
import type { ContainerPlan, PlannedContainer } from "../model/plan.ts";
import type { ContainerDetail, LogRemover, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
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
  /** Free bytes of the filesystem that holds the containers; `null`: there is none. */
  readonly measureFree: () => Promise<bigint | null>;
  /** Cancels a status or a stop; a requested removal is awaited. */
  readonly signal: AbortSignal;
  /** Called with each item as soon as it is done. */
  readonly done: (item: ContainerItem | SandboxItem | LogItem) => void;
}

interface ContainerRemoval {
  readonly planned: PlannedContainer;
  readonly reason: ContainerRemoveReason;
}

export interface Removed<Item> {
  readonly item: Item;
  /** A call timed out and may still be in progress. */
  readonly unanswered: boolean;
  /** Worth reporting although the container was removed; `null`: nothing. */
  readonly note: string | null;
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
  const { container } = removal.planned;
  const { runtime, writer, signal } = ports;
  const status = () => runtime.containerDetail(container.id, signal);
  let stopped = false;
  let note: string | null = null;
  const work = async (begin: (step: Step) => void): Promise<RemovalResult> => {
    const detail = await status();
    if (detail === null) return ALREADY_GONE;
    const what = changed(container, detail);
    if (what !== null) {
      ports.outdated();
      return { kind: "skipped", what };
    }
    if (detail.state === "unknown") {
      begin("stop");
      const handlerError = await stopGracefully(container, detail, ports);
      stopped = true;
      if (signal.aborted) return GIVEN_UP;
      if (handlerError !== null) note = `container ${container.id}: ${handlerError}`;
    }
    begin("remove");
    await writer.removeContainer(container.id);
    ports.lists.containerRemoved(container.id);
    return { kind: "removed" };
  };
  const { step, result, unanswered } = await inSteps(work, status, signal);
  // Whoever removed it, even this call: nothing else deletes its logs while its pod lives.
  const takesLogs = step === "remove" && isGone({ result });
  const logs = takesLogs ? await removeLogs(container, ports) : untouchedLogs;
  return { item: { ...removal, ...logs, result, stopped }, note, unanswered };
}

/** The call that a removal is at. */
type Step = "status" | "stop" | "remove";

/** Runs a removal; if one of its calls fails, that is its result. `status`: asked again after a refused call. */
async function inSteps(
  work: (begin: (step: Step) => void) => Promise<RemovalResult>,
  status: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<{ readonly step: Step; readonly result: RemovalResult; readonly unanswered: boolean }> {
  const at: { step: Step } = { step: "status" };
  try {
    const result = await work((step) => void (at.step = step));
    return { ...at, result, unanswered: false };
  } catch (thrown) {
    const { step } = at;
    const unanswered = wasUnanswered(thrown);
    if (step !== "remove" && signal.aborted) return { step, result: GIVEN_UP, unanswered: true };
    // Asking a runtime that does not answer would take another timeout.
    const others = step === "status" || unanswered ? null : await othersResult(thrown, status);
    return { step, result: others ?? failedStep(step, thrown), unanswered };
  }
}

/** The result of a refused call if the kubelet or an operator removes the same; `null`: it has failed. */
async function othersResult(
  thrown: unknown,
  status: () => Promise<unknown>,
): Promise<RemovalResult | null> {
  const isThere = await status().then(
    (detail) => detail !== null,
    () => true,
  );
  if (!isThere) return ALREADY_GONE;
  return failureCode(thrown) === "busy"
    ? { kind: "skipped", what: "another removal of it is in progress" }
    : null;
}

const ALREADY_GONE: RemovalResult = { kind: "already-gone" };
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

const untouchedLogs: LogFields = { logFiles: [], logBytes: 0n, logError: null };

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
  let isLeftover = false;
  const status = () => runtime.sandboxDetail(id, signal);
  const work = async (begin: (step: Step) => void): Promise<RemovalResult> => {
    const detail = await status();
    if (detail?.state === "ready") {
      ports.outdated();
      return { kind: "skipped", what: "it is ready now" };
    }
    // A runtime may list a leftover record without a status, which only these calls remove.
    isLeftover = detail === null;
    begin("stop");
    await writer.stopSandbox(id, signal);
    begin("remove");
    await writer.removeSandbox(id);
    ports.lists.sandboxRemoved(id);
    return isLeftover ? ALREADY_GONE : { kind: "removed" };
  };
  const statusAfter = async () => (isLeftover ? "a record" : status());
  const { result, unanswered } = await inSteps(work, statusAfter, signal);
  return { item: { sandbox, reason, result }, note: null, unanswered };
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
    if (files === null) return { ...item, result: ALREADY_GONE };
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
