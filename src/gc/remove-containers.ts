/** Removes dead containers by a plan that is decided again on fresh lists: containers, then sandboxes, then logs without users. */

import { messageOf, wasUnanswered } from "../model/errors.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../model/pass.ts";
import type { ContainerPlan, PlannedContainer } from "../model/plan.ts";
import { atLeastZero } from "../model/values.ts";
import { unjudged } from "../policy/container/containers.ts";
import { HANGING_NS, inLanes, OthersRemovals, UNANSWERED_MAX } from "./calls.ts";
import { Ended, type FreshContainerPlan, freshContainerPlan } from "./fresh-container-plan.ts";
import type { Fresh } from "./fresh-view.ts";
import { LogUse } from "./log-users.ts";
import {
  type ContainerExecution,
  type ContainerRemoval,
  removeContainer,
  type Removed,
  removeSandbox,
  untouchedLogs,
} from "./remove-container.ts";
import { containerOfLink, linkReason, removeLink, removePodLogs } from "./remove-logs.ts";
import { STOP_GRACE_MAX } from "./stop-pod.ts";

/** Pods processed in parallel. More than two, so that two hanging calls do not block the others. */
const LANES = 4;
/** All stops of a pass together take at most this many times the longest grace period. */
const STOPS_IN_SUCCESSION_MAX = 4;

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
  readonly #logUse: LogUse | null;
  readonly #others: OthersRemovals;
  readonly #lanes: number;
  readonly #containers: ContainerItem[] = [];
  readonly #sandboxes: SandboxItem[] = [];
  readonly #logs: LogItem[] = [];
  readonly #errors: Set<string>;
  readonly #removed = new Set<string>();
  #stoppingNs = 0n;

  constructor(execution: ContainerExecution) {
    const { plan, timer, signal, logUsers: users } = execution;
    // If the directories could not be read, nothing is known about the files in them either.
    const logs = plan.logsError === null ? execution.logs : null;
    this.#execution = { ...execution, logs };
    this.#fresh = freshContainerPlan(execution);
    this.#others = new OthersRemovals(timer, signal);
    this.#logUse = logs === null ? null : new LogUse({ users, logs, timer }, this.#removed, signal);
    this.#lanes = execution.inOrder ? 1 : LANES;
    this.#errors = new Set(unjudged(plan));
  }

  async run(): Promise<ContainerOutcome> {
    const { plan } = this.#execution;
    if (plan.blocks.length > 0) return this.#outcome("blocked", null);
    if (nothingToDo(plan)) return this.#outcome("done", null);
    const before = await this.#available();
    const end = await this.#removeAll();
    const after = before === null ? null : await this.#available();
    // Space that others used up meanwhile does not count against the pass.
    const gained = before === null || after === null ? null : atLeastZero(after - before);
    return this.#outcome(end, gained);
  }

  async #removeAll(): Promise<ContainerOutcome["end"]> {
    try {
      await this.#removeContainers();
      await this.#fresh.again(this.#execution.signal);
      this.#endIfHeld();
      this.#forgetUnlisted();
      await this.#removeSandboxes();
      await this.#removePodLogs();
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
    const podOf = ({ planned: { container } }: ContainerRemoval): string =>
      container.podUid === "" ? container.sandboxId : container.podUid;
    await this.#stage("containers", this.#groups(planned, podOf), async (removal) => {
      const { container, stopFirst } = removal.planned;
      const why = (): string | undefined =>
        this.#execution.backoff.leftAlone(container.id) ??
        this.#fresh.value.vetoes.get(container.id) ??
        this.#tooLong(removal.planned);
      const { lists } = this.#fresh.value;
      if (why() === undefined && (await this.#logUse?.readBeside(container, lists)) === false)
        this.#fresh.expire();
      if (!(await this.#mayBegin(() => why() === undefined))) {
        const result = { kind: "skipped", what: why() ?? "" } as const;
        this.#record(this.#containers, { ...removal, ...untouchedLogs, result, stopped: false });
        return null;
      }
      const removed = await this.#timed(removeContainer(removal, this.#removalPorts()));
      if (stopFirst) this.#stoppingNs += removed.tookNs;
      return this.#ended(container.id, this.#containers, removed);
    });
  }

  #removalPorts() {
    return {
      ...this.#execution,
      others: this.#others,
      outdated: () => this.#fresh.expire(),
      namesBeside: async (container: PlannedContainer["container"], path: string) =>
        (await this.#logUse?.namesBeside(container, path, this.#fresh.value.lists)) ?? [],
    };
  }

  /** Stopping many containers takes long even if each stop is short; the next pass continues. */
  #tooLong({ stopFirst }: PlannedContainer): string | undefined {
    const longestNs = STOP_GRACE_MAX * BigInt(STOPS_IN_SUCCESSION_MAX);
    if (!stopFirst || this.#stoppingNs <= longestNs) return undefined;
    return "it must be stopped first, and stopping containers took too long in this pass";
  }

  /** Without the pauses and lists before it. */
  async #timed<Item>(removing: Promise<Removed<Item>>) {
    const { timer } = this.#execution;
    const startNs = timer.monotonicNs();
    return { ...(await removing), tookNs: timer.monotonicNs() - startNs };
  }

  #ended<Item extends ContainerItem | SandboxItem>(
    id: string,
    items: Item[],
    { item, note, unanswered, tookNs }: Removed<Item> & { readonly tookNs: bigint },
  ) {
    if (item.result.kind === "removed") this.#removed.add(id);
    if (note !== undefined) this.#errors.add(note);
    this.#record(items, item);
    const isGivenUp = unanswered && item.result.kind === "skipped";
    // Early, it might have been answered in time; but pre-stop handlers are not to begin anew in each pass.
    const isEarly = tookNs < HANGING_NS && !("planned" in item && item.planned.stopFirst);
    if (!isGivenUp || !isEarly) this.#execution.backoff.note(id, unanswered);
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
    const groups = this.#groups(planned, ({ sandbox }) => sandbox.id);
    await this.#stage("sandboxes", groups, async ({ sandbox, reason }) => {
      const { id } = sandbox;
      const mayGo = (): boolean =>
        this.#execution.backoff.leftAlone(id) === undefined && this.#fresh.value.going.has(id);
      if (!(await this.#mayBegin(mayGo))) return null;
      const removed = await this.#timed(removeSandbox(sandbox, reason, this.#removalPorts()));
      return this.#ended(id, this.#sandboxes, removed);
    });
  }

  async #removePodLogs(): Promise<void> {
    const { logs, signal } = this.#execution;
    const use = this.#logUse;
    if (logs === null || use === null) return;
    for (const { directory, decision } of this.#fresh.value.plan.podLogs) {
      if (decision.kind === "keep") continue;
      const userOf = () => use.userOf(directory, this.#fresh.value.lists);
      // The statuses may take minutes, after which the lists are old.
      await userOf().catch(() => undefined);
      if (!(await this.#mayBegin(() => this.#fresh.value.going.has(directory.entry)))) continue;
      const item = await removePodLogs(directory, decision.reason, { logs, userOf, signal });
      this.#record(this.#logs, item);
    }
  }

  /** There may be thousands of links; only a request to stop ends this. */
  async #removeLinks(): Promise<void> {
    const { logs, runtime, backoff, signal } = this.#execution;
    if (logs === null) return;
    await this.#stage("log links", [this.#fresh.value.plan.links], async ({ link }) => {
      if (signal.aborted) throw new Ended("stopped");
      await this.#stayFresh();
      const id = containerOfLink(link, this.#fresh.value.lists.containers);
      const isKept = this.#fresh.value.plan.links.length === 0 || id === null;
      if (isKept || backoff.leftAlone(id) !== undefined) return null;
      try {
        const reason = linkReason(id, await runtime.containerDetail(id, signal));
        if (reason !== null) this.#record(this.#logs, await removeLink(link, reason, logs));
        backoff.note(id, false);
        return null;
      } catch (thrown) {
        if (signal.aborted) throw new Ended("stopped");
        this.#errors.add(`log link ${link.entry} kept: ${messageOf(thrown)}`);
        const unanswered = wasUnanswered(thrown);
        backoff.note(id, unanswered);
        return { unanswered };
      }
    });
  }

  /** A single lane holds everything, in order. */
  #groups<T>(items: readonly T[], groupOf: (item: T) => string): readonly (readonly T[])[] {
    return this.#lanes === 1 ? [items] : [...Map.groupBy(items, groupOf).values()];
  }

  /** `work` returns what came of the call; `null` if there was none, or an answer. */
  async #stage<T>(
    name: string,
    groups: readonly (readonly T[])[],
    work: (item: T) => Promise<Call | null>,
  ): Promise<void> {
    const unanswered = await inLanes(groups, this.#lanes, async (item) => {
      const call = await work(item);
      // Not a call that timed out, even if every lane has one.
      if (call?.isGivenUp === true) throw new Ended("stopped");
      return call?.unanswered === true;
    });
    // A pass that has to end waits for no deadline.
    if (unanswered >= UNANSWERED_MAX && !this.#execution.signal.aborted)
      this.#errors.add(`${name}: ${unanswered} calls got no answer; the next pass does the rest`);
  }

  /** Whether it is still removed, by lists that are recent enough. */
  async #mayBegin(mayGo: () => boolean): Promise<boolean> {
    await this.#stayFresh();
    if (!mayGo()) return false;
    if (this.#execution.signal.aborted) throw new Ended("stopped");
    return true;
  }

  /** Lists may be a second old, unless a status contradicts them; a hold counts at once. */
  async #stayFresh(): Promise<void> {
    await this.#fresh.get(this.#execution.signal);
    this.#endIfHeld();
  }

  #endIfHeld(): void {
    if (this.#execution.held()) throw new Ended("blocked");
  }

  #forgetUnlisted(): void {
    const { containers, sandboxes } = this.#fresh.value.lists;
    const ids = new Set<string>([...containers, ...sandboxes].map(({ id }) => id));
    for (const id of this.#removed.intersection(ids))
      this.#errors.add(`container ${id} is still listed after its removal`);
    this.#execution.logUsers.retain(ids);
    this.#execution.backoff.retain(() => ids);
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
