/** The rules for containers, sandboxes and pod logs, each once, and their order in crigc and in the kubelet. */
import type { ContainerId } from "../../model/ids.ts";
import type { Compat, ContainerLimits } from "../../model/limits.ts";
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

interface PodSubject {
  readonly owner: Owner;
  readonly input: ContainerInput;
}

interface ContainerSubject extends PodSubject {
  readonly container: Container;
}

interface SandboxSubject extends PodSubject {
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
type Rules<About, Keep, Remove> = readonly (readonly [
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

const keep = <const Reason>(reason: Reason) => ({ keep: reason });
const remove = <const Reason>(reason: Reason) => ({ remove: reason });

const foreign = ({ owner, input }: PodSubject) =>
  owner.foreign && !input.limits.collectForeign ? keep({ kind: "foreign" }) : null;

const sourceNotReady = ({ input: { pods } }: PodSubject) =>
  pods.state.kind === "not-ready"
    ? keep({ kind: "source-not-ready", message: pods.state.why })
    : null;

/** No pod source knows what Kubernetes did not create. */
function podDeleted({ owner, input: { pods, purpose } }: PodSubject) {
  if (owner.foreign) return pods.foreignDead(owner.uid) ? remove({ kind: "foreign-dead" }) : null;
  const deleted = pods.shouldRemoveContent(owner.uid);
  if (deleted !== null) return remove({ kind: deleted });
  const isReclaimed = purpose !== "periodic" && pods.hasEnded(owner.uid);
  return isReclaimed ? remove({ kind: "pod-terminated" }) : null;
}

/** The kubelet asks whether its sources are ready only before it removes containers of deleted pods. */
const podDeletedIfReady = (subject: PodSubject) =>
  subject.input.pods.state.kind === "not-ready" ? null : podDeleted(subject);

const running = ({ container }: ContainerSubject) =>
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
function tooYoung({ container, input: { now, limits } }: ContainerSubject) {
  const { minimumAge } = limits;
  const age = since(now, container.createdAt);
  return age < minimumAge ? keep({ kind: "too-young", age, minimumAge }) : null;
}

const ready = ({ sandbox }: SandboxSubject) =>
  sandbox.state === "ready" ? keep({ kind: "ready" }) : null;

const hasContainers = ({ residents }: SandboxSubject) =>
  residents.length === 0
    ? null
    : { keep: { kind: "has-containers" as const, containers: residents.toSorted() } };

const newestOfPod = ({ isNewestOfPod }: SandboxSubject) =>
  isNewestOfPod ? keep({ kind: "newest-of-pod" }) : null;

/** No source reports foreign pods as deleted, and reclaim does not apply to logs. */
function podOfLogsDeleted({ owner, listed, input: { pods } }: LogSubject) {
  const deleted = owner.foreign ? null : pods.shouldRemoveContent(owner.uid);
  if (deleted === null) return null;
  return listed === undefined
    ? remove({ kind: deleted })
    : keep({ kind: "in-use", what: `${listed} is of its pod` });
}

/** In the kubelet nothing is foreign, and a source that is not ready holds back only deleted pods. */
export const containerRules: Readonly<
  Record<Compat, Rules<ContainerSubject, ContainerKeepReason, ContainerRemoveReason>>
> = {
  none: Object.entries({
    running,
    foreign,
    "source-not-ready": sourceNotReady,
    "not-dead": notDead,
    "too-young": tooYoung,
    "pod-gone": podDeleted,
  }),
  kubelet: Object.entries({
    running,
    "too-young": tooYoung,
    "pod-gone": podDeletedIfReady,
  }),
};

export const sandboxRules: Readonly<
  Record<Compat, Rules<SandboxSubject, SandboxKeepReason, SandboxRemoveReason>>
> = {
  none: Object.entries({
    ready,
    foreign,
    "source-not-ready": sourceNotReady,
    "has-containers": hasContainers,
    "pod-gone": podDeleted,
    "newest-of-pod": newestOfPod,
  }),
  kubelet: Object.entries({
    ready,
    "has-containers": hasContainers,
    "pod-gone": podDeleted,
    "newest-of-pod": newestOfPod,
  }),
};

export const logRules: Rules<LogSubject, LogKeepReason, LogRemoveReason> = Object.entries({
  "source-not-ready": sourceNotReady,
  "pod-gone": podOfLogsDeleted,
});
