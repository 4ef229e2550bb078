/** The limits of dead containers, per name in a pod and per node, shared as in the kubelet. */
import type { ContainerId } from "../../model/ids.ts";
import type { ContainerLimits } from "../../model/limits.ts";
import type { ContainerRemoveReason } from "../../model/reason.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";

export interface Candidate {
  readonly container: Container;
  readonly unit: string;
}

/**
 * The containers over the limits. Those in `kept` count in every limit but are never removed: a limit of 0 leaves one,
 * and a total below their number is not reached. If the node has too many, each unit first gets an equal share, at
 * least 1, which may remove more than required; then the oldest of the node are removed. This is the kubelet's rule.
 */
export function overLimits(
  candidates: readonly Candidate[],
  limits: Pick<ContainerLimits, "maximumPerPodContainer" | "maximumContainers">,
  kept: ReadonlySet<ContainerId>,
): ReadonlyMap<ContainerId, ContainerRemoveReason> {
  const over = new Map<ContainerId, ContainerRemoveReason>();
  const left = (): readonly Candidate[] =>
    candidates.filter(({ container }) => !over.has(container.id));
  const trim = (some: readonly Candidate[], count: number, reason: ContainerRemoveReason): void => {
    for (const id of beyond(some, count, kept)) over.set(id, reason);
  };

  const units = Map.groupBy(candidates, ({ unit }) => unit);
  const perContainer = limits.maximumPerPodContainer;
  if (perContainer >= 0) {
    const reason = { kind: "over-per-container-limit", limit: perContainer } as const;
    for (const unit of units.values()) trim(unit, perContainer, reason);
  }
  const total = limits.maximumContainers;
  if (total < 0 || left().length <= total) return over;
  const reason = { kind: "over-total-limit", limit: total } as const;
  const share = Math.max(1, Math.trunc(total / units.size));
  for (const unit of Map.groupBy(left(), ({ unit: key }) => key).values())
    trim(unit, share, reason);
  trim(left(), total, reason);
  return over;
}

/** The oldest over the limit, without those kept in any case. */
function beyond(
  candidates: readonly Candidate[],
  count: number,
  kept: ReadonlySet<ContainerId>,
): readonly ContainerId[] {
  const excess = Math.max(0, candidates.length - count);
  if (excess === 0) return [];
  return candidates
    .map(({ container }) => container)
    .toSorted(oldestFirst)
    .map(({ id }) => id)
    .filter((id) => !kept.has(id))
    .slice(0, excess);
}

type Instance = Pick<Container | Sandbox, "id" | "attempt" | "createdAt">;

const oldestFirst = (one: Instance, other: Instance): number => newestFirst(other, one);

/** Of the same list made once: most lists are those of the last pass. */
export const containersByAge = byObject((containers: readonly Container[]) =>
  containers.toSorted(oldestFirst),
);
export const sandboxesByAge = byObject((sandboxes: readonly Sandbox[]) =>
  sandboxes.toSorted(oldestFirst),
);

/** By their ranks, of which 0 comes first; within a rank in the order that they are in. */
export const byRank = <Item>(
  items: readonly Item[],
  ranks: number,
  rankOf: (item: Item) => number,
): readonly Item[] => {
  const ranked = Array.from({ length: ranks }, (): Item[] => []);
  for (const item of items) ranked[rankOf(item)]?.push(item);
  return ranked.flat();
};

/** By creation, as the kubelet orders instances; then by attempt and ID, so that the order is total. */
export function newestFirst(one: Instance, other: Instance): number {
  if (one.createdAt !== other.createdAt) return one.createdAt > other.createdAt ? -1 : 1;
  if (one.attempt !== other.attempt) return other.attempt - one.attempt;
  return one.id < other.id ? 1 : one.id > other.id ? -1 : 0;
}
