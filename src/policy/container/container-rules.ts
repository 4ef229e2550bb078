/** The rules for containers, sandboxes and pod logs, their order, and the plan that they make. */

import { type ContainerId, isSameLog, type PodUid } from "../../model/ids.ts";
import type { ContainerLimits } from "../../model/limits.ts";
import type {
  ContainerPlan,
  Decision,
  PlannedContainer,
  PlannedPodLogs,
  PlannedSandbox,
  Purpose,
} from "../../model/plan.ts";
import type {
  CommonKeepReason,
  ContainerKeepReason,
  ContainerRemoveReason,
  LogKeepReason,
  LogRemoveReason,
  RemovalBlock,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../../model/reason.ts";
import {
  type Container,
  type DanglingLogLink,
  type LogFacts,
  logFactsOf,
  type PodLogDirectory,
  type Sandbox,
  type Snapshot,
} from "../../model/snapshot.ts";
import { type Instant, since } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import type { Listed, Owner, Ownership, PodJudgement } from "./pods.ts";

export interface ContainerInput {
  readonly snapshot: Pick<Snapshot, "containers" | "sandboxes" | "logs">;
  /** Listed during the pass, after the plan was made. */
  readonly isFresh: boolean;
  readonly pods: PodJudgement;
  readonly limits: ContainerLimits;
  /** `all-unused` and `pressure` are the kubelet's reclaim: everything of terminated pods is removed. */
  readonly purpose: Purpose["kind"];
  readonly now: Instant;
  /** What blocks the whole pass: a hold, or the grace period after a boot. */
  readonly blocks: readonly RemovalBlock[];
}

export interface PodSubject {
  readonly owner: Owner;
  readonly input: ContainerInput;
}

export interface ContainerSubject extends PodSubject {
  readonly container: Container;
}

export interface SandboxSubject extends PodSubject {
  readonly sandbox: Sandbox;
  /** Containers that count as present. */
  readonly residents: readonly ContainerId[];
  readonly isNewestOfPod: boolean;
}

interface LogSubject extends PodSubject {
  /** A listed container or sandbox of the pod. */
  readonly listed: string | undefined;
}

interface Coded {
  readonly kind: string;
}

type Verdict<Keep, Remove> = { readonly keep: Keep } | { readonly remove: Remove };

/** In order; `null`: the rule does not apply. */
export type Rules<About, Keep, Remove> = readonly (readonly [
  code: string,
  rule: (about: About) => Verdict<Keep, Remove> | null,
])[];

export interface Judged<Keep, Remove> {
  readonly tried: readonly string[];
  /** `null`: no rule applied. */
  readonly decision: Decision<Keep, Remove> | null;
}

/** Evaluates the rules in order; the first that applies decides. */
export function judge<About, Keep extends Coded, Remove extends Coded>(
  rules: Rules<About, Keep, Remove>,
  about: About,
): Judged<Keep, Remove> {
  const tried: string[] = [];
  for (const [code, rule] of rules) {
    const verdict = rule(about);
    if (verdict !== null) return { tried, decision: decisionOf(verdict, tried) };
    tried.push(code);
  }
  return { tried, decision: null };
}

export const decisionOf = <Keep extends Coded, Remove extends Coded>(
  verdict: Verdict<Keep, Remove>,
  tried: readonly string[],
): Decision<Keep, Remove> =>
  "keep" in verdict
    ? { kind: "keep", reason: verdict.keep, tried: [...tried, verdict.keep.kind] }
    : { kind: "remove", reason: verdict.remove, tried: [...tried, verdict.remove.kind] };

export const keep = <const Reason>(reason: Reason) => ({ keep: reason });
export const remove = <const Reason>(reason: Reason) => ({ remove: reason });

const foreign = ({ owner, input }: PodSubject) =>
  owner.foreign && !input.limits.collectForeign ? keep({ kind: "foreign" }) : null;

const sourceNotReady = ({ input: { pods } }: PodSubject) =>
  pods.state.kind === "not-ready"
    ? keep({ kind: "source-not-ready", message: pods.state.why })
    : null;

/** No pod source knows what Kubernetes did not create. */
const isDeleted = ({ owner: { uid, foreign: isForeign }, input: { pods } }: PodSubject): boolean =>
  isForeign ? pods.foreignDead(uid) : pods.isDeleted(uid);

export function podDeleted(subject: PodSubject) {
  const { owner, input } = subject;
  if (isDeleted(subject)) return remove({ kind: owner.foreign ? "foreign-dead" : "pod-gone" });
  const isReclaimed = input.purpose !== "periodic" && input.pods.hasEnded(owner.uid);
  return isReclaimed && !owner.foreign ? remove({ kind: "pod-terminated" }) : null;
}

export const running = ({ container }: ContainerSubject) =>
  container.state === "running" ? keep({ kind: "running" }) : null;

/** A created container is about to start, and an unknown one may be alive. */
const notDead = (subject: ContainerSubject) =>
  subject.container.state === "exited" || isDeleted(subject)
    ? null
    : keep({ kind: "not-dead", state: subject.container.state });

/** A creation in the future means that the clock was set back; it counts as young, as in the kubelet. */
export function tooYoung({ container, input: { now, limits } }: ContainerSubject) {
  const { minimumAge } = limits;
  const age = since(now, container.createdAt);
  return age < minimumAge ? keep({ kind: "too-young", age, minimumAge }) : null;
}

export const ready = ({ sandbox }: SandboxSubject) =>
  sandbox.state === "ready" ? keep({ kind: "ready" }) : null;

export const hasContainers = ({ residents }: SandboxSubject) =>
  residents.length === 0
    ? null
    : { keep: { kind: "has-containers" as const, containers: residents.toSorted() } };

export const newestOfPod = ({ isNewestOfPod }: SandboxSubject) =>
  isNewestOfPod ? keep({ kind: "newest-of-pod" }) : null;

/** No source reports foreign pods as deleted, and reclaim does not apply to logs. */
function podOfLogsDeleted({ owner, listed, input: { pods } }: LogSubject) {
  if (owner.foreign || !pods.isDeleted(owner.uid)) return null;
  return listed === undefined
    ? remove({ kind: "pod-gone" })
    : keep({ kind: "in-use", what: `${listed} is of its pod` });
}

export type ContainerRules = Rules<ContainerSubject, ContainerKeepReason, ContainerRemoveReason>;
export type SandboxRules = Rules<SandboxSubject, SandboxKeepReason, SandboxRemoveReason>;

export const containerRules: ContainerRules = Object.entries({
  running,
  foreign,
  "source-not-ready": sourceNotReady,
  "not-dead": notDead,
  "too-young": tooYoung,
  "pod-gone": podDeleted,
});

export const sandboxRules: SandboxRules = Object.entries({
  ready,
  foreign,
  "source-not-ready": sourceNotReady,
  "has-containers": hasContainers,
  "pod-gone": podDeleted,
  "newest-of-pod": newestOfPod,
});

export const logRules: Rules<LogSubject, LogKeepReason, LogRemoveReason> = Object.entries({
  "source-not-ready": sourceNotReady,
  "pod-gone": podOfLogsDeleted,
});

// One plan of what is decided on containers, with sandboxes and pod logs judged as if these were gone

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

/** Dangling links to logs of containers that are not listed. A rotation leaves the link of a running one dangling for a moment. */
function linksWithout(
  containers: readonly Container[],
  logs: LogFacts | null,
): ContainerPlan["links"] {
  const byPod = Map.groupBy(containers, ({ podUid }) => podUid);
  const isThere = (link: DanglingLogLink): boolean =>
    byPod.get(link.podUid)?.some((container) => isSameLog(container, link)) === true;
  return (logs?.danglingLinks ?? []).filter((link) => !isThere(link));
}

const unlessBlocked = <Planned extends Plannable>(
  planned: readonly Planned[],
  [block]: readonly RemovalBlock[],
): readonly Planned[] =>
  block === undefined
    ? planned
    : planned.map((one) => keptFor(one, { kind: "blocked", block: block.kind }));

export interface Plannable {
  readonly decision: Decision<unknown, unknown>;
}

/** The same, but what would be removed is kept for this reason. */
export function keptFor<Planned extends Plannable>(
  planned: Planned,
  reason: CommonKeepReason,
): Planned {
  const { decision } = planned;
  if (decision.kind === "keep") return planned;
  return { ...planned, decision: decisionOf({ keep: reason }, decision.tried) };
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
  { owners, sandboxRules: rules }: ContainerDecisions,
  containers: readonly Container[],
): readonly PlannedSandbox[] {
  const residents = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  const oldestToNewest = input.snapshot.sandboxes.toSorted(oldestFirst);
  const newest = new Map(oldestToNewest.map((one) => [owners.ofSandbox(one).uid, one.id]));
  const planned = oldestToNewest.map((sandbox): PlannedSandbox => {
    const owner = owners.ofSandbox(sandbox);
    const { tried, decision } = judge(rules, {
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
