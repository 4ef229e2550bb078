/** Decides which dead containers are removed, rule by rule. Those that no rule decides compete under the limits. */
import type { ContainerId } from "../../model/ids.ts";
import type { Decision, PlannedContainer } from "../../model/plan.ts";
import type { ContainerKeepReason, ContainerRemoveReason } from "../../model/reason.ts";
import type { Container } from "../../model/snapshot.ts";
import { triedWith } from "../tried.ts";
import type { ContainerInput } from "./container-input.ts";
import { byRank, containersByAge, overLimits } from "./container-limits.ts";
import { decisionOf, ruleSet, type Tried, tryRules } from "./container-rules.ts";
import { ownership } from "./ownership.ts";

/** In the order of removal, then what is kept. */
export function planDeadContainers(input: ContainerInput): readonly PlannedContainer[] {
  const rules = ruleSet(input.limits.compat);
  const owners = ownership(input.snapshot, input.limits.compat);
  const judged = containersByAge(input.snapshot.containers).map((container): Judged => {
    const owner = owners.ofContainer(container);
    // A foreign container in a pod must not count as the pod's own container of that name.
    const unit = `${owner.foreign ? "foreign" : "pod"}/${owner.uid}/${container.name}`;
    return { container, unit, ...tryRules(rules.containers, { container, owner, input }) };
  });
  const candidates = judged.filter((each) => each.decision === null);
  const newest = rules.keepsNewestOfName ? newestOfName(judged) : new Set<ContainerId>();
  const over = overLimits(candidates, input.limits, newest);
  const planned = judged.map(({ container, tried, decision }): PlannedContainer => {
    const final = decision ?? byLimits(over.get(container.id), newest.has(container.id), tried);
    return { container, stopFirst: container.state === "unknown", decision: final };
  });
  return byRank(planned, RANKS, rank);
}

/** A container that no rule decided is dead, old enough, and in a pod that is not deleted. */
interface Judged extends Tried<ContainerKeepReason, ContainerRemoveReason> {
  readonly container: Container;
  /** Pod and name: what a limit "per container" counts. */
  readonly unit: string;
}

/**
 * The newest dead instance of each name, none of which is running. From it the kubelet sees whether the container has
 * to run again; without it, a finished init container would. Instances that are too young count: if one is the newest,
 * no other is needed.
 */
function newestOfName(oldestFirst: readonly Judged[]): ReadonlySet<ContainerId> {
  const newest = new Map<string, ContainerId>();
  const runs = new Set<string>();
  for (const { container, unit } of oldestFirst) {
    if (container.state === "running") runs.add(unit);
    if (container.state !== "exited") continue;
    newest.set(unit, container.id);
  }
  return new Set([...newest].filter(([unit]) => !runs.has(unit)).map(([, id]) => id));
}

function byLimits(
  over: ContainerRemoveReason | undefined,
  newest: boolean,
  tried: readonly string[],
): Decision<ContainerKeepReason, ContainerRemoveReason> {
  if (newest) return decisionOf({ keep: { kind: "newest-of-name" } }, tried);
  const before = triedWith(tried, "newest-of-name");
  return decisionOf(
    over === undefined ? { keep: { kind: "within-limits" } } : { remove: over },
    before,
  );
}

const RANKS = 4;

/** Deleted pods first, then those over the limit per name, then those over the node's limit. */
function rank({ decision }: PlannedContainer): number {
  if (decision.kind === "keep") return 3;
  if (decision.reason.kind === "over-total-limit") return 2;
  return decision.reason.kind === "over-per-container-limit" ? 1 : 0;
}
