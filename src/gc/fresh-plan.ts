/** The container plan on the newest lists, which are read again when they are too old to act on. */

import { messageOf } from "../model/errors.ts";
import type { ContainerId } from "../model/ids.ts";
import type { ContainerOutcome } from "../model/outcome.ts";
import type { ContainerPlan } from "../model/plan.ts";
import type { Timer } from "../model/ports.ts";
import type { Listed } from "../policy/container/ownership.ts";
import { Fresh } from "./fresh-view.ts";
import type { PodLists } from "./pod-lists.ts";

export interface FreshPlanPorts {
  /** The lists of the pass. */
  readonly lists: PodLists;
  readonly timer: Timer;
  /** Receives messages of the pass about its lists. */
  readonly say: (message: string) => void;
}

export interface FreshPlanOptions {
  readonly signal: AbortSignal;
  /** The same decision on current lists; everything else is as at the start of the pass. */
  readonly decideAgain: (lists: Listed) => ContainerPlan;
  /** When the plan's lists were requested, by the monotonic clock. */
  readonly listedNs: bigint;
}

interface Decided {
  readonly plan: ContainerPlan;
  readonly lists: Listed;
  /** Why containers are kept, although the first plan removes them. */
  readonly vetoes: ReadonlyMap<ContainerId, string>;
  /** IDs of sandboxes and entries of log directories that are still to be removed. */
  readonly going: ReadonlySet<string>;
}

export class FreshPlan {
  readonly #ports: FreshPlanPorts;
  readonly #options: FreshPlanOptions;
  readonly #fresh: Fresh<Decided>;
  now: Decided;

  constructor(plan: ContainerPlan, ports: FreshPlanPorts, options: FreshPlanOptions) {
    this.#ports = ports;
    this.#options = options;
    const containers = plan.containers.map(({ container }) => container);
    const sandboxes = plan.sandboxes.map(({ sandbox }) => sandbox);
    const lists = { containers, sandboxes };
    this.now = { plan, lists, vetoes: new Map(), going: new Set() };
    const first = { value: this.now, startNs: options.listedNs };
    this.#fresh = new Fresh({ ...ports, first, attempts: 1, read: () => this.#decide() });
  }

  /** Throws `Ended` if the lists fail. */
  async stayFresh(): Promise<void> {
    await this.#fresh.get(this.#options.signal);
  }

  async decideAgain(): Promise<void> {
    await this.#fresh.again(this.#options.signal);
  }

  async #decide(): Promise<{ readonly value: Decided; readonly startNs: bigint }> {
    const { signal, decideAgain } = this.#options;
    if (signal.aborted) throw new Ended("stopped");
    const startNs = this.#ports.timer.monotonicNs();
    const lists = await this.#ports.lists.read(signal).catch((thrown: unknown) => {
      if (signal.aborted) throw new Ended("stopped");
      throw new Ended(
        "observation-failed",
        `the rest is kept, because it cannot be listed again: ${messageOf(thrown)}`,
      );
    });
    const plan = decideAgain(lists);
    this.now = { plan, lists, vetoes: vetoesOf(plan), going: goingOf(plan, lists) };
    return { value: this.now, startNs };
  }
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
function goingOf({ sandboxes, podLogs }: ContainerPlan, lists: Listed): ReadonlySet<string> {
  const held = new Set(lists.containers.map(({ sandboxId }) => sandboxId));
  const going = sandboxes.filter(
    ({ sandbox, decision }) => decision.kind === "remove" && !held.has(sandbox.id),
  );
  const logs = podLogs.filter(({ decision }) => decision.kind === "remove");
  return new Set([
    ...going.map(({ sandbox }): string => sandbox.id),
    ...logs.map(({ directory }) => directory.entry),
  ]);
}

/** Ends the pass. `message`: for the outcome; "" if `end` says everything. */
export class Ended extends Error {
  readonly end: ContainerOutcome["end"];

  constructor(end: ContainerOutcome["end"], message = "") {
    super(message);
    this.end = end;
  }
}
