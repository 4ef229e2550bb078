/** Which dead containers go, rule by rule; what no rule decides competes in the limits. */
import type { ContainerId } from "../model/ids.ts";
import type { Decision, PlannedContainer } from "../model/plan.ts";
import type { ContainerKeepReason, ContainerRemoveReason } from "../model/reason.ts";
import type { Container } from "../model/snapshot.ts";
import { since } from "../model/time.ts";
import type { ContainerInput } from "./container-input.ts";
import { newestFirst, overLimits } from "./container-limits.ts";
import { type Owner, ownership } from "./ownership.ts";

/** In the order of removal, then what is kept. */
export function planDeadContainers(input: ContainerInput): readonly PlannedContainer[] {
  const judged = judgeByRules(input);
  const candidates = judged.filter((each) => each.decision === null);
  const newest = input.limits.compat === "kubelet" ? new Set<ContainerId>() : newestOfName(judged);
  const over = overLimits(candidates, input.limits, newest);
  const planned = judged.map(({ container, tried, decision }): PlannedContainer => {
    const final = decision ?? byLimits(over.get(container.id), newest.has(container.id), tried);
    return { container, stopFirst: container.state === "unknown", decision: final };
  });
  return planned.toSorted(inOrderOfRemoval);
}

export interface Judged {
  readonly container: Container;
  /** The pod and the name: what a limit "per container" counts. */
  readonly unit: string;
  readonly tried: readonly string[];
  /** `null`: dead, old enough, and in a pod that is not gone. */
  readonly decision: ContainerDecision | null;
}

type ContainerDecision = Decision<ContainerKeepReason, ContainerRemoveReason>;
type Verdict =
  { readonly keep: ContainerKeepReason } | { readonly remove: ContainerRemoveReason } | null;

interface Rule {
  readonly code: string;
  readonly judge: (container: Container, owner: Owner, input: ContainerInput) => Verdict;
}

function judgeByRules(input: ContainerInput): readonly Judged[] {
  const owners = ownership(input.snapshot, input.limits.compat);
  const rules = input.limits.compat === "kubelet" ? kubeletRules : ownRules;
  return input.snapshot.containers.map((container) => {
    const owner = owners.ofContainer(container);
    // What somebody else put into a pod says nothing of the pod's own container of that name.
    const unit = `${owner.foreign ? "foreign" : "pod"}/${owner.uid}/${container.name}`;
    const tried: string[] = [];
    for (const rule of rules) {
      const verdict = rule.judge(container, owner, input);
      if (verdict !== null) return { container, unit, tried, decision: decisionOf(verdict, tried) };
      tried.push(rule.code);
    }
    return { container, unit, tried, decision: null };
  });
}

function decisionOf(verdict: NonNullable<Verdict>, tried: readonly string[]): ContainerDecision {
  if ("keep" in verdict) {
    return { kind: "keep", reason: verdict.keep, tried: [...tried, verdict.keep.kind] };
  }
  return { kind: "remove", reason: verdict.remove, tried: [...tried, verdict.remove.kind] };
}

const running: Rule = {
  code: "running",
  judge: (container) => (container.state === "running" ? { keep: { kind: "running" } } : null),
};

const foreign: Rule = {
  code: "foreign",
  judge: (_, owner, { limits }) =>
    owner.foreign && !limits.collectForeign ? { keep: { kind: "foreign" } } : null,
};

const sourceNotReady: Rule = {
  code: "source-not-ready",
  judge: (_, __, { pods }) =>
    pods.state.kind === "not-ready"
      ? { keep: { kind: "source-not-ready", message: pods.state.why } }
      : null,
};

/** A created one is about to start, and of an unknown one nobody knows that it is dead. */
const notDead: Rule = {
  code: "not-dead",
  judge: (container, owner, input) => {
    if (container.state === "exited") return null;
    const gone = owner.foreign
      ? input.pods.foreignDead(owner.uid)
      : input.pods.shouldRemoveContent(owner.uid) !== null;
    return gone ? null : { keep: { kind: "not-dead", state: container.state } };
  },
};

const endUnknown: Rule = {
  code: "end-unknown",
  judge: (container, _, { snapshot, limits }) => {
    if (container.state !== "exited" || limits.minimumAge === 0n) return null;
    if (snapshot.containerEnds.has(container.id)) return null;
    return { keep: { kind: "end-unknown", message: "the runtime did not say when it ended" } };
  },
};

/** From the end, where there was one. */
const tooYoung: Rule = {
  code: "too-young",
  judge: (container, _, input) =>
    youngerThanAllowed(
      input,
      input.snapshot.containerEnds.get(container.id) ?? container.createdAt,
    ),
};

const tooYoungSinceCreation: Rule = {
  code: "too-young",
  judge: (container, _, input) => youngerThanAllowed(input, container.createdAt),
};

/** An instant in the future means that the clock was set back: it counts as young. */
function youngerThanAllowed(input: ContainerInput, from: Container["createdAt"]): Verdict {
  const age = since(input.now, from);
  const { minimumAge } = input.limits;
  return age < minimumAge ? { keep: { kind: "too-young", age, minimumAge } } : null;
}

const podGone: Rule = {
  code: "pod-gone",
  judge: (_, owner, input) => {
    if (owner.foreign) {
      return input.pods.foreignDead(owner.uid) ? { remove: { kind: "foreign-dead" } } : null;
    }
    // Only the kubelet gets here with a source that is not ready.
    if (input.pods.state.kind === "not-ready") return null;
    const gone = input.pods.shouldRemoveContent(owner.uid);
    if (gone !== null) return { remove: { kind: gone } };
    const reclaim = input.purpose !== "periodic" && input.pods.hasEnded(owner.uid);
    return reclaim ? { remove: { kind: "pod-terminated" } } : null;
  },
};

const ownRules: readonly Rule[] = [
  running,
  foreign,
  sourceNotReady,
  notDead,
  endUnknown,
  tooYoung,
  podGone,
];
const kubeletRules: readonly Rule[] = [running, tooYoungSinceCreation, podGone];

/**
 * The newest dead instance of each name of which none runs. The kubelet reads from it whether the container has to run
 * again; without it a finished init container would. Too young ones count: where one is the newest, it needs no other.
 */
function newestOfName(judged: readonly Judged[]): ReadonlySet<ContainerId> {
  const newest = new Map<string, Container>();
  const runs = new Set<string>();
  for (const { container, unit } of judged) {
    if (container.state === "running") runs.add(unit);
    if (container.state !== "exited") continue;
    const other = newest.get(unit);
    if (other === undefined || newestFirst(container, other) < 0) newest.set(unit, container);
  }
  return new Set([...newest].filter(([unit]) => !runs.has(unit)).map(([, { id }]) => id));
}

function byLimits(
  over: ContainerRemoveReason | undefined,
  newest: boolean,
  tried: readonly string[],
): ContainerDecision {
  if (newest) return decisionOf({ keep: { kind: "newest-of-name" } }, tried);
  const before = [...tried, "newest-of-name"];
  return decisionOf(
    over === undefined ? { keep: { kind: "within-limits" } } : { remove: over },
    before,
  );
}

function inOrderOfRemoval(one: PlannedContainer, other: PlannedContainer): number {
  return rank(one) - rank(other) || newestFirst(other.container, one.container);
}

/** Pods that are gone first, then what each name has too much of, then what the node has. */
function rank({ decision }: PlannedContainer): number {
  if (decision.kind === "keep") return 3;
  if (decision.reason.kind === "over-total-limit") return 2;
  return decision.reason.kind === "over-per-container-limit" ? 1 : 0;
}
