/** Decides which dead sandboxes are removed: those of deleted pods, and those that a live pod has replaced. */
import type { PodUid, SandboxId } from "../../model/ids.ts";
import type { PlannedSandbox } from "../../model/plan.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { once } from "../by-object.ts";
import type { ContainerInput } from "./container-input.ts";
import { byRank, newestFirst, sandboxesByAge } from "./container-limits.ts";
import { decisionOf, ruleSet, tryRules } from "./container-rules.ts";
import { ownership } from "./ownership.ts";

/** In the order of removal, then what is kept. `containers`: those that count as present. */
export function planSandboxes(
  input: ContainerInput,
  containers: () => readonly Container[],
): readonly PlannedSandbox[] {
  const owners = ownership(input.snapshot, input.limits.compat);
  const residents = once(() => Map.groupBy(containers(), (container) => container.sandboxId));
  const newest = newestOfPods(input.snapshot.sandboxes, (sandbox) => owners.ofSandbox(sandbox).uid);
  const rules = ruleSet(input.limits.compat).sandboxes;
  const planned = sandboxesByAge(input.snapshot.sandboxes).map((sandbox): PlannedSandbox => {
    const { tried, decision } = tryRules(rules, {
      sandbox,
      owner: owners.ofSandbox(sandbox),
      residents: () => (residents().get(sandbox.id) ?? []).map(({ id }) => id),
      isNewestOfPod: newest.has(sandbox.id),
      input,
    });
    return { sandbox, decision: decision ?? decisionOf({ remove: { kind: "superseded" } }, tried) };
  });
  return byRank(planned, 2, ({ decision }) => (decision.kind === "remove" ? 0 : 1));
}

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
