/** Walks a container plan: containers, then sandboxes on fresh lists, then the logs that nobody has any more. */

import { messageOf } from "../model/errors.ts";
import type { ContainerId } from "../model/ids.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../model/outcome.ts";
import type { ContainerPlan } from "../model/plan.ts";
import { unjudged } from "../policy/containers.ts";
import type { ContainerOptions, ContainerPorts, FreshLists } from "./container-ports.ts";
import { removeContainer } from "./container-removal.ts";
import { DirectoryUse, judgeLink, removeLink, removePodLogs } from "./log-removal.ts";
import type { LogUser } from "./log-users.ts";
import { Pace } from "./pace.ts";
import { removeSandbox } from "./sandbox-removal.ts";

/** Removals and pauses that take longer than this together are decided on anew, by fresh lists. */
const LISTS_VALID_NS = 10_000_000_000n;

/** Never rejects. A removal that fails is recorded and the next one goes on; a list that fails ends the pass. */
export async function collectContainers(
  plan: ContainerPlan,
  ports: ContainerPorts,
  options: ContainerOptions,
): Promise<ContainerOutcome> {
  return await new Walk(plan, ports, options).run();
}

/** Ends the walk early, from wherever it is. */
class Ended extends Error {
  override readonly name = "Ended";
  readonly end: ContainerOutcome["end"];
  constructor(end: ContainerOutcome["end"]) {
    super(end);
    this.end = end;
  }
}

class Walk {
  readonly #plan: ContainerPlan;
  readonly #ports: ContainerPorts;
  readonly #options: ContainerOptions;
  readonly #pace: Pace;
  readonly #containers: ContainerItem[] = [];
  readonly #sandboxes: SandboxItem[] = [];
  readonly #logs: LogItem[] = [];
  readonly #errors: string[];
  /** By the newest lists. */
  #current: ContainerPlan;
  #lists: FreshLists;
  /** Removed since the lists were made. */
  readonly #removed = new Set<string>();
  #vetoes: ReadonlyMap<ContainerId, string> = new Map();
  /** IDs of sandboxes and entries of log directories that go. */
  #going: ReadonlySet<string> = new Set();
  #decidedNs: bigint;

  constructor(plan: ContainerPlan, ports: ContainerPorts, options: ContainerOptions) {
    this.#plan = plan;
    // What is not known of the directories is not known of the files in them either.
    this.#ports = plan.logsError === null ? ports : { ...ports, logs: null };
    this.#options = options;
    this.#pace = new Pace({ ...options, timer: ports.timer });
    this.#current = plan;
    this.#lists = {
      containers: plan.containers.map(({ container }) => container),
      sandboxes: plan.sandboxes.map(({ sandbox }) => sandbox),
    };
    this.#errors = [...unjudged(plan)];
    this.#decidedNs = ports.timer.monotonicNs();
  }

  async run(): Promise<ContainerOutcome> {
    if (this.#plan.blocks.length > 0) return this.#outcome("blocked", null);
    if (nothingToDo(this.#plan)) return this.#outcome("done", null);
    const before = await this.#available();
    const end = await this.#walk();
    const after = before === null ? null : await this.#available();
    const gained = before === null || after === null ? null : after - before;
    // Others write meanwhile: what they took is not a loss of ours.
    return this.#outcome(end, gained !== null && gained < 0n ? 0n : gained);
  }

  async #walk(): Promise<ContainerOutcome["end"]> {
    try {
      await this.#removeContainers();
      await this.#decideAgain();
      await this.#removeSandboxes();
      await this.#removePodLogs();
      await this.#removeLinks();
      return "done";
    } catch (thrown) {
      if (thrown instanceof Ended) return thrown.end;
      throw thrown;
    }
  }

  async #removeContainers(): Promise<void> {
    for (const planned of this.#plan.containers) {
      if (planned.decision.kind === "keep") continue;
      const { reason } = planned.decision;
      const veto = (): string | undefined => this.#vetoes.get(planned.container.id);
      if (!(await this.#mayBegin(() => veto() === undefined))) {
        this.#addContainer(skippedItem({ planned, reason }, veto() ?? ""));
        continue;
      }
      const { item, note } = await removeContainer({ planned, reason }, this.#ports, () =>
        this.#containersThatLog(),
      );
      if (item.result.kind === "removed") this.#removed.add(planned.container.id);
      if (note !== null) this.#errors.push(note);
      this.#addContainer(item);
    }
  }

  #addContainer(item: ContainerItem): void {
    this.#containers.push(item);
    this.#options.done?.(item);
  }

  async #removeSandboxes(): Promise<void> {
    for (const { sandbox, decision } of this.#current.sandboxes) {
      if (decision.kind === "keep") continue;
      if (!(await this.#mayBegin(() => this.#going.has(sandbox.id)))) continue;
      const item = await removeSandbox(sandbox, decision.reason, this.#ports);
      if (item.result.kind === "removed") this.#removed.add(sandbox.id);
      this.#sandboxes.push(item);
      this.#options.done?.(item);
    }
  }

  async #removePodLogs(): Promise<void> {
    const { logs } = this.#ports;
    if (logs === null) return;
    const use = new DirectoryUse(logs, async () => [
      ...(await this.#containersThatLog()),
      ...(await this.#sandboxesThatLog()),
    ]);
    for (const { directory, decision } of this.#current.podLogs) {
      if (decision.kind === "keep") continue;
      if (!(await this.#mayBegin(() => this.#going.has(directory.entry)))) continue;
      const item = await removePodLogs(directory, decision.reason, { logs, use });
      this.#logs.push(item);
      this.#options.done?.(item);
    }
  }

  async #containersThatLog(): Promise<readonly LogUser[]> {
    const { logUsers } = this.#ports;
    return this.#stillThere(await logUsers.ofContainers(this.#lists, this.#options.signal));
  }

  async #sandboxesThatLog(): Promise<readonly LogUser[]> {
    const { logUsers } = this.#ports;
    return this.#stillThere(await logUsers.ofSandboxes(this.#lists, this.#options.signal));
  }

  #stillThere(users: readonly LogUser[]): readonly LogUser[] {
    return users.filter(({ id }) => !this.#removed.has(id));
  }

  /** A link takes no space worth a limit, and there may be thousands: only the wish to stop ends this. */
  async #removeLinks(): Promise<void> {
    const { logs, runtime } = this.#ports;
    if (logs === null) return;
    for (const { link } of this.#current.links) {
      if (this.#options.signal.aborted) throw new Ended("stopped");
      await this.#stayFresh();
      if (this.#current.links.length === 0) return;
      try {
        const reason = await judgeLink(link, this.#lists.containers, runtime);
        if (reason === null) continue;
        const item = await removeLink(link, reason, logs);
        this.#logs.push(item);
        this.#options.done?.(item);
      } catch (thrown) {
        this.#errors.push(`log link ${link.entry} stays: ${messageOf(thrown)}`);
      }
    }
  }

  /** Whether it still goes, by lists that are not too old; also after the pause, which may have been a long one. */
  async #mayBegin(goes: () => boolean): Promise<boolean> {
    await this.#stayFresh();
    if (!goes()) return false;
    const leave = await this.#pace.next();
    if (leave !== "go") throw new Ended(leave);
    await this.#stayFresh();
    return goes();
  }

  async #stayFresh(): Promise<void> {
    if (this.#ports.timer.monotonicNs() - this.#decidedNs > LISTS_VALID_NS)
      await this.#decideAgain();
  }

  async #decideAgain(): Promise<void> {
    const { runtime, timer } = this.#ports;
    const { signal, decideAgain } = this.#options;
    const lists = await Promise.all([
      runtime.listContainers(signal),
      runtime.listSandboxes(signal),
    ]).catch((thrown: unknown) => {
      if (signal.aborted) throw new Ended("stopped");
      this.#errors.push(`the rest stays, because it was not listed again: ${messageOf(thrown)}`);
      throw new Ended("observation-failed");
    });
    const [containers, sandboxes] = lists;
    this.#lists = { containers, sandboxes };
    this.#ports.logUsers.forget(this.#lists);
    this.#current = decideAgain(this.#lists);
    this.#vetoes = vetoesOf(this.#current);
    this.#going = goingOf(this.#current, containers);
    this.#decidedNs = timer.monotonicNs();
  }

  async #available(): Promise<bigint | null> {
    try {
      return (await this.#ports.measureAvailable?.()) ?? null;
    } catch (thrown) {
      this.#errors.push(messageOf(thrown));
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
      errors: this.#errors,
    };
  }
}

/** An idle node is not asked for its lists again. */
function nothingToDo({ containers, sandboxes, podLogs, links }: ContainerPlan): boolean {
  const planned = [...containers, ...sandboxes, ...podLogs];
  return links.length === 0 && planned.every(({ decision }) => decision.kind === "keep");
}

/**
 * Why the newer decision forbids what the plan asked for. That the limits are met by now is no reason: they are met by
 * the removals of this very pass.
 */
function vetoesOf(current: ContainerPlan): ReadonlyMap<ContainerId, string> {
  const vetoes = new Map<ContainerId, string>();
  for (const { container, decision } of current.containers) {
    if (decision.kind === "keep" && decision.reason.kind !== "within-limits") {
      vetoes.set(container.id, `it is kept now: ${decision.reason.kind}`);
    }
  }
  return vetoes;
}

/** Whoever decided: a sandbox with a container in it is not torn down, or its container would go with it. */
function goingOf(
  { sandboxes, podLogs }: ContainerPlan,
  containers: FreshLists["containers"],
): ReadonlySet<string> {
  const held = new Set(containers.map((container) => container.sandboxId));
  const going = sandboxes.filter(
    ({ sandbox, decision }) => decision.kind === "remove" && !held.has(sandbox.id),
  );
  const logs = podLogs.filter(({ decision }) => decision.kind === "remove");
  return new Set([
    ...going.map(({ sandbox }): string => sandbox.id),
    ...logs.map(({ directory }) => directory.entry),
  ]);
}

function skippedItem(
  removal: Pick<ContainerItem, "planned" | "reason">,
  what: string,
): ContainerItem {
  const result = { kind: "skipped", what } as const;
  return { ...removal, result, stopped: false, logFiles: [], logBytes: 0n, logError: null };
}
