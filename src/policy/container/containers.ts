/** Decides on dead containers, dead sandboxes and pod logs: one plan with a reason for each. */
import { assert } from "../../model/assert.ts";
import type { ContainerPlan, Decision, PlannedContainer } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import { logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import type { ContainerInput } from "./container-input.ts";
import { ruleSet } from "./container-rules.ts";
import { planDeadContainers } from "./dead-containers.ts";
import { planPodLogs, strayEntries } from "./logs.ts";
import type { Listed } from "./ownership.ts";
import type { PodJudgement } from "./pods.ts";
import { planSandboxes } from "./sandboxes.ts";

/** The plan does not depend on the order of the lists. Sandboxes are judged as if the planned containers were removed. */
export function decideContainers(input: ContainerInput): ContainerPlan {
  return decide(input, leftBy);
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

/** What has changed since the plan was made. */
export interface FreshFacts extends Listed {
  readonly pods: PodJudgement;
}

/**
 * The same decision during the pass: a container that is still listed keeps its sandbox, whether its removal failed or
 * it is new.
 */
export function decideContainersAgain(input: ContainerInput, fresh: FreshFacts): ContainerPlan {
  const { containers, sandboxes, pods } = fresh;
  const snapshot = { ...input.snapshot, containers, sandboxes };
  return decide({ ...input, snapshot, pods }, () => containers);
}

function decide(
  input: ContainerInput,
  residents: (planned: readonly PlannedContainer[]) => Snapshot["containers"],
): ContainerPlan {
  assert(
    input.limits.minimumAge >= 0n,
    "a negative minimum age of containers is refused by configuration",
  );
  const { blocks, pods, snapshot } = input;
  const containers = unlessBlocked(planDeadContainers(input), blocks);
  const left = (): Snapshot["containers"] => residents(containers);
  const sandboxes = unlessBlocked(planSandboxes(input, left), blocks);
  const podLogs = unlessBlocked(planPodLogs(input), blocks);
  // Only the runtime judges links, but a source that is not ready stops them too: nothing at all is removed then.
  const sweep =
    blocks.length === 0 &&
    (ruleSet(input.limits.compat).sweepsLinksAlways || pods.state.kind !== "not-ready");
  return {
    purpose: input.purpose,
    now: input.now,
    containers,
    sandboxes,
    podLogs,
    links: sweep ? (logFactsOf(snapshot.logs)?.danglingLinks ?? []).map((link) => ({ link })) : [],
    strays: strayEntries(input),
    logsError: snapshot.logs?.kind === "failed" ? snapshot.logs.message : null,
    blocks,
    podSource: pods.state,
  };
}

/** The containers that remain after the planned removals. */
function leftBy(planned: readonly PlannedContainer[]): Snapshot["containers"] {
  return planned.filter((each) => each.decision.kind === "keep").map((each) => each.container);
}

interface Decided<Keep, Remove> {
  readonly decision: Decision<Keep, Remove>;
}

function unlessBlocked<Keep, Remove, Planned extends Decided<Keep | BlockedReason, Remove>>(
  planned: readonly Planned[],
  blocks: readonly ImageBlock[],
): readonly Planned[] {
  const block = blocks[0];
  if (block === undefined) return planned;
  const reason: BlockedReason = { kind: "blocked", block: block.kind };
  return planned.map((each) => {
    if (each.decision.kind === "keep") return each;
    const decision = { kind: "keep" as const, reason, tried: [...each.decision.tried, "blocked"] };
    return { ...each, decision };
  });
}

interface BlockedReason {
  readonly kind: "blocked";
  readonly block: ImageBlock["kind"];
}
