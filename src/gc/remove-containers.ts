/** Removes dead containers by a plan that is decided again on fresh lists: containers, then sandboxes, then logs without users. */

import { messageOf } from "../model/errors.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../model/pass.ts";
import type { ContainerPlan } from "../model/plan.ts";
import type { DanglingLogLink } from "../model/snapshot.ts";
import { unjudged } from "../policy/container/containers.ts";
import type { Listed } from "../policy/container/pods.ts";
import { UNANSWERED_MAX } from "./calls.ts";
import { Fresh } from "./fresh-lists.ts";
import {
  type ContainerExecution,
  removeContainer,
  type Removed,
  removeLink,
  removePodLogs,
  removeSandbox,
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
      if (!(await this.#mayBegin(container.id))) continue;
      const removal = { planned, reason: decision.reason };
      const removed = await removeContainer(removal, this.#removalPorts());
      this.#ended(container.id, this.#containers, removed);
    }
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
  ): void {
    const { passes } = this.#execution;
    if (note !== null) this.#errors.add(note);
    this.#record(items, item);
    if (item.result.kind === "removed") {
      this.#removed.add(id);
      passes.removed(id);
    }
    if (item.result.kind === "failed") passes.notRemoved(id);
    if (!unanswered) return;
    // The pass was stopped before the answer.
    if (item.result.kind === "skipped") throw new Ended("stopped");
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

  async #removeSandboxes(isLast: boolean): Promise<void> {
    for (const { sandbox, decision } of this.#fresh.value.plan.sandboxes) {
      const { id } = sandbox;
      if (decision.kind === "keep" || this.#last.has(id) !== isLast) continue;
      if (!(await this.#mayBegin(id))) continue;
      const removed = await removeSandbox(sandbox, decision.reason, this.#removalPorts());
      this.#ended(id, this.#sandboxes, removed);
    }
  }

  async #removePodLogs(): Promise<void> {
    const { logs, signal } = this.#execution;
    if (logs === null) return;
    for (const { directory, decision } of this.#fresh.value.plan.podLogs) {
      if (decision.kind === "keep") continue;
      if (await this.#mayBegin(directory.entry))
        this.#record(this.#logs, await removePodLogs(directory, decision.reason, { logs, signal }));
    }
  }

  async #removeLinks(): Promise<void> {
    const { logs } = this.#execution;
    if (logs === null) return;
    for (const link of this.#fresh.value.plan.links)
      if (await this.#mayBegin(linkKey(link)))
        this.#record(this.#logs, await removeLink(link, logs));
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
