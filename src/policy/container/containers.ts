/** Decides on dead containers, dead sandboxes and pod logs: one plan with a reason for each. */
import { assert } from "../../model/errors.ts";
import {
  type ContainerId,
  isSameLog,
  type PodUid,
  podUidOfOldLogDirectory,
} from "../../model/ids.ts";
import type {
  ContainerPlan,
  Decision,
  PlannedContainer,
  PlannedPodLogs,
  PlannedSandbox,
} from "../../model/plan.ts";
import type { ContainerKeepReason, ContainerRemoveReason, ImageBlock } from "../../model/reason.ts";
import {
  type Container,
  type DanglingLogLink,
  type LogFacts,
  logFactsOf,
  type PodLogDirectory,
  type Sandbox,
} from "../../model/snapshot.ts";
import { compared } from "../../model/values.ts";
import {
  type ContainerInput,
  containerRules,
  decisionOf,
  judge,
  type Judged,
  logRules,
  sandboxRules,
} from "./container-rules.ts";
import { type Listed, listedOwners, ownership } from "./ownership.ts";

/** The plan does not depend on the order of the lists. */
export function decideContainers(input: ContainerInput): ContainerPlan {
  const { blocks, pods, limits, snapshot } = input;
  assert(limits.minimumAge >= 0n, "a negative minimum age of containers is invalid");
  const containers = unlessBlocked(planContainers(input), blocks);
  // Pods do not decide on links, but a source that is not ready stops them too, except in the kubelet.
  const sweepsLinks =
    blocks.length === 0 && (limits.compat === "kubelet" || pods.state.kind !== "not-ready");
  const logs = logFactsOf(snapshot.logs);
  // During the pass, a container that is still listed keeps its sandbox: its removal failed, or it is new.
  const residents = input.isFresh ? snapshot.containers : containersAfter(containers);
  const sandboxes = unlessBlocked(planSandboxes(input, residents), blocks);
  const left = {
    containers: residents,
    sandboxes: input.isFresh ? snapshot.sandboxes : sandboxesAfter(sandboxes),
  };
  const oldNames = new Set(oldLogDirectories(input).map(({ entry }) => entry));
  return {
    purpose: input.purpose,
    now: input.now,
    containers,
    sandboxes,
    podLogs: unlessBlocked(planPodLogs(input, left), blocks),
    links: sweepsLinks ? linksWithout(left.containers, logs) : [],
    strays: (logs?.strays ?? []).filter((entry) => !oldNames.has(entry)),
    logsError: snapshot.logs?.kind === "failed" ? snapshot.logs.message : null,
    blocks,
    podSource: pods.state,
  };
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

/** The containers that remain after the planned removals. */
const containersAfter = (planned: readonly PlannedContainer[]): readonly Container[] =>
  planned.filter(({ decision }) => decision.kind === "keep").map(({ container }) => container);

const sandboxesAfter = (planned: readonly PlannedSandbox[]): readonly Sandbox[] =>
  planned.filter(({ decision }) => decision.kind === "keep").map(({ sandbox }) => sandbox);

/** Dangling links to logs of which no container is there. During a rotation, the link of one that runs dangles for a moment. */
function linksWithout(
  containers: readonly Container[],
  logs: LogFacts | null,
): ContainerPlan["links"] {
  const byPod = Map.groupBy(containers, ({ podUid }) => podUid);
  const isThere = (link: DanglingLogLink): boolean =>
    byPod.get(link.podUid)?.some((container) => isSameLog(container, link)) === true;
  return (logs?.danglingLinks ?? []).filter((link) => !isThere(link));
}

interface Blocked {
  readonly kind: "blocked";
  readonly block: ImageBlock["kind"];
}

function unlessBlocked<
  Keep,
  Remove,
  Planned extends { readonly decision: Decision<Keep | Blocked, Remove> },
>(planned: readonly Planned[], [block]: readonly ImageBlock[]): readonly Planned[] {
  if (block === undefined) return planned;
  const reason: Blocked = { kind: "blocked", block: block.kind };
  return planned.map((each) => {
    if (each.decision.kind === "keep") return each;
    const decision = { kind: "keep" as const, reason, tried: [...each.decision.tried, "blocked"] };
    return { ...each, decision };
  });
}

interface JudgedContainer extends Judged<ContainerKeepReason, ContainerRemoveReason> {
  readonly container: Container;
  /** Pod and name: what a limit "per container" counts. */
  readonly unit: string;
}

/** In the order of removal, then what is kept. Those that no rule decides compete under the limits. */
function planContainers(input: ContainerInput): readonly PlannedContainer[] {
  const { limits, snapshot } = input;
  const owners = ownership(snapshot, limits.compat);
  const judged = snapshot.containers.toSorted(oldestFirst).map((container): JudgedContainer => {
    const owner = owners.ofContainer(container);
    // A foreign container in a pod must not count as the pod's own container of that name.
    const unit = JSON.stringify([owner.foreign, owner.uid, container.name]);
    return {
      container,
      unit,
      ...judge(containerRules[limits.compat], { container, owner, input }),
    };
  });
  const newest = limits.compat === "kubelet" ? new Set<ContainerId>() : newestOfName(judged);
  const over = overLimits(input, judged, newest);
  return judged
    .map(({ container, tried, decision }): PlannedContainer => ({
      container,
      stopFirst: container.state === "unknown",
      decision: decision ?? byLimits(over.get(container.id), newest.has(container.id), tried),
    }))
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

/**
 * The newest dead instance of each name, none of which is running, is kept under every limit. From it the kubelet sees
 * whether the container has to run again; without it, a finished init container would. Instances that are too young
 * count: if one is the newest, no other is needed.
 */
function newestOfName(oldestToNewest: readonly JudgedContainer[]): ReadonlySet<ContainerId> {
  const newest = new Map<string, ContainerId>();
  const running = new Set<string>();
  for (const { container, unit } of oldestToNewest) {
    if (container.state === "running") running.add(unit);
    if (container.state === "exited") newest.set(unit, container.id);
  }
  return new Set([...newest].flatMap(([unit, id]) => (running.has(unit) ? [] : [id])));
}

/**
 * The kubelet's rule. Those in `kept` count in every limit but are never removed: a limit of 0 leaves one, and a total
 * below their number is not reached. If the node has too many, each unit first gets an equal share, at least 1, which
 * may remove more than required; then the oldest of the node are removed.
 */
function overLimits(
  { limits }: ContainerInput,
  judged: readonly JudgedContainer[],
  kept: ReadonlySet<ContainerId>,
): ReadonlyMap<ContainerId, ContainerRemoveReason> {
  const candidates = judged.filter(({ decision }) => decision === null);
  const over = new Map<ContainerId, ContainerRemoveReason>();
  const trim = (
    oldestToNewest: readonly JudgedContainer[],
    reason: ContainerRemoveReason,
    most: number,
  ) =>
    oldestToNewest
      .flatMap(({ container: { id } }) => (kept.has(id) ? [] : [id]))
      .slice(0, Math.max(0, oldestToNewest.length - most))
      .forEach((id) => over.set(id, reason));
  const left = () => candidates.filter(({ container }) => !over.has(container.id));
  const units = Map.groupBy(candidates, ({ unit }) => unit);
  const { maximumPerPodContainer: perContainer, maximumContainers: total } = limits;
  if (perContainer >= 0)
    for (const unit of units.values())
      trim(unit, { kind: "over-per-container-limit", limit: perContainer }, perContainer);
  if (total < 0 || left().length <= total) return over;
  const reason = { kind: "over-total-limit", limit: total } as const;
  const share = Math.max(1, Math.trunc(total / units.size));
  for (const unit of Map.groupBy(left(), ({ unit: key }) => key).values())
    trim(unit, reason, share);
  trim(left(), reason, total);
  return over;
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

/** Deleted pods first, then those over the limit per name, then those over the node's limit. */
function rankOf({ decision }: PlannedContainer): number {
  if (decision.kind === "keep") return 3;
  if (decision.reason.kind === "over-total-limit") return 2;
  return decision.reason.kind === "over-per-container-limit" ? 1 : 0;
}

/** By creation, as the kubelet orders instances; then by attempt and ID, so that the order is total. */
function oldestFirst(
  one: Pick<Container | Sandbox, "id" | "attempt" | "createdAt">,
  other: Pick<Container | Sandbox, "id" | "attempt" | "createdAt">,
): number {
  return (
    compared(one.createdAt, other.createdAt) ||
    one.attempt - other.attempt ||
    compared<string>(one.id, other.id)
  );
}

/** In the order of removal, then what is kept. `containers`: those that count as present. */
function planSandboxes(
  input: ContainerInput,
  containers: readonly Container[],
): readonly PlannedSandbox[] {
  const { limits, snapshot } = input;
  const owners = ownership(snapshot, limits.compat);
  const residents = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  const oldestToNewest = snapshot.sandboxes.toSorted(oldestFirst);
  const newest = new Map(oldestToNewest.map((one) => [owners.ofSandbox(one).uid, one.id]));
  const planned = oldestToNewest.map((sandbox): PlannedSandbox => {
    const owner = owners.ofSandbox(sandbox);
    const { tried, decision } = judge(sandboxRules[limits.compat], {
      sandbox,
      owner,
      residents: (residents.get(sandbox.id) ?? []).map(({ id }) => id),
      isNewestOfPod: newest.get(owner.uid) === sandbox.id,
      input,
    });
    return { sandbox, decision: decision ?? decisionOf({ remove: { kind: "superseded" } }, tried) };
  });
  return [
    ...planned.filter(({ decision }) => decision.kind === "remove"),
    ...planned.filter(({ decision }) => decision.kind === "keep"),
  ];
}

/** `left`: what is still listed then. */
function planPodLogs(input: ContainerInput, left: Listed): readonly PlannedPodLogs[] {
  const { pods, limits, snapshot } = input;
  // A pod counts as foreign if anything says so: foreign owners come last.
  const listed = new Map(listedOwners(snapshot, limits.compat).map((owner) => [owner.uid, owner]));
  const directories = logFactsOf(snapshot.logs)?.podLogs ?? [];
  const users = new Map<PodUid, string>();
  for (const { id, podUid } of left.containers) users.set(podUid, `container ${id}`);
  for (const { id, podUid, metadataUid } of left.sandboxes)
    for (const uid of [podUid, metadataUid]) users.set(uid, `sandbox ${id}`);
  return [...oldLogDirectories(input), ...directories].map((directory) => {
    const { uid } = directory;
    const owner = listed.get(uid) ?? { uid, foreign: false };
    const { tried, decision } = judge(logRules, { owner, input, listed: users.get(uid) });
    const unconfirmed = pods.mayBeDeleted(uid) || (pods.state.kind === "none" && !listed.has(uid));
    const kind = unconfirmed ? "pod-not-gone-yet" : "pod-known";
    return { directory, decision: decision ?? decisionOf({ keep: { kind } }, tried) };
  });
}

/**
 * The kubelet takes a name without underscores for a UID, as old versions named directories, even `lost+found`. With
 * `compat: kubelet`, crigc deletes it if the pod with that UID was known before it was deleted.
 */
function oldLogDirectories({ limits, snapshot }: ContainerInput): readonly PodLogDirectory[] {
  if (limits.compat !== "kubelet") return [];
  return (logFactsOf(snapshot.logs)?.strays ?? []).flatMap((entry) => {
    const uid: PodUid | null = podUidOfOldLogDirectory(entry);
    return uid === null ? [] : [{ entry, uid }];
  });
}
