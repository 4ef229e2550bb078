/** One plan of what is decided on containers, with sandboxes and pod logs judged as if these were gone. */
import { isSameLog, type PodUid } from "../../model/ids.ts";
import type {
  ContainerPlan,
  Decision,
  PlannedContainer,
  PlannedPodLogs,
  PlannedSandbox,
} from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
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
  decisionOf,
  judge,
  logRules,
  type SandboxRules,
} from "./container-rules.ts";
import type { Listed, Owner, Ownership } from "./ownership.ts";

export interface ContainerDecisions {
  readonly containers: readonly PlannedContainer[];
  readonly owners: Ownership;
  readonly sandboxRules: SandboxRules;
  /** Entries of the log directory whose whole name is a UID. */
  readonly bareDirectories: readonly PodLogDirectory[];
  /** Pods that the runtime lists; where one counts as foreign too, that comes last. */
  readonly listed: readonly Owner[];
  readonly sweepsLinks: boolean;
}

/** The plan does not depend on the order of the lists. */
export function containerPlanOf(
  input: ContainerInput,
  decisions: ContainerDecisions,
): ContainerPlan {
  const { blocks, pods, snapshot } = input;
  const containers = unlessBlocked(decisions.containers, blocks);
  const logs = logFactsOf(snapshot.logs);
  // During the pass, a container that is still listed keeps its sandbox: its removal failed, or it is new.
  const residents = input.isFresh ? snapshot.containers : containersAfter(containers);
  const sandboxes = unlessBlocked(planSandboxes(input, decisions, residents), blocks);
  const left = {
    containers: residents,
    sandboxes: input.isFresh ? snapshot.sandboxes : sandboxesAfter(sandboxes),
  };
  const bare = new Set(decisions.bareDirectories.map(({ entry }) => entry));
  return {
    purpose: input.purpose,
    now: input.now,
    containers,
    sandboxes,
    podLogs: unlessBlocked(planPodLogs(input, decisions, left), blocks),
    links: decisions.sweepsLinks && blocks.length === 0 ? linksWithout(residents, logs) : [],
    strays: (logs?.strays ?? []).filter((entry) => !bare.has(entry)),
    logsError: snapshot.logs?.kind === "failed" ? snapshot.logs.message : null,
    blocks,
    podSource: pods.state,
  };
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

/** By creation, as the kubelet orders instances; then by attempt and ID, so that the order is total. */
export function oldestFirst(
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
  { owners, sandboxRules }: ContainerDecisions,
  containers: readonly Container[],
): readonly PlannedSandbox[] {
  const residents = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  const oldestToNewest = input.snapshot.sandboxes.toSorted(oldestFirst);
  const newest = new Map(oldestToNewest.map((one) => [owners.ofSandbox(one).uid, one.id]));
  const planned = oldestToNewest.map((sandbox): PlannedSandbox => {
    const owner = owners.ofSandbox(sandbox);
    const { tried, decision } = judge(sandboxRules, {
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
function planPodLogs(
  input: ContainerInput,
  { bareDirectories, listed: owners }: ContainerDecisions,
  left: Listed,
): readonly PlannedPodLogs[] {
  const { pods, snapshot } = input;
  const listed = new Map<PodUid, Owner>(owners.map((owner) => [owner.uid, owner]));
  const directories = logFactsOf(snapshot.logs)?.podLogs ?? [];
  const users = new Map<PodUid, string>();
  for (const { id, podUid } of left.containers) users.set(podUid, `container ${id}`);
  for (const { id, podUid, metadataUid } of left.sandboxes)
    for (const uid of [podUid, metadataUid]) users.set(uid, `sandbox ${id}`);
  return [...bareDirectories, ...directories].map((directory) => {
    const { uid } = directory;
    const owner = listed.get(uid) ?? { uid, foreign: false };
    const { tried, decision } = judge(logRules, { owner, input, listed: users.get(uid) });
    const unconfirmed = pods.mayBeDeleted(uid) || (pods.state.kind === "none" && !listed.has(uid));
    const kind = unconfirmed ? "pod-not-gone-yet" : "pod-known";
    return { directory, decision: decision ?? decisionOf({ keep: { kind } }, tried) };
  });
}
