/**
 * Removes dead containers by a plan that is decided again on fresh lists: containers, then sandboxes, then logs without users.
 * A container is checked, stopped if its state is unknown, removed, and then its logs; a sandbox is checked, stopped and
 * removed.
 */

import { failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
import { isSameLog } from "../model/ids.ts";
import {
  type ContainerItem,
  type ContainerOutcome,
  failedStep,
  isGone,
  type LogItem,
  type RemovalResult,
  type SandboxItem,
} from "../model/pass.ts";
import type { ContainerPlan, PlannedContainer } from "../model/plan.ts";
import type { ContainerDetail, LogRemover } from "../model/ports.ts";
import type { ContainerRemoveReason, SandboxRemoveReason } from "../model/reason.ts";
import type { Container, DanglingLogLink, Sandbox } from "../model/snapshot.ts";
import { unjudged } from "../policy/container/containers.ts";
import type { Listed } from "../policy/container/pods.ts";
import { type ContainerCalls, UNANSWERED_MAX } from "./calls.ts";
import { Fresh } from "./fresh-lists.ts";
import type { PodLists } from "./pod-lists.ts";
import type { Engine } from "./ports.ts";
import { stopGracefully } from "./stop-pod.ts";

const POD_UID = "io.kubernetes.pod.uid";

/** What it takes to remove what a container plan removes. */
export interface ContainerExecution
  extends ContainerCalls, Pick<Engine, "hooks" | "passes" | "timer"> {
  readonly plan: ContainerPlan;
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

/** Never rejects. Records a failed removal and continues with the next; a failed list ends the pass. */
export const removeContainers = (execution: ContainerExecution): Promise<ContainerOutcome> =>
  new ContainerRemovals(execution).run();

class ContainerRemovals {
  readonly #execution: ContainerExecution;
  readonly #fresh: Fresh<FreshContainerPlan>;
  readonly #containers: ContainerItem[] = [];
  readonly #sandboxes: SandboxItem[] = [];
  readonly #logs: LogItem[] = [];
  readonly #errors: Set<string>;
  readonly #removed = new Set<string>();
  #unanswered = 0;
  /** What could not be removed within the last day, before this pass. */
  readonly #last: ReadonlySet<string>;

  constructor(execution: ContainerExecution) {
    const { plan } = execution;
    // If the directories could not be read, nothing is known about the files in them either.
    const logs = plan.logsError === null ? execution.logs : null;
    this.#execution = { ...execution, logs };
    this.#fresh = freshContainerPlan(execution);
    this.#errors = new Set(unjudged(plan));
    this.#last = execution.passes.last();
  }

  async run(): Promise<ContainerOutcome> {
    const { plan } = this.#execution;
    if (plan.blocks.length > 0) return this.#outcome("blocked", null);
    if (nothingToDo(plan)) return this.#outcome("done", null);
    const before = await this.#free();
    const end = await this.#removeAll();
    const after = before === null ? null : await this.#free();
    const gained = before === null || after === null ? null : after - before;
    return this.#outcome(end, gained);
  }

  async #removeAll(): Promise<ContainerOutcome["end"]> {
    try {
      await this.#removeContainers(false);
      await this.#listAgain();
      this.#reportGhosts();
      await this.#removeSandboxes(false);
      if (this.#sandboxes.length > 0) await this.#listAgain();
      await this.#removePodLogs();
      if (this.#logs.length > 0) await this.#listAgain();
      await this.#removeLinks();
      // What could not be removed goes last for a day, so that what hangs holds up nothing else.
      await this.#removeContainers(true);
      await this.#removeSandboxes(true);
      return "done";
    } catch (thrown) {
      if (!(thrown instanceof Ended)) throw thrown;
      if (thrown.message !== "") this.#errors.add(thrown.message);
      return thrown.end;
    }
  }

  async #removeContainers(isLast: boolean): Promise<void> {
    for (const planned of this.#execution.plan.containers) {
      const { container, decision } = planned;
      if (decision.kind === "keep" || this.#last.has(container.id) !== isLast) continue;
      if (await this.#mayBegin(container.id)) await this.#removeContainer(planned, decision.reason);
    }
  }

  async #removeContainer(planned: PlannedContainer, reason: ContainerRemoveReason): Promise<void> {
    const { container } = planned;
    const { runtime, writer, lists, signal } = this.#execution;
    const status = () => runtime.containerDetail(container.id, signal);
    let stopped = false;
    const work = async (begin: (step: Step) => void): Promise<RemovalResult> => {
      const detail = await status();
      if (detail === null) return ALREADY_GONE;
      const what = changed(container, detail);
      if (what !== null) return this.#outdated(what);
      if (detail.state === "unknown") {
        begin("stop");
        const handlerError = await stopGracefully(container, detail, this.#execution);
        stopped = true;
        if (signal.aborted) return GIVEN_UP;
        if (handlerError !== null) this.#errors.add(`container ${container.id}: ${handlerError}`);
      }
      begin("remove");
      await writer.removeContainer(container.id);
      lists.containerRemoved(container.id);
      return { kind: "removed" };
    };
    const removed = await inSteps(work, status, signal);
    // Whoever removed it, even this call: nothing else deletes its logs while its pod lives.
    const takesLogs = removed.step === "remove" && isGone(removed);
    const logs = takesLogs ? await this.#removeContainerLogs(container) : UNTOUCHED_LOGS;
    this.#record(this.#containers, { planned, reason, ...logs, result: removed.result, stopped });
    this.#ended(container.id, removed);
  }

  /** After the container, so that nothing writes to them any more. Errors here do not undo the removal. */
  async #removeContainerLogs(container: Container): Promise<LogFields> {
    const { logs } = this.#execution;
    const isShared = this.#fresh.value.lists.containers.some(
      (it) => it.id !== container.id && !this.#removed.has(it.id) && isSameLog(it, container),
    );
    if (logs === null || isShared) return UNTOUCHED_LOGS;
    try {
      const { names, bytes, failure } = await logs.removeContainerLogs(container);
      return { logFiles: names, logBytes: bytes, logError: failure?.message ?? null };
    } catch (thrown) {
      return { ...UNTOUCHED_LOGS, logError: messageOf(thrown) };
    }
  }

  async #removeSandboxes(isLast: boolean): Promise<void> {
    for (const { sandbox, decision } of this.#fresh.value.plan.sandboxes) {
      const { id } = sandbox;
      if (decision.kind === "keep" || this.#last.has(id) !== isLast) continue;
      if (await this.#mayBegin(id)) await this.#removeSandbox(sandbox, decision.reason);
    }
  }

  /** One that cannot be stopped is not removed. */
  async #removeSandbox(sandbox: Sandbox, reason: SandboxRemoveReason): Promise<void> {
    const { id } = sandbox;
    const { runtime, writer, lists, signal } = this.#execution;
    let isLeftover = false;
    const status = () => runtime.sandboxDetail(id, signal);
    const work = async (begin: (step: Step) => void): Promise<RemovalResult> => {
      const detail = await status();
      if (detail?.state === "ready") return this.#outdated("it is ready now");
      // A runtime may list a leftover record without a status, which only these calls remove.
      isLeftover = detail === null;
      begin("stop");
      await writer.stopSandbox(id, signal);
      begin("remove");
      await writer.removeSandbox(id);
      lists.sandboxRemoved(id);
      return isLeftover ? ALREADY_GONE : { kind: "removed" };
    };
    const removed = await inSteps(work, async () => (isLeftover ? "a record" : status()), signal);
    this.#record(this.#sandboxes, { sandbox, reason, result: removed.result });
    this.#ended(id, removed);
  }

  /** A status contradicts the lists, which say too little about its pod then. */
  #outdated(what: string): RemovalResult {
    this.#fresh.expire();
    return { kind: "skipped", what };
  }

  #ended(id: string, { result, unanswered }: Removed): void {
    const { passes } = this.#execution;
    if (result.kind === "removed") {
      this.#removed.add(id);
      passes.removed(id);
    }
    if (result.kind === "failed") passes.notRemoved(id);
    if (!unanswered) return;
    // The pass was stopped before the answer.
    if (result.kind === "skipped") throw new Ended("stopped");
    this.#unanswered += 1;
    if (this.#unanswered >= UNANSWERED_MAX)
      throw new Ended(
        "done",
        `${this.#unanswered} calls about containers and sandboxes got no answer; the next pass does the rest`,
      );
  }

  #record<Item extends ContainerItem | SandboxItem | LogItem>(items: Item[], item: Item): void {
    items.push(item);
    this.#execution.done(item);
  }

  /** On a stop the next pass deletes the rest of a directory. */
  async #removePodLogs(): Promise<void> {
    const { logs, signal } = this.#execution;
    if (logs === null) return;
    for (const { directory, decision } of this.#fresh.value.plan.podLogs) {
      const { entry } = directory;
      if (decision.kind === "keep" || !(await this.#mayBegin(entry))) continue;
      const { reason } = decision;
      await this.#deleteLogs({ kind: "pod-logs", entry, reason }, async () => {
        const files = await logs.removePodLogs(directory, signal);
        if (files === null) return { result: ALREADY_GONE, bytes: 0n };
        const { bytes, failure, isStopped } = files;
        if (failure !== undefined) return { result: failedStep("remove", failure), bytes };
        return { result: isStopped === true ? GIVEN_UP : { kind: "removed" }, bytes };
      });
    }
  }

  async #removeLinks(): Promise<void> {
    const { logs } = this.#execution;
    if (logs === null) return;
    for (const link of this.#fresh.value.plan.links) {
      if (!(await this.#mayBegin(linkKey(link)))) continue;
      const item = {
        kind: "log-link",
        entry: link.entry,
        reason: { kind: "container-gone" },
      } as const;
      const kept = { kind: "skipped", what: "it is gone, or dangles no more" } as const;
      await this.#deleteLogs(item, async () => ({
        result: (await logs.removeLink(link)) ? { kind: "removed" } : kept,
        bytes: 0n,
      }));
    }
  }

  async #deleteLogs(
    item: Pick<LogItem, "kind" | "entry" | "reason">,
    work: () => Promise<Pick<LogItem, "result" | "bytes">>,
  ): Promise<void> {
    const done = await work().catch((thrown: unknown) => ({
      result: failedStep("remove", thrown),
      bytes: 0n,
    }));
    this.#record(this.#logs, { ...item, ...done });
  }

  /** Whether it is still removed, by lists of the last second, unless a status contradicts them; a hold counts at once. */
  async #mayBegin(key: string): Promise<boolean> {
    await this.#fresh.get();
    this.#endIfHeld();
    if (this.#execution.signal.aborted) throw new Ended("stopped");
    return this.#fresh.value.going.has(key);
  }

  async #listAgain(): Promise<void> {
    await this.#fresh.again();
    this.#endIfHeld();
  }

  #endIfHeld(): void {
    if (this.#execution.held()) throw new Ended("blocked");
  }

  #reportGhosts(): void {
    const { containers } = this.#fresh.value.lists;
    for (const { id } of containers)
      if (this.#removed.has(id))
        this.#errors.add(`container ${id} is still listed after its removal`);
  }

  async #free(): Promise<bigint | null> {
    try {
      return await this.#execution.measureFree();
    } catch (thrown) {
      this.#errors.add(messageOf(thrown));
      return null;
    }
  }

  #outcome(end: ContainerOutcome["end"], measuredFreedBytes: bigint | null): ContainerOutcome {
    return {
      end,
      containers: this.#containers,
      sandboxes: this.#sandboxes,
      logs: this.#logs,
      measuredFreedBytes,
      // The pod source may have failed since the plan.
      errors: [...this.#errors.union(new Set(unjudged(this.#fresh.value.plan)))],
    };
  }
}

/** The outcome of a pass that has not begun to remove containers. */
export const noContainers = (
  plan: ContainerPlan | null,
  end: ContainerOutcome["end"],
): ContainerOutcome => ({
  end,
  containers: [],
  sandboxes: [],
  logs: [],
  measuredFreedBytes: null,
  errors: plan === null ? [] : unjudged(plan),
});

/** Avoids listing an idle node again. */
function nothingToDo({ containers, sandboxes, podLogs, links }: ContainerPlan): boolean {
  const planned = [...containers, ...sandboxes, ...podLogs];
  return links.length === 0 && planned.every(({ decision }) => decision.kind === "keep");
}

// The plan on the newest lists, which are read again when they are too old to act on

interface FreshContainerPlan {
  readonly plan: ContainerPlan;
  readonly lists: Listed;
  /** What it removes: IDs of containers and sandboxes, entries of log directories and keys of links. */
  readonly going: ReadonlySet<string>;
}

/** Reading it throws `Ended` if the lists fail. */
function freshContainerPlan(execution: ContainerExecution): Fresh<FreshContainerPlan> {
  const { plan: first, timer, listedNs, lists: podLists, decideAgain, signal } = execution;
  const planOn = (plan: ContainerPlan, lists: Listed): FreshContainerPlan => ({
    plan,
    lists,
    going: goingOf(plan, lists),
  });
  const read = async (): Promise<FreshContainerPlan> => {
    if (signal.aborted) throw new Ended("stopped");
    const lists = await podLists.read(signal).catch((thrown: unknown) => {
      if (signal.aborted) throw new Ended("stopped");
      throw new Ended(
        "observation-failed",
        `the rest is kept, because it cannot be listed again: ${messageOf(thrown)}`,
      );
    });
    const plan = await decideAgain(lists);
    if (signal.aborted) throw new Ended("stopped");
    return planOn(plan, lists);
  };
  const containers = first.containers.map(({ container }) => container);
  const sandboxes = first.sandboxes.map(({ sandbox }) => sandbox);
  const value = planOn(first, { containers, sandboxes });
  return new Fresh(timer, read, { value, startNs: listedNs });
}

function goingOf(
  { containers, sandboxes, podLogs, links }: ContainerPlan,
  lists: Listed,
): ReadonlySet<string> {
  // A sandbox that contains a container is never removed, because its container would go with it.
  const held = new Set(lists.containers.map(({ sandboxId }) => sandboxId));
  const going = <Planned extends { readonly decision: { readonly kind: string } }>(
    planned: readonly Planned[],
  ) => planned.filter(({ decision }) => decision.kind === "remove");
  return new Set<string>([
    // Limits that are met now do not count, because this pass's own removals met them.
    ...containers.flatMap(({ container, decision: { kind, reason } }) =>
      kind === "remove" || reason.kind === "within-limits" ? [container.id] : [],
    ),
    ...going(sandboxes).flatMap(({ sandbox: { id } }) => (held.has(id) ? [] : [id])),
    ...going(podLogs).map(({ directory }) => directory.entry),
    ...links.map(linkKey),
  ]);
}

/** Apart from those of pods' directories. */
const linkKey = ({ entry }: DanglingLogLink): string => `link ${entry}`;

/** Ends the pass. `message`: for the outcome; "" if `end` says everything. */
class Ended extends Error {
  readonly end: ContainerOutcome["end"];

  constructor(end: ContainerOutcome["end"], message = "") {
    super(message);
    this.end = end;
  }
}

// One removal

/** The call that a removal is at. */
type Step = "status" | "stop" | "remove";

interface Removed {
  readonly step: Step;
  readonly result: RemovalResult;
  /** A call timed out and may still be in progress. */
  readonly unanswered: boolean;
}

/** Runs a removal; if one of its calls fails, that is its result. `status`: asked again after a refused call. */
async function inSteps(
  work: (begin: (step: Step) => void) => Promise<RemovalResult>,
  status: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<Removed> {
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

const UNTOUCHED_LOGS: LogFields = { logFiles: [], logBytes: 0n, logError: null };
