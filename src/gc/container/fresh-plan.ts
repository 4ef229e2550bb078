/** The container plan by the newest lists, which are refreshed when too old to act on. */

import { messageOf } from "../../model/errors.ts";
import type { ContainerId } from "../../model/ids.ts";
import type { ContainerOutcome } from "../../model/outcome.ts";
import type { ContainerPlan } from "../../model/plan.ts";
import type { Listed } from "../../policy/container/ownership.ts";
import { withSandboxesOfContainers } from "../whole-lists.ts";
import type { ContainerOptions, ContainerPorts } from "./container-ports.ts";

/** Nothing is removed on lists older than this, plus the time of listing if that is longer. */
const LISTS_VALID_NS = 1_000_000_000n;

export class FreshPlan {
  readonly #ports: Pick<ContainerPorts, "runtime" | "timer">;
  readonly #options: Pick<ContainerOptions, "signal" | "decideAgain">;
  #plan: ContainerPlan;
  #lists: Listed;
  #vetoes: ReadonlyMap<ContainerId, string> = new Map();
  /** IDs of sandboxes and entries of log directories to be removed. */
  #going: ReadonlySet<string> = new Set();
  #listedNs: bigint;
  #tookNs = 0n;
  /** Removals that find the lists too old share one refresh. */
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

  lists(): Listed {
    return this.#lists;
  }

  /** Why the container is kept, although the first plan removes it. */
  veto(id: ContainerId): string | undefined {
    const kind = this.#vetoes.get(id);
    return kind === undefined ? undefined : `it is kept now: ${kind}`;
  }

  /** Whether the sandbox, or the entry of the log directory, is still to be removed. */
  goes(name: string): boolean {
    return this.#going.has(name);
  }

  async stayFresh(): Promise<void> {
    const age = this.#ports.timer.monotonicNs() - this.#listedNs;
    if (this.#deciding !== null || age > LISTS_VALID_NS + this.#tookNs) await this.decideAgain();
  }

  /** Throws `Ended` if the lists fail. */
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
        `the rest is kept, because it cannot be listed again: ${messageOf(thrown)}`,
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

async function listsOf(runtime: ContainerPorts["runtime"], signal: AbortSignal): Promise<Listed> {
  const [containers, sandboxes] = await Promise.all([
    runtime.listContainers(signal),
    runtime.listSandboxes(signal),
  ]);
  return withSandboxesOfContainers(runtime, { containers, sandboxes }, signal);
}

/**
 * Why the newer decision forbids what was planned. Limits that are met by now do not count: this pass's removals met
 * them.
 */
function vetoesOf(current: ContainerPlan): ReadonlyMap<ContainerId, string> {
  const vetoes = new Map<ContainerId, string>();
  for (const { container, decision } of current.containers) {
    if (decision.kind === "keep" && decision.reason.kind !== "within-limits") {
      vetoes.set(container.id, decision.reason.kind);
    }
  }
  return vetoes;
}

/** A sandbox that contains a container is never removed, because its container would go with it. */
function goingOf(
  { sandboxes, podLogs }: ContainerPlan,
  containers: Listed["containers"],
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

export class Ended extends Error {
  readonly end: ContainerOutcome["end"];

  /** `message`: for the outcome; "" if `end` says everything. */
  constructor(end: ContainerOutcome["end"], message = "") {
    super(message);
    this.end = end;
  }
}
