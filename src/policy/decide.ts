/** Decides for the whole node: containers, sandboxes and logs first, then images as if these were already removed. */
import type { ContainerPlan, ImagePlan, Plan } from "../model/plan.ts";
import type { ContainerInput } from "./container/container-rules.ts";
import type { Listed } from "./container/ownership.ts";
import { judgePods, podView } from "./container/pods.ts";
import type { Facts } from "./facts.ts";
import type { GoneBefore } from "./image/images.ts";
import { standingBlocks } from "./image/judge.ts";
import { selectedContainers, selectionOf } from "./selection.ts";

export interface Halves {
  readonly decideContainers: (input: ContainerInput) => ContainerPlan;
  readonly decideImages: (facts: Facts, before: GoneBefore) => ImagePlan;
}

export function decideBy({ decideContainers, decideImages }: Halves) {
  const containerPlan = (facts: Facts, fresh: Listed | null = null): ContainerPlan => {
    const plan = decideContainers(containerInput(facts, fresh));
    const selection = selectionOf(facts.purpose);
    const selected = selection === null ? plan : selectedContainers(plan, selection);
    if (facts.parts.containers !== "logs") return selected;
    return { ...selected, containers: [], sandboxes: [] };
  };
  const decide = (facts: Facts): Plan => {
    const containers = facts.parts.containers === "none" ? null : containerPlan(facts);
    const images = facts.parts.images ? decideImages(facts, goneBefore(containers)) : null;
    return { containers, images };
  };
  return { decide, decideContainers: containerPlan };
}

function containerInput(facts: Facts, fresh: Listed | null): ContainerInput {
  const { snapshot, ledger, limits, purpose } = facts;
  // A container removed between the list and its status is not the newest of its name; another one is.
  const containers = snapshot.containers.filter(
    ({ id }) => snapshot.imageVolumes.get(id)?.kind !== "gone",
  );
  return {
    snapshot: { ...snapshot, containers, ...fresh },
    isFresh: fresh !== null,
    pods: judgePods(ledger.pods, { ...podView(facts), ...fresh }),
    limits: limits.containers,
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    blocks: standingBlocks(facts),
  };
}

/** Images are judged as if the planned containers were removed. */
function goneBefore(plan: ContainerPlan | null): GoneBefore {
  const removed = (plan?.containers ?? []).filter(({ decision }) => decision.kind === "remove");
  return new Set(removed.map(({ container }) => container.id));
}
