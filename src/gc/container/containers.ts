/** Executes a container plan on fresh lists: containers, then sandboxes, then logs without users. */

import { messageOf, wasUnanswered } from "../../model/errors.ts";
import type { ContainerItem, ContainerOutcome, LogItem, SandboxItem } from "../../model/outcome.ts";
import type { ContainerPlan, PlannedContainer } from "../../model/plan.ts";
import { toMs } from "../../model/time.ts";
import { unjudged } from "../../policy/container/containers.ts";
import { OthersRemovals } from "../others-removal.ts";
import { Pace } from "../pace.ts";
import { type Answer, Stage } from "../stage.ts";
import type { ContainerOptions, ContainerPorts } from "./container-ports.ts";
import { type ContainerRemoval, removeContainer, untouchedLogs } from "./container-removal.ts";
import { Ended, FreshPlan } from "./fresh-plan.ts";
import { containerOfLink, linkReason, removeLink, removePodLogs } from "./log-removal.ts";
import { LogUse } from "./log-use.ts";
import { removeSandbox } from "./sandbox-removal.ts";

/** Pods processed in parallel. More than two, so that two hanging calls do not block the others. */
const LANES = 4;
/** All stops of a pass together take at most this many times the longest grace period. */
const STOPS_IN_SUCCESSION_MAX = 4;

/** Never rejects. Records a failed removal and continues with the next; a failed list ends the pass. */
export async function collectContainers(
  plan: ContainerPlan,
  ports: ContainerPorts,
  options: ContainerOptions,
): Promise<ContainerOutcome> {
  return await new ContainerPass(plan, ports, options).run();
}

class ContainerPass {
  readonly #plan: ContainerPlan;
  readonly #ports: ContainerPorts;
  readonly #options: ContainerOptions;
  readonly #pace: Pace;
  readonly #fresh: FreshPlan;
  readonly #logUse: LogUse | null;
  readonly #others: OthersRemovals;
  readonly #lanes: number;
  readonly #containers: ContainerItem[] = [];
  readonly #sandboxes: SandboxItem[] = [];
  readonly #logs: LogItem[] = [];
  readonly #errors: string[];
  readonly #removed = new Set<string>();
  #stoppingNs = 0n;

  constructor(plan: ContainerPlan, given: ContainerPorts, options: ContainerOptions) {
    // If the directories could not be read, nothing is known about the files in them either.
    const ports = plan.logsError === null ? given : { ...given, logs: null };
    this.#plan = plan;
    this.#ports = ports;
    this.#options = options;
    this.#pace = new Pace({ ...options, timer: ports.timer });
    this.#fresh = new FreshPlan(plan, ports, options);
    this.#others = new OthersRemovals(ports.timer, options.signal);
    const { logs, logUsers: users } = ports;
    this.#logUse =
      logs === null ? null : new LogUse({ users, logs }, this.#removed, options.signal);
    // With a pace, or with a limit, removals follow the order of the plan.
    const inOrder = options.inOrder || options.maximumRemovals !== null;
    this.#lanes = inOrder || options.removalInterval > 0n ? 1 : LANES;
    this.#errors = [...unjudged(plan)];
  }

  async run(): Promise<ContainerOutcome> {
    if (this.#plan.blocks.length > 0) return this.#outcome("blocked", null);
    if (nothingToDo(this.#plan)) return this.#outcome("done", null);
    const before = await this.#available();
    const end = await this.#walk();
    const after = before === null ? null : await this.#available();
    const gained = before === null || after === null ? null : after - before;
    // Other programs write meanwhile; what they wrote is not a negative gain.
    return this.#outcome(end, gained !== null && gained < 0n ? 0n : gained);
  }

  async #walk(): Promise<ContainerOutcome["end"]> {
    try {
      await this.#removeContainers();
      await this.#fresh.decideAgain();
      this.#endIfHeld();
      this.#forgetUnlisted();
      await this.#removeSandboxes();
      await this.#removePodLogs();
      await this.#removeLinks();
      return "done";
    } catch (thrown) {
      if (!(thrown instanceof Ended)) throw thrown;
      if (thrown.message !== "") this.#errors.push(thrown.message);
      return thrown.end;
    }
  }

  async #removeContainers(): Promise<void> {
    const going = this.#plan.containers.flatMap((planned) =>
      planned.decision.kind === "remove" ? [{ planned, reason: planned.decision.reason }] : [],
    );
    const podOf = ({ planned: { container } }: ContainerRemoval): string =>
      container.podUid === "" ? container.sandboxId : container.podUid;
    await this.#stage("containers", this.#inLanes(going, podOf), async (removal, stage) => {
      const { id } = removal.planned.container;
      const why = (): string | undefined =>
        stage.leftAlone(id) ?? this.#fresh.veto(id) ?? this.#tooLong(removal.planned);
      if (!(await this.#mayBegin(() => why() === undefined))) {
        this.#addContainer(skippedItem(removal, why() ?? ""));
        return "answered";
      }
      const startNs = this.#ports.timer.monotonicNs();
      const { item, note, unanswered } = await removeContainer(removal, this.#removalPorts());
      if (removal.planned.stopFirst) this.#stoppingNs += this.#ports.timer.monotonicNs() - startNs;
      this.#pace.end(item.result);
      if (item.result.kind === "removed") this.#removed.add(id);
      if (note !== null) this.#errors.push(note);
      this.#addContainer(item);
      return stage.note(id, unanswered);
    });
  }

  #removalPorts() {
    const { signal, stopGraceMax } = this.#options;
    return {
      ...this.#ports,
      signal,
      others: this.#others,
      graceMaxSeconds: toMs(stopGraceMax) / 1000,
      namesBeside: async (container: PlannedContainer["container"], path: string) =>
        (await this.#logUse?.namesBeside(container, path, this.#fresh.lists())) ?? [],
    };
  }

  /** Stopping many containers takes long even if each stop is short; the next pass continues. */
  #tooLong({ stopFirst }: PlannedContainer): string | undefined {
    const longestNs = this.#options.stopGraceMax * BigInt(STOPS_IN_SUCCESSION_MAX);
    if (!stopFirst || this.#stoppingNs <= longestNs) return undefined;
    return "it must be stopped first, and stopping containers took too long in this pass";
  }

  #addContainer(item: ContainerItem): void {
    this.#containers.push(item);
    this.#options.done?.(item);
  }

  async #removeSandboxes(): Promise<void> {
    const going = this.#fresh
      .plan()
      .sandboxes.flatMap(({ sandbox, decision }) =>
        decision.kind === "remove" ? [{ sandbox, reason: decision.reason }] : [],
      );
    const groups = this.#inLanes(going, ({ sandbox }) => sandbox.id);
    await this.#stage("sandboxes", groups, async ({ sandbox, reason }, stage) => {
      const goes = (): boolean => this.#fresh.goes(sandbox.id);
      if (stage.leftAlone(sandbox.id) !== undefined || !(await this.#mayBegin(goes)))
        return "answered";
      const ports = { ...this.#ports, signal: this.#options.signal, others: this.#others };
      const { item, unanswered } = await removeSandbox(sandbox, reason, ports);
      this.#pace.end(item.result);
      if (item.result.kind === "removed") this.#removed.add(sandbox.id);
      this.#sandboxes.push(item);
      this.#options.done?.(item);
      return stage.note(sandbox.id, unanswered);
    });
  }

  async #removePodLogs(): Promise<void> {
    const { logs } = this.#ports;
    const use = this.#logUse;
    if (logs === null || use === null) return;
    for (const { directory, decision } of this.#fresh.plan().podLogs) {
      if (decision.kind === "keep") continue;
      if (!(await this.#mayBegin(() => this.#fresh.goes(directory.entry)))) continue;
      const userOf = () => use.userOf(directory, this.#fresh.lists());
      const item = await removePodLogs(directory, decision.reason, { logs, userOf });
      this.#pace.end(item.result);
      this.#addLog(item);
    }
  }

  #addLog(item: LogItem): void {
    this.#logs.push(item);
    this.#options.done?.(item);
  }

  /** Links take no space worth a limit, and there may be thousands: only a request to stop ends this. */
  async #removeLinks(): Promise<void> {
    const { logs, runtime } = this.#ports;
    const { signal } = this.#options;
    if (logs === null) return;
    const links = this.#fresh.plan().links.map(({ link }) => link);
    await this.#stage("log links", [links], async (link, stage): Promise<Answer> => {
      if (signal.aborted) throw new Ended("stopped");
      await this.#fresh.stayFresh();
      this.#endIfHeld();
      const id = containerOfLink(link, this.#fresh.lists().containers);
      const gone = this.#fresh.plan().links.length === 0 || id === null;
      if (gone || stage.leftAlone(id) !== undefined) return "answered";
      try {
        const reason = linkReason(id, await runtime.containerDetail(id, signal));
        if (reason !== null) this.#addLog(await removeLink(link, reason, logs));
        return stage.note(id, false);
      } catch (thrown) {
        if (signal.aborted) throw new Ended("stopped");
        this.#errors.push(`log link ${link.entry} kept: ${messageOf(thrown)}`);
        return stage.note(id, wasUnanswered(thrown));
      }
    });
  }

  /** A single lane holds everything, in order. */
  #inLanes<T>(items: readonly T[], groupOf: (item: T) => string): readonly (readonly T[])[] {
    return this.#lanes === 1 ? [items] : [...Map.groupBy(items, groupOf).values()];
  }

  async #stage<T>(
    name: string,
    groups: readonly (readonly T[])[],
    work: (item: T, stage: Stage) => Promise<Answer>,
  ): Promise<void> {
    const stage = new Stage(name, this.#ports.backoff);
    await stage.run(groups, this.#lanes, (item) => work(item, stage));
    const error = stage.error();
    if (error !== null) this.#errors.push(error);
  }

  /** Whether it is still removed, by lists that are recent enough. Also checked after the pause, which may be long. */
  async #mayBegin(goes: () => boolean): Promise<boolean> {
    await this.#fresh.stayFresh();
    this.#endIfHeld();
    if (!goes()) return false;
    const leave = await this.#pace.next();
    if (leave !== "go") throw new Ended(leave);
    await this.#fresh.stayFresh();
    this.#endIfHeld();
    return goes();
  }

  /** Lists may be a second old; a hold counts at once. */
  #endIfHeld(): void {
    if (this.#options.held()) throw new Ended("blocked");
  }

  #forgetUnlisted(): void {
    const lists = this.#fresh.lists();
    const ids = new Set<string>([...lists.containers, ...lists.sandboxes].map(({ id }) => id));
    this.#ports.logUsers.retain(ids);
    this.#ports.backoff.retain(ids);
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

/** Avoids listing an idle node again. */
function nothingToDo({ containers, sandboxes, podLogs, links }: ContainerPlan): boolean {
  const planned = [...containers, ...sandboxes, ...podLogs];
  return links.length === 0 && planned.every(({ decision }) => decision.kind === "keep");
}

function skippedItem(
  removal: Pick<ContainerItem, "planned" | "reason">,
  what: string,
): ContainerItem {
  const result = { kind: "skipped", what } as const;
  return { ...removal, ...untouchedLogs, result, stopped: false };
}
