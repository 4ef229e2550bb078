/** Decides on dead containers, dead sandboxes and pod logs: one plan with a reason for each. */
import { assert } from "../../model/errors.ts";
import type { ContainerId } from "../../model/ids.ts";
import type { ContainerPlan, Decision, PlannedContainer } from "../../model/plan.ts";
import type { ContainerKeepReason, ContainerRemoveReason } from "../../model/reason.ts";
import { overLimits, rankOf, type Unit } from "../kubelet/container-gc.ts";
import {
  type ContainerInput,
  containerPlanOf,
  containerRules,
  decisionOf,
  judge,
  oldestFirst,
  sandboxRules,
} from "./container-rules.ts";
import { listedOwners, ownership } from "./pods.ts";

export function decideContainers(input: ContainerInput): ContainerPlan {
  assert(input.limits.minimumAge >= 0n, "a negative minimum age of containers is invalid");
  return containerPlanOf(input, {
    containers: planContainers(input),
    owners: ownership(input.snapshot),
    sandboxRules,
    bareDirectories: [],
    listed: listedOwners(input.snapshot),
    sweepsLinks: input.pods.state.kind !== "not-ready",
  });
}

/** What a plan could not judge and therefore keeps; the pass reports it and counts as failed. */
export function unjudged({
  logsError,
  podSource,
}: Pick<ContainerPlan, "logsError" | "podSource">): readonly string[] {
  return [
    ...(podSource.kind === "not-ready"
      ? [`the pod source ${podSource.source} is not ready: ${podSource.why}`]
      : []),
    ...(logsError === null ? [] : [`no log is deleted: ${logsError}`]),
  ];
}

/** In the order of removal, then what is kept. Those that no rule decides compete under the limits. */
function planContainers(input: ContainerInput): readonly PlannedContainer[] {
  const { limits, snapshot } = input;
  const owners = ownership(snapshot);
  const judged = snapshot.containers.toSorted(oldestFirst).map((container) => {
    const owner = owners.ofContainer(container);
    // A foreign container in a pod must not count as the pod's own container of that name.
    const unit = JSON.stringify([owner.foreign, owner.uid, container.name]);
    return { container, unit, ...judge(containerRules, { container, owner, input }) };
  });
  const newest = newestOfName(judged);
  const over = overLimits(
    limits,
    judged.filter(({ decision }) => decision === null),
    newest,
  );
  return judged
    .map(({ container, tried, decision }): PlannedContainer => ({
      container,
      decision: decision ?? byLimits(over.get(container.id), newest.has(container.id), tried),
    }))
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

/**
 * The newest dead instance of each name, none of which is running, is kept under every limit. From it the kubelet sees
 * whether the container has to run again; without it, a finished init container would. Instances that are too young
 * count: if one is the newest, no other is needed.
 */
function newestOfName(oldestToNewest: readonly Unit[]): ReadonlySet<ContainerId> {
  const newest = new Map<string, ContainerId>();
  const running = new Set<string>();
  for (const { container, unit } of oldestToNewest) {
    if (container.state === "running") running.add(unit);
    if (container.state === "exited") newest.set(unit, container.id);
  }
  return new Set([...newest].flatMap(([unit, id]) => (running.has(unit) ? [] : [id])));
}

function byLimits(
  over: ContainerRemoveReason | undefined,
  isNewest: boolean,
  tried: readonly string[],
): Decision<ContainerKeepReason, ContainerRemoveReason> {
  if (isNewest) return decisionOf({ keep: { kind: "newest-of-name" } }, tried);
  return decisionOf(over === undefined ? { keep: { kind: "within-limits" } } : { remove: over }, [
    ...tried,
    "newest-of-name",
  ]);
}
