/** The rules for containers, sandboxes and pod logs, and their order. */
import type { ContainerId } from "../../model/ids.ts";
import type { ContainerLimits } from "../../model/limits.ts";
import type { Decision, Purpose } from "../../model/plan.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  ImageBlock,
  LogKeepReason,
  LogRemoveReason,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../../model/reason.ts";
import type { Container, Sandbox, Snapshot } from "../../model/snapshot.ts";
import { type Instant, since } from "../../model/time.ts";
import type { Owner } from "./ownership.ts";
import type { PodJudgement } from "./pods.ts";

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
  readonly blocks: readonly ImageBlock[];
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
export function podDeleted({ owner, input: { pods, purpose } }: PodSubject) {
  if (owner.foreign) return pods.foreignDead(owner.uid) ? remove({ kind: "foreign-dead" }) : null;
  const deleted = pods.shouldRemoveContent(owner.uid);
  if (deleted !== null) return remove({ kind: deleted });
  const isReclaimed = purpose !== "periodic" && pods.hasEnded(owner.uid);
  return isReclaimed ? remove({ kind: "pod-terminated" }) : null;
}

export const running = ({ container }: ContainerSubject) =>
  container.state === "running" ? keep({ kind: "running" }) : null;

/** A created container is about to start, and an unknown one may be alive. */
function notDead({ container, owner, input: { pods } }: ContainerSubject) {
  if (container.state === "exited") return null;
  const isDeleted = owner.foreign
    ? pods.foreignDead(owner.uid)
    : pods.shouldRemoveContent(owner.uid) !== null;
  return isDeleted ? null : keep({ kind: "not-dead", state: container.state });
}

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
  const deleted = owner.foreign ? null : pods.shouldRemoveContent(owner.uid);
  if (deleted === null) return null;
  return listed === undefined
    ? remove({ kind: deleted })
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
