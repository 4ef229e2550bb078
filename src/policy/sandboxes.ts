/** Which dead sandboxes go: those of pods that are gone, and those that a living pod has replaced. */
import type { PodUid, SandboxId } from "../model/ids.ts";
import type { Decision, PlannedSandbox } from "../model/plan.ts";
import type { SandboxKeepReason, SandboxRemoveReason } from "../model/reason.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import type { ContainerInput } from "./container-input.ts";
import { type Owner, ownership } from "./ownership.ts";

/** In the order of removal, then what is kept. `containers` are those that count as there. */
export function planSandboxes(
  input: ContainerInput,
  containers: readonly Container[],
): readonly PlannedSandbox[] {
  const owners = ownership(input.snapshot, input.limits.compat);
  const residents = Map.groupBy(containers, (container) => container.sandboxId);
  const newest = newestOfPods(input.snapshot.sandboxes, (sandbox) => owners.ofSandbox(sandbox).uid);
  const rules = input.limits.compat === "kubelet" ? kubeletRules : ownRules;
  const planned = input.snapshot.sandboxes.map((sandbox): PlannedSandbox => {
    const owner = owners.ofSandbox(sandbox);
    const facts = {
      sandbox,
      owner,
      residents: residents.get(sandbox.id) ?? [],
      newest: newest.has(sandbox.id),
      input,
    };
    return { sandbox, decision: decide(facts, rules) };
  });
  return planned.toSorted(inOrderOfRemoval);
}

interface Facts {
  readonly sandbox: Sandbox;
  readonly owner: Owner;
  readonly residents: readonly Container[];
  readonly newest: boolean;
  readonly input: ContainerInput;
}

type Verdict =
  { readonly keep: SandboxKeepReason } | { readonly remove: SandboxRemoveReason } | null;

interface Rule {
  readonly code: string;
  readonly judge: (facts: Facts) => Verdict;
}

function decide(
  facts: Facts,
  rules: readonly Rule[],
): Decision<SandboxKeepReason, SandboxRemoveReason> {
  const tried: string[] = [];
  for (const { code, judge } of rules) {
    const verdict = judge(facts);
    if (verdict === null) {
      tried.push(code);
      continue;
    }
    if ("keep" in verdict) {
      return { kind: "keep", reason: verdict.keep, tried: [...tried, verdict.keep.kind] };
    }
    return { kind: "remove", reason: verdict.remove, tried: [...tried, verdict.remove.kind] };
  }
  return { kind: "remove", reason: { kind: "superseded" }, tried: [...tried, "superseded"] };
}

const ready: Rule = {
  code: "ready",
  judge: ({ sandbox }) => (sandbox.state === "ready" ? { keep: { kind: "ready" } } : null),
};

const foreign: Rule = {
  code: "foreign",
  judge: ({ owner, input }) =>
    owner.foreign && !input.limits.collectForeign ? { keep: { kind: "foreign" } } : null,
};

const sourceNotReady: Rule = {
  code: "source-not-ready",
  judge: ({ input: { pods } }) =>
    pods.state.kind === "not-ready"
      ? { keep: { kind: "source-not-ready", message: pods.state.why } }
      : null,
};

const hasContainers: Rule = {
  code: "has-containers",
  judge: ({ residents }) =>
    residents.length === 0
      ? null
      : { keep: { kind: "has-containers", containers: residents.map(({ id }) => id).toSorted() } },
};

const podGone: Rule = {
  code: "pod-gone",
  judge: ({ owner, input: { pods, purpose } }) => {
    if (owner.foreign)
      return pods.foreignDead(owner.uid) ? { remove: { kind: "foreign-dead" } } : null;
    const gone = pods.shouldRemoveContent(owner.uid);
    if (gone !== null) return { remove: { kind: gone } };
    const reclaim = purpose !== "periodic" && pods.hasEnded(owner.uid);
    return reclaim ? { remove: { kind: "pod-terminated" } } : null;
  },
};

const newestOfPod: Rule = {
  code: "newest-of-pod",
  judge: ({ newest }) => (newest ? { keep: { kind: "newest-of-pod" } } : null),
};

const kubeletRules: readonly Rule[] = [ready, hasContainers, podGone, newestOfPod];
const ownRules: readonly Rule[] = [
  ready,
  foreign,
  sourceNotReady,
  hasContainers,
  podGone,
  newestOfPod,
];

function newestOfPods(
  sandboxes: readonly Sandbox[],
  podOf: (sandbox: Sandbox) => PodUid,
): ReadonlySet<SandboxId> {
  const newest = new Map<PodUid, Sandbox>();
  for (const sandbox of sandboxes) {
    const other = newest.get(podOf(sandbox));
    if (other === undefined || newestFirst(sandbox, other) < 0) newest.set(podOf(sandbox), sandbox);
  }
  return new Set([...newest.values()].map(({ id }) => id));
}

function inOrderOfRemoval(one: PlannedSandbox, other: PlannedSandbox): number {
  const rank = ({ decision }: PlannedSandbox): number => (decision.kind === "remove" ? 0 : 1);
  return rank(one) - rank(other) || newestFirst(other.sandbox, one.sandbox);
}

function newestFirst(one: Sandbox, other: Sandbox): number {
  if (one.createdAt !== other.createdAt) return one.createdAt > other.createdAt ? -1 : 1;
  if (one.attempt !== other.attempt) return other.attempt - one.attempt;
  return one.id < other.id ? 1 : one.id > other.id ? -1 : 0;
}
