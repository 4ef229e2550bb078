/** Removes dead containers by a plan that is decided again on fresh lists: containers, then sandboxes, then logs without users. */

import { messageOf } from "../model/errors.ts";
import type { ContainerId } from "../model/ids.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../model/pass.ts";
import type { ContainerPlan } from "../model/plan.ts";
import type { DanglingLogLink } from "../model/snapshot.ts";
import { unjudged } from "../policy/container/containers.ts";
import type { Listed } from "../policy/container/pods.ts";
import { UNANSWERED_MAX } from "./calls.ts";
import { Fresh } from "./fresh-lists.ts";
import {
  type ContainerExecution,
  type ContainerRemoval,
  removeContainer,
  type Removed,
  removeLink,
  removePodLogs,
  removeSandbox,
  untouchedLogs,
} from "./remove-container.ts";

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
    const planned = this.#execution.plan.containers.flatMap((one): readonly ContainerRemoval[] =>
      one.decision.kind === "remove" && this.#last.has(one.container.id) === isLast
        ? [{ planned: one, reason: one.decision.reason }]
        : [],
    );
    await this.#stage("containers", planned, async (removal) => {
      const { container } = removal.planned;
      const why = (): string | undefined => this.#fresh.value.vetoes.get(container.id);
      if (!(await this.#mayBegin(() => why() === undefined))) {
        const result = { kind: "skipped", what: why() ?? "" } as const;
        this.#record(this.#containers, { ...removal, ...untouchedLogs, result, stopped: false });
        return false;
      }
      const removed = await removeContainer(removal, this.#removalPorts());
      return this.#ended(container.id, this.#containers, removed);
    });
  }

  #removalPorts() {
    return {
      ...this.#execution,
      outdated: () => this.#fresh.expire(),
      listed: () => this.#fresh.value.lists.containers.filter(({ id }) => !this.#removed.has(id)),
    };
  }

  #ended<Item extends ContainerItem | SandboxItem>(
    id: string,
    items: Item[],
    { item, note, unanswered }: Removed<Item>,
  ): boolean {
    if (item.result.kind === "removed") this.#removed.add(id);
    if (note !== null) this.#errors.add(note);
    this.#record(items, item);
    // The pass was stopped before the answer.
    if (unanswered && item.result.kind === "skipped") throw new Ended("stopped");
    const { passes } = this.#execution;
    if (item.result.kind === "failed") passes.notRemoved(id);
    if (item.result.kind === "removed") passes.removed(id);
    return unanswered;
  }

  #record<Item extends ContainerItem | SandboxItem | LogItem>(items: Item[], item: Item): void {
    items.push(item);
    this.#execution.done(item);
  }

  async #removeSandboxes(isLast: boolean): Promise<void> {
    const planned = this.#fresh.value.plan.sandboxes.flatMap(({ sandbox, decision }) =>
      decision.kind === "remove" && this.#last.has(sandbox.id) === isLast
        ? [{ sandbox, reason: decision.reason }]
        : [],
    );
    await this.#stage("sandboxes", planned, async ({ sandbox, reason }) => {
      const { id } = sandbox;
      const mayGo = (): boolean => this.#fresh.value.going.has(id);
      if (!(await this.#mayBegin(mayGo))) return false;
      const removed = await removeSandbox(sandbox, reason, this.#removalPorts());
      return this.#ended(id, this.#sandboxes, removed);
    });
  }

  async #removePodLogs(): Promise<void> {
    const { logs, signal } = this.#execution;
    if (logs === null) return;
    for (const { directory, decision } of this.#fresh.value.plan.podLogs) {
      if (decision.kind === "keep") continue;
      if (await this.#mayBegin(() => this.#fresh.value.going.has(directory.entry)))
        this.#record(this.#logs, await removePodLogs(directory, decision.reason, { logs, signal }));
    }
  }

  async #removeLinks(): Promise<void> {
    const { logs } = this.#execution;
    if (logs === null) return;
    for (const link of this.#fresh.value.plan.links)
      if (await this.#mayBegin(() => this.#fresh.value.going.has(linkKey(link))))
        this.#record(this.#logs, await removeLink(link, logs));
  }

  /** One after the other. `work` returns whether a call got no answer. */
  async #stage<T>(
    name: string,
    items: readonly T[],
    work: (item: T) => Promise<boolean>,
  ): Promise<void> {
    let unanswered = 0;
    for (const item of items) {
      if (await work(item)) unanswered += 1;
      if (unanswered < UNANSWERED_MAX) continue;
      throw new Ended(
        "done",
        `${name}: ${unanswered} calls got no answer; the next pass does the rest`,
      );
    }
  }

  /** Whether it is still removed, by lists of the last second, unless a status contradicts them; a hold counts at once. */
  async #mayBegin(mayGo: () => boolean): Promise<boolean> {
    await this.#fresh.get();
    this.#endIfHeld();
    if (this.#execution.signal.aborted) throw new Ended("stopped");
    return mayGo();
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
  /** Why containers are kept, although the first plan removes them. */
  readonly vetoes: ReadonlyMap<ContainerId, string>;
  /** IDs of sandboxes, entries of log directories and keys of links that the newer plan still removes. */
  readonly going: ReadonlySet<string>;
}

/** Reading it throws `Ended` if the lists fail. */
function freshContainerPlan(execution: ContainerExecution): Fresh<FreshContainerPlan> {
  const { plan, timer, listedNs, lists, decideAgain, signal } = execution;
  const containers = plan.containers.map(({ container }) => container);
  const sandboxes = plan.sandboxes.map(({ sandbox }) => sandbox);
  const planned = {
    plan,
    lists: { containers, sandboxes },
    vetoes: new Map(),
    going: new Set<string>(),
  };
  const read = async (): Promise<FreshContainerPlan> => {
    if (signal.aborted) throw new Ended("stopped");
    const listed = await lists.read(signal).catch((thrown: unknown) => {
      if (signal.aborted) throw new Ended("stopped");
      throw new Ended(
        "observation-failed",
        `the rest is kept, because it cannot be listed again: ${messageOf(thrown)}`,
      );
    });
    const now = await decideAgain(listed);
    if (signal.aborted) throw new Ended("stopped");
    return { plan: now, lists: listed, vetoes: vetoesOf(now), going: goingOf(now, listed) };
  };
  return new Fresh(timer, read, { value: planned, startNs: listedNs });
}

/**
 * Why the newer decision forbids what was planned. Limits met since then do not count, because this pass's own
 * removals met them.
 */
function vetoesOf({ containers }: ContainerPlan): ReadonlyMap<ContainerId, string> {
  const kept = containers.flatMap(({ container: { id }, decision }) =>
    decision.kind === "keep" && decision.reason.kind !== "within-limits"
      ? [[id, `it is kept now: ${decision.reason.kind}`] as const]
      : [],
  );
  return new Map(kept);
}

/** A sandbox that contains a container is never removed, because its container would go with it. */
function goingOf({ sandboxes, podLogs, links }: ContainerPlan, lists: Listed): ReadonlySet<string> {
  const held = new Set(lists.containers.map(({ sandboxId }) => sandboxId));
  const going = sandboxes.filter(
    ({ sandbox, decision }) => decision.kind === "remove" && !held.has(sandbox.id),
  );
  const logs = podLogs.filter(({ decision }) => decision.kind === "remove");
  return new Set([
    ...going.map(({ sandbox }): string => sandbox.id),
    ...logs.map(({ directory }) => directory.entry),
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
