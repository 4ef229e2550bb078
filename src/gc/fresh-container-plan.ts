/** The container plan on the newest lists, which are read again when they are too old to act on. */

import { messageOf } from "../model/errors.ts";
import type { ContainerId } from "../model/ids.ts";
import type { ContainerOutcome } from "../model/pass.ts";
import type { ContainerPlan } from "../model/plan.ts";
import type { DanglingLogLink } from "../model/snapshot.ts";
import type { Listed } from "../policy/container/ownership.ts";
import { Fresh } from "./fresh-lists.ts";
import type { ContainerExecution } from "./remove-container.ts";

export interface FreshContainerPlan {
  readonly plan: ContainerPlan;
  readonly lists: Listed;
  /** Why containers are kept, although the first plan removes them. */
  readonly vetoes: ReadonlyMap<ContainerId, string>;
  /** IDs of sandboxes, entries of log directories and keys of links that are still to be removed. */
  readonly going: ReadonlySet<string>;
}

/** Reading it throws `Ended` if the lists fail. */
export function freshContainerPlan(execution: ContainerExecution): Fresh<FreshContainerPlan> {
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
export const linkKey = ({ entry }: DanglingLogLink): string => `link ${entry}`;

/** Ends the pass. `message`: for the outcome; "" if `end` says everything. */
export class Ended extends Error {
  readonly end: ContainerOutcome["end"];

  constructor(end: ContainerOutcome["end"], message = "") {
    super(message);
    this.end = end;
  }
}
