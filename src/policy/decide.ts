/** Decides for the whole node: containers, sandboxes and logs first, then images as if these were already removed. */
import type { ContainerPlan, Plan } from "../model/plan.ts";
import type { Instant } from "../model/time.ts";
import type { ContainerInput } from "./container/container-rules.ts";
import { decideContainers, decideContainersAgain } from "./container/containers.ts";
import type { Listed } from "./container/ownership.ts";
import { podView } from "./container/pod-source.ts";
import { judgePods, type PodJudgement } from "./container/pods.ts";
import type { Facts } from "./facts.ts";
import { decideImages, type GoneBefore } from "./image/images.ts";
import { standingBlocks } from "./image/judge.ts";
import { selectedContainers, selectionOf } from "./selection.ts";

/** The halves of the node that a plan is for. `logs`: only what deleted pods left in the log directories. */
export interface Parts {
  readonly containers: "all" | "logs" | "none";
  readonly images: boolean;
}

/** What a plan is decided from. */
export interface PlanInput extends Facts {
  readonly parts: Parts;
}

/** The only way to make a plan, for `plan`, `explain`, dry runs, `gc` and the agent. */
export function decide(facts: PlanInput): Plan {
  const containers = facts.parts.containers === "none" ? null : containerPlan(facts);
  const images = facts.parts.images ? decideImages(facts, goneBefore(containers)) : null;
  return { containers, images };
}

function containerPlan(facts: PlanInput): ContainerPlan {
  const pods = judgePods(facts.ledger.pods, podView(facts));
  return limitedTo(facts, decideContainers(containerInput(facts, pods)));
}

export interface FreshLists extends Listed {
  /** Not before they were requested. */
  readonly listedAt: Instant;
}

/** The container half on lists newer than the snapshot's; everything else is the snapshot's. */
export function decideOnFreshLists(
  facts: PlanInput,
  { listedAt, ...lists }: FreshLists,
): ContainerPlan {
  const pods = judgePods(facts.ledger.pods, { ...podView(facts), ...lists, listedAt });
  return limitedTo(facts, decideContainersAgain(containerInput(facts, pods), { ...lists, pods }));
}

function containerInput(facts: PlanInput, pods: PodJudgement): ContainerInput {
  const { snapshot, limits, purpose } = facts;
  // A container removed between the list and its status is not the newest of its name; another one is.
  const containers = snapshot.containers.filter(
    ({ id }) => snapshot.imageVolumes.get(id)?.kind !== "gone",
  );
  return {
    snapshot: { ...snapshot, containers },
    pods,
    limits: limits.containers,
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    blocks: standingBlocks(facts),
  };
}

function limitedTo({ parts, purpose }: PlanInput, plan: ContainerPlan): ContainerPlan {
  const selection = selectionOf(purpose);
  const selected = selection === null ? plan : selectedContainers(plan, selection);
  return parts.containers === "logs" ? { ...selected, containers: [], sandboxes: [] } : selected;
}

/** Images are judged as if the planned containers were removed. */
function goneBefore(plan: ContainerPlan | null): GoneBefore {
  const { containers, sandboxes, podLogs } = plan ?? { containers: [], sandboxes: [], podLogs: [] };
  const isRemoved = (it: { readonly decision: { readonly kind: string } }): boolean =>
    it.decision.kind === "remove";
  return {
    containers: new Set(containers.filter(isRemoved).map(({ container }) => container.id)),
    removals: [...containers, ...sandboxes, ...podLogs].filter(isRemoved).length,
  };
}
