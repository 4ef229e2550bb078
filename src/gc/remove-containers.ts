/** Removes dead containers by a plan that is decided again on fresh lists: containers, then sandboxes, then logs without users. */

import { messageOf } from "../model/errors.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../model/pass.ts";
import type { ContainerPlan } from "../model/plan.ts";
import { unjudged } from "../policy/container/containers.ts";
import { UNANSWERED_MAX } from "./calls.ts";
import {
  Ended,
  type FreshContainerPlan,
  freshContainerPlan,
  linkKey,
} from "./fresh-container-plan.ts";
import type { Fresh } from "./fresh-lists.ts";
import {
  type ContainerExecution,
  type ContainerRemoval,
  removeContainer,
  type Removed,
  removeSandbox,
  untouchedLogs,
} from "./remove-container.ts";
import { removeLink, removePodLogs } from "./remove-logs.ts";

interface Call {
  readonly unanswered: boolean;
  /** The pass was stopped before the answer. */
  readonly isGivenUp?: boolean;
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

  constructor(execution: ContainerExecution) {
    const { plan } = execution;
    // If the directories could not be read, nothing is known about the files in them either.
    const logs = plan.logsError === null ? execution.logs : null;
    this.#execution = { ...execution, logs };
    this.#fresh = freshContainerPlan(execution);
    this.#errors = new Set(unjudged(plan));
  }

  async run(): Promise<ContainerOutcome> {
    const { plan } = this.#execution;
    if (plan.blocks.length > 0) return this.#outcome("blocked", null);
    if (nothingToDo(plan)) return this.#outcome("done", null);
    const before = await this.#available();
    const end = await this.#removeAll();
    const after = before === null ? null : await this.#available();
    const gained = before === null || after === null ? null : after - before;
    return this.#outcome(end, gained);
  }

  async #removeAll(): Promise<ContainerOutcome["end"]> {
    try {
      await this.#removeContainers();
      await this.#listAgain();
      this.#reportGhosts();
      await this.#removeSandboxes();
      if (this.#sandboxes.length > 0) await this.#listAgain();
      await this.#removePodLogs();
      if (this.#logs.length > 0) await this.#listAgain();
      await this.#removeLinks();
      return "done";
    } catch (thrown) {
      if (!(thrown instanceof Ended)) throw thrown;
      if (thrown.message !== "") this.#errors.add(thrown.message);
      return thrown.end;
    }
  }

  async #removeContainers(): Promise<void> {
    const planned = this.#execution.plan.containers.flatMap((one) =>
      one.decision.kind === "remove" ? [{ planned: one, reason: one.decision.reason }] : [],
    );
    const containerIdOf = ({ planned: { container } }: ContainerRemoval): string => container.id;
    await this.#stage("containers", this.#lastLast(planned, containerIdOf), async (removal) => {
      const { container } = removal.planned;
      const why = (): string | undefined => this.#fresh.value.vetoes.get(container.id);
      if (!(await this.#mayBegin(() => why() === undefined))) {
        const result = { kind: "skipped", what: why() ?? "" } as const;
        this.#record(this.#containers, { ...removal, ...untouchedLogs, result, stopped: false });
        return null;
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
  ) {
    if (item.result.kind === "removed") this.#removed.add(id);
    if (note !== undefined) this.#errors.add(note);
    this.#record(items, item);
    const isGivenUp = unanswered && item.result.kind === "skipped";
    const { passes } = this.#execution;
    if (item.result.kind === "failed") passes.notRemoved(id);
    if (item.result.kind === "removed") passes.removed(id);
    return { unanswered, isGivenUp };
  }

  #record<Item extends ContainerItem | SandboxItem | LogItem>(items: Item[], item: Item): void {
    items.push(item);
    this.#execution.done(item);
  }

  async #removeSandboxes(): Promise<void> {
    const planned = this.#fresh.value.plan.sandboxes.flatMap(({ sandbox, decision }) =>
      decision.kind === "remove" ? [{ sandbox, reason: decision.reason }] : [],
    );
    const ordered = this.#lastLast(planned, ({ sandbox }) => sandbox.id);
    await this.#stage("sandboxes", ordered, async ({ sandbox, reason }) => {
      const { id } = sandbox;
      const mayGo = (): boolean => this.#fresh.value.going.has(id);
      if (!(await this.#mayBegin(mayGo))) return null;
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

  /** What could not be removed goes last for a day. */
  #lastLast<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
    const last = this.#execution.passes.last();
    return [
      ...items.filter((item) => !last.has(idOf(item))),
      ...items.filter((item) => last.has(idOf(item))),
    ];
  }

  /** One after the other. `work` returns what came of the call; `null` if there was none, or an answer. */
  async #stage<T>(
    name: string,
    items: readonly T[],
    work: (item: T) => Promise<Call | null>,
  ): Promise<void> {
    let unanswered = 0;
    for (const item of items) {
      const call = await work(item);
      if (call?.isGivenUp === true) throw new Ended("stopped");
      if (call?.unanswered === true) unanswered += 1;
      if (unanswered < UNANSWERED_MAX) continue;
      throw new Ended(
        "done",
        `${name}: ${unanswered} calls got no answer; the next pass does the rest`,
      );
    }
  }

  /** Whether it is still removed, by lists that are recent enough. */
  async #mayBegin(mayGo: () => boolean): Promise<boolean> {
    await this.#stayFresh();
    if (this.#execution.signal.aborted) throw new Ended("stopped");
    return mayGo();
  }

  /** Lists may be a second old, unless a status contradicts them; a hold counts at once. */
  async #stayFresh(): Promise<void> {
    await this.#fresh.get();
    this.#endIfHeld();
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

  async #available(): Promise<bigint | null> {
    try {
      return (await this.#execution.measureAvailable?.()) ?? null;
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

/** Avoids listing an idle node again. */
function nothingToDo({ containers, sandboxes, podLogs, links }: ContainerPlan): boolean {
  const planned = [...containers, ...sandboxes, ...podLogs];
  return links.length === 0 && planned.every(({ decision }) => decision.kind === "keep");
}
