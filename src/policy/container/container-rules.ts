/** The rules for containers, sandboxes and pod logs, each declared once, and their order in crigc and in the kubelet. */
import type { ContainerId } from "../../model/ids.ts";
import type { Compat } from "../../model/limits.ts";
import type { Decision } from "../../model/plan.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  LogKeepReason,
  LogRemoveReason,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../../model/reason.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { type Instant, since } from "../../model/time.ts";
import { NONE_TRIED, triedWith } from "../tried.ts";
import type { ContainerInput } from "./container-input.ts";
import type { Owner } from "./ownership.ts";

export interface Subject {
  readonly owner: Owner;
  readonly input: ContainerInput;
}

export interface ContainerSubject extends Subject {
  readonly container: Container;
}

export interface SandboxSubject extends Subject {
  readonly sandbox: Sandbox;
  /** Containers that count as present. */
  readonly residents: () => readonly ContainerId[];
  readonly isNewestOfPod: boolean;
}

/** `null`: the rule does not apply, and the next one is evaluated. */
type Verdict<Keep, Remove> = { readonly keep: Keep } | { readonly remove: Remove } | null;

interface Rule<About, Keep, Remove> {
  readonly code: string;
  readonly judge: (subject: About) => Verdict<Keep, Remove>;
}

type Rules<About, Keep, Remove> = readonly Rule<About, Keep, Remove>[];
type Kept<Code> = Extract<ContainerKeepReason | SandboxKeepReason, { readonly kind: Code }>;
type Removed<Code> = Extract<ContainerRemoveReason, { readonly kind: Code }>;

export interface RuleSet {
  readonly containers: Rules<ContainerSubject, ContainerKeepReason, ContainerRemoveReason>;
  readonly sandboxes: Rules<SandboxSubject, SandboxKeepReason, SandboxRemoveReason>;
  readonly logs: Rules<Subject, LogKeepReason, LogRemoveReason>;
  /** The newest dead container of a name, none of which is running, is kept under every limit. */
  readonly keepsNewestOfName: boolean;
  /** Dangling links are removed whatever the pod source says, because only the runtime judges them. */
  readonly sweepsLinksAlways: boolean;
  /** A log directory may be named by the UID alone. */
  readonly takesUidDirectories: boolean;
}

export interface Tried<Keep, Remove> {
  readonly tried: readonly string[];
  /** `null`: no rule applied. */
  readonly decision: Decision<Keep, Remove> | null;
}

/** Evaluates the rules in order; the first that applies decides. */
export function tryRules<About, Keep extends Coded, Remove extends Coded>(
  rules: Rules<About, Keep, Remove>,
  subject: About,
): Tried<Keep, Remove> {
  let tried: readonly string[] = NONE_TRIED;
  for (const { code, judge } of rules) {
    const verdict = judge(subject);
    if (verdict !== null) return { tried, decision: decisionOf(verdict, tried) };
    tried = triedWith(tried, code);
  }
  return { tried, decision: null };
}

interface Coded {
  readonly kind: string;
}

export function decisionOf<Keep extends Coded, Remove extends Coded>(
  verdict: NonNullable<Verdict<Keep, Remove>>,
  tried: readonly string[],
): Decision<Keep, Remove> {
  return "keep" in verdict
    ? { kind: "keep", reason: verdict.keep, tried: triedWith(tried, verdict.keep.kind) }
    : { kind: "remove", reason: verdict.remove, tried: triedWith(tried, verdict.remove.kind) };
}

const foreign: Rule<Subject, Kept<"foreign">, never> = {
  code: "foreign",
  judge: ({ owner, input: { limits } }) =>
    owner.foreign && !limits.collectForeign ? { keep: { kind: "foreign" } } : null,
};

const sourceNotReady: Rule<Subject, Kept<"source-not-ready">, never> = {
  code: "source-not-ready",
  judge: ({ input: { pods } }) =>
    pods.state.kind === "not-ready"
      ? { keep: { kind: "source-not-ready", message: pods.state.why } }
      : null,
};

type PodReason = Removed<"pod-gone" | "pod-evicted" | "pod-terminated" | "foreign-dead">;

/** No pod source knows what Kubernetes did not create. */
const podDeleted: Rule<Subject, never, PodReason> = {
  code: "pod-gone",
  judge: ({ owner, input: { pods, purpose } }) => {
    if (owner.foreign)
      return pods.foreignDead(owner.uid) ? { remove: { kind: "foreign-dead" } } : null;
    const deleted = pods.shouldRemoveContent(owner.uid);
    if (deleted !== null) return { remove: { kind: deleted } };
    const reclaim = purpose !== "periodic" && pods.hasEnded(owner.uid);
    return reclaim ? { remove: { kind: "pod-terminated" } } : null;
  },
};

/** The kubelet asks whether its sources are ready only before it removes containers of deleted pods. */
const podDeletedIfReady: Rule<Subject, never, PodReason> = {
  code: podDeleted.code,
  judge: (subject) =>
    subject.input.pods.state.kind === "not-ready" ? null : podDeleted.judge(subject),
};

const running: Rule<ContainerSubject, Kept<"running">, never> = {
  code: "running",
  judge: ({ container }) => (container.state === "running" ? { keep: { kind: "running" } } : null),
};

/** A created container is about to start, and an unknown one may be alive. */
const notDead: Rule<ContainerSubject, Kept<"not-dead">, never> = {
  code: "not-dead",
  judge: ({ container, owner, input: { pods } }) => {
    if (container.state === "exited") return null;
    const deleted = owner.foreign
      ? pods.foreignDead(owner.uid)
      : pods.shouldRemoveContent(owner.uid) !== null;
    return deleted ? null : { keep: { kind: "not-dead", state: container.state } };
  },
};

const endUnknown: Rule<ContainerSubject, Kept<"end-unknown">, never> = {
  code: "end-unknown",
  judge: ({ container, input: { snapshot, limits } }) =>
    container.state !== "exited" ||
    limits.minimumAge === 0n ||
    snapshot.containerEnds.has(container.id)
      ? null
      : { keep: { kind: "end-unknown", message: "the runtime did not say when it ended" } },
};

/** From its end, if it has one. */
const tooYoung: Rule<ContainerSubject, Kept<"too-young">, never> = {
  code: "too-young",
  judge: ({ container, input }) =>
    youngerThanMinimum(
      input,
      input.snapshot.containerEnds.get(container.id) ?? container.createdAt,
    ),
};

const tooYoungSinceCreation: Rule<ContainerSubject, Kept<"too-young">, never> = {
  code: tooYoung.code,
  judge: ({ container, input }) => youngerThanMinimum(input, container.createdAt),
};

/** An instant in the future means that the clock was set back; it counts as young. */
function youngerThanMinimum(
  { now, limits: { minimumAge } }: ContainerInput,
  from: Instant,
): Verdict<Kept<"too-young">, never> {
  const age = since(now, from);
  return age < minimumAge ? { keep: { kind: "too-young", age, minimumAge } } : null;
}

const ready: Rule<SandboxSubject, Kept<"ready">, never> = {
  code: "ready",
  judge: ({ sandbox }) => (sandbox.state === "ready" ? { keep: { kind: "ready" } } : null),
};

const hasContainers: Rule<SandboxSubject, Kept<"has-containers">, never> = {
  code: "has-containers",
  judge: ({ residents }) => {
    const containers = residents().toSorted();
    return containers.length === 0 ? null : { keep: { kind: "has-containers", containers } };
  },
};

const newestOfPod: Rule<SandboxSubject, Kept<"newest-of-pod">, never> = {
  code: "newest-of-pod",
  judge: ({ isNewestOfPod }) => (isNewestOfPod ? { keep: { kind: "newest-of-pod" } } : null),
};

/** No source reports foreign pods as deleted, and reclaim does not apply to logs. */
const podOfLogsDeleted: Rule<Subject, never, LogRemoveReason> = {
  code: podDeleted.code,
  judge: ({ owner, input: { pods } }) => {
    const deleted = owner.foreign ? null : pods.shouldRemoveContent(owner.uid);
    return deleted === null ? null : { remove: { kind: deleted } };
  },
};

const logs: RuleSet["logs"] = [sourceNotReady, podOfLogsDeleted];

const ours: RuleSet = {
  containers: [running, foreign, sourceNotReady, notDead, endUnknown, tooYoung, podDeleted],
  sandboxes: [ready, foreign, sourceNotReady, hasContainers, podDeleted, newestOfPod],
  logs,
  keepsNewestOfName: true,
  sweepsLinksAlways: false,
  takesUidDirectories: false,
};

/** Age counts from creation, nothing is foreign, and a source that is not ready holds back only deleted pods and logs. */
const kubelet: RuleSet = {
  containers: [running, tooYoungSinceCreation, podDeletedIfReady],
  sandboxes: [ready, hasContainers, podDeleted, newestOfPod],
  logs,
  keepsNewestOfName: false,
  sweepsLinksAlways: true,
  takesUidDirectories: true,
};

export const ruleSet = (compat: Compat): RuleSet => (compat === "kubelet" ? kubelet : ours);
