/** The container plan by the newest lists, which are refreshed when they are too old to act on. */

import { messageOf } from "../../model/errors.ts";
import type { ContainerId } from "../../model/ids.ts";
import type { ContainerPlan } from "../../model/plan.ts";
import { withSandboxesOfContainers } from "../../observe/whole-lists.ts";
import type { ContainerOptions, ContainerPorts, FreshLists } from "../container/container-ports.ts";
import { Ended } from "./ended.ts";

/** Nothing is removed on lists older than this, or than what a list takes and this, where that is longer. */
const LISTS_VALID_NS = 1_000_000_000n;

export class FreshPlan {
  readonly #ports: Pick<ContainerPorts, "runtime" | "timer">;
  readonly #options: Pick<ContainerOptions, "signal" | "decideAgain">;
  #plan: ContainerPlan;
  #lists: FreshLists;
  #vetoes: ReadonlyMap<ContainerId, string> = new Map();
  /** IDs of sandboxes and entries of log directories that go. */
  #going: ReadonlySet<string> = new Set();
  #listedNs: bigint;
  #tookNs = 0n;
  /** Several removals that find the lists too old wait for the same ones. */
  #deciding: Promise<void> | null = null;

  constructor(
    plan: ContainerPlan,
    ports: Pick<ContainerPorts, "runtime" | "timer">,
    options: Pick<ContainerOptions, "signal" | "decideAgain" | "listedNs">,
  ) {
    this.#plan = plan;
    this.#ports = ports;
    this.#options = options;
    this.#lists = {
      containers: plan.containers.map(({ container }) => container),
      sandboxes: plan.sandboxes.map(({ sandbox }) => sandbox),
    };
    this.#listedNs = options.listedNs;
  }

  plan(): ContainerPlan {
    return this.#plan;
  }

  lists(): FreshLists {
    return this.#lists;
  }

  /** Why the container stays, although the first plan removes it. */
  veto(id: ContainerId): string | undefined {
    return this.#vetoes.get(id);
  }

  /** Whether the sandbox, or the entry of the log directory, still goes. */
  goes(name: string): boolean {
    return this.#going.has(name);
  }

  async stayFresh(): Promise<void> {
    const age = this.#ports.timer.monotonicNs() - this.#listedNs;
    if (this.#deciding !== null || age > LISTS_VALID_NS + this.#tookNs) await this.decideAgain();
  }

  /** Throws `Ended` where the lists cannot be made. */
  async decideAgain(): Promise<void> {
    this.#deciding ??= this.#decide().finally(() => {
      this.#deciding = null;
    });
    await this.#deciding;
  }

  async #decide(): Promise<void> {
    const { runtime, timer } = this.#ports;
    const { signal, decideAgain } = this.#options;
    if (signal.aborted) throw new Ended("stopped");
    const startNs = timer.monotonicNs();
    const lists = await listsOf(runtime, signal).catch((thrown: unknown) => {
      if (signal.aborted) throw new Ended("stopped");
      throw new Ended(
        "observation-failed",
        `the rest is kept, because listing it again failed: ${messageOf(thrown)}`,
      );
    });
    this.#lists = lists;
    this.#plan = decideAgain(this.#lists);
    this.#vetoes = vetoesOf(this.#plan);
    this.#going = goingOf(this.#plan, lists.containers);
    this.#listedNs = startNs;
    this.#tookNs = timer.monotonicNs() - startNs;
  }
}

async function listsOf(
  runtime: ContainerPorts["runtime"],
  signal: AbortSignal,
): Promise<FreshLists> {
  const [containers, sandboxes] = await Promise.all([
    runtime.listContainers(signal),
    runtime.listSandboxes(signal),
  ]);
  return withSandboxesOfContainers(runtime, { containers, sandboxes }, signal);
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
