/** The kubelet's container GC: containers, then sandboxes, then pod logs and links. Quoted are functions of its `kuberuntime_gc.go`. */
import { type ContainerId, podUidOfOldLogDirectory } from "../../model/ids.ts";
import type { ContainerLimits } from "../../model/limits.ts";
import type { ContainerPlan, PlannedContainer } from "../../model/plan.ts";
import type { ContainerRemoveReason } from "../../model/reason.ts";
import { type Container, logFactsOf, type PodLogDirectory } from "../../model/snapshot.ts";
import {
  type ContainerInput,
  containerPlanOf,
  type ContainerRules,
  type ContainerSubject,
  decisionOf,
  hasContainers,
  judge,
  newestOfPod,
  oldestFirst,
  podDeleted,
  ready,
  running,
  type SandboxRules,
  tooYoung,
} from "../container/container-rules.ts";
import type { Listed, Owner, Ownership } from "../container/pods.ts";

/** Three stages, whatever came of the one before. Links are swept even if the sources are not ready. */
export const decideContainers = (input: ContainerInput): ContainerPlan =>
  containerPlanOf(input, {
    containers: evictContainers(input),
    owners,
    sandboxRules,
    bareDirectories: bareDirectories(input.snapshot),
    listed: podsOf(input.snapshot),
    sweepsLinks: true,
  });

/** The label for containers, `metadata.uid` for sandboxes; without one they share the pod "". Nothing is foreign. */
const owners: Ownership = {
  ofContainer: ({ podUid: uid }) => ({ uid, foreign: false }),
  ofSandbox: ({ metadataUid: uid }) => ({ uid, foreign: false }),
};

export const podsOf = ({ containers, sandboxes }: Listed): readonly Owner[] => [
  ...sandboxes.map(owners.ofSandbox),
  ...containers.map(owners.ofContainer),
];

/** The sources have to be ready only for containers of deleted pods. */
const podGone = (subject: ContainerSubject) =>
  subject.input.pods.state.kind === "not-ready" ? null : podDeleted(subject);

const containerRules: ContainerRules = Object.entries({
  running,
  "too-young": tooYoung,
  "pod-gone": podGone,
});

/** `evictContainers`: all of a deleted pod, then by the limits. */
function evictContainers(input: ContainerInput): readonly PlannedContainer[] {
  const judged = input.snapshot.containers.toSorted(oldestFirst).map((container) => ({
    container,
    unit: JSON.stringify([container.podUid, container.name]),
    ...judge(containerRules, { container, owner: owners.ofContainer(container), input }),
  }));
  const evictable = judged.filter(({ decision }) => decision === null);
  const over = overLimits(input.limits, evictable);
  return judged
    .map(({ container, tried, decision }): PlannedContainer => {
      const reason = over.get(container.id);
      const byLimits = reason === undefined ? WITHIN_LIMITS : { remove: reason };
      return { container, decision: decision ?? decisionOf(byLimits, tried) };
    })
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

const WITHIN_LIMITS = { keep: { kind: "within-limits" } } as const;

export interface Unit {
  readonly container: Container;
  /** Pod and name: what a limit "per container" counts. */
  readonly unit: string;
}

/**
 * First the limit of each unit; if the node still has too many, an equal share of each, at least 1, which may remove more
 * than required; then the oldest of the node. Those in `kept` count in every limit but are never removed.
 */
export function overLimits(
  { maximumPerPodContainer: perContainer, maximumContainers: total }: ContainerLimits,
  oldestToNewest: readonly Unit[],
  kept: ReadonlySet<ContainerId> = new Set(),
): ReadonlyMap<ContainerId, ContainerRemoveReason> {
  const over = new Map<ContainerId, ContainerRemoveReason>();
  const removeOldest = (from: readonly Unit[], most: number, reason: ContainerRemoveReason) =>
    from
      .flatMap(({ container: { id } }) => (kept.has(id) ? [] : [id]))
      .slice(0, Math.max(0, from.length - most))
      .forEach((id) => over.set(id, reason));
  const left = () => oldestToNewest.filter(({ container }) => !over.has(container.id));
  const units = () => Map.groupBy(left(), ({ unit }) => unit);
  const all = units();
  if (perContainer >= 0) {
    const reason = { kind: "over-per-container-limit", limit: perContainer } as const;
    for (const unit of all.values()) removeOldest(unit, perContainer, reason);
  }
  if (total < 0 || left().length <= total) return over;
  const reason = { kind: "over-total-limit", limit: total } as const;
  const share = Math.max(1, Math.trunc(total / all.size));
  for (const unit of units().values()) removeOldest(unit, share, reason);
  removeOldest(left(), total, reason);
  return over;
}

/** Deleted pods first, then those over the limit per name, then those over the node's limit. */
export function rankOf({ decision }: PlannedContainer): number {
  if (decision.kind === "keep") return 3;
  if (decision.reason.kind === "over-total-limit") return 2;
  return decision.reason.kind === "over-per-container-limit" ? 1 : 0;
}

/** `evictSandboxes`: age, limits and readiness do not apply; the newest sandbox of a pod is kept. */
const sandboxRules: SandboxRules = Object.entries({
  ready,
  "has-containers": hasContainers,
  "pod-gone": podDeleted,
  "newest-of-pod": newestOfPod,
});

/** `evictPodLogsDirectories`: a name without underscores is a UID, unless no pod can have it (`lost+found`). */
const bareDirectories = ({
  logs,
}: Pick<ContainerInput["snapshot"], "logs">): readonly PodLogDirectory[] =>
  (logFactsOf(logs)?.strays ?? []).flatMap((entry) => {
    const uid = podUidOfOldLogDirectory(entry);
    return uid === null ? [] : [{ entry, uid }];
  });
