/** Decides for the whole node: containers, sandboxes and logs first, then images as if these were already removed. */
import type { ContainerPlan, Plan } from "../model/plan.ts";
import { decideContainers } from "./container/containers.ts";
import type { Listed } from "./container/ownership.ts";
import { judgePods, podView } from "./container/pods.ts";
import type { Facts } from "./facts.ts";
import { decideImages, type GoneBefore } from "./image/images.ts";
import { standingBlocks } from "./image/judge.ts";
import { selectedContainers, selectionOf } from "./selection.ts";

/** The only way to make a plan, for `plan`, `explain`, dry runs, `gc` and the agent. */
export function decide(facts: Facts): Plan {
  const containers = facts.parts.containers === "none" ? null : containerPlan(facts);
  const images = facts.parts.images ? decideImages(facts, goneBefore(containers)) : null;
  return { containers, images };
}

/** The container half; `fresh`: on lists newer than the snapshot's, while everything else is the snapshot's. */
export function containerPlan(facts: Facts, fresh: Listed | null = null): ContainerPlan {
  const { snapshot, ledger, limits, purpose, parts } = facts;
  // A container removed between the list and its status is not the newest of its name; another one is.
  const containers = snapshot.containers.filter(
    ({ id }) => snapshot.imageVolumes.get(id)?.kind !== "gone",
  );
  const plan = decideContainers({
    snapshot: { ...snapshot, containers, ...fresh },
    isFresh: fresh !== null,
    pods: judgePods(ledger.pods, { ...podView(facts), ...fresh }),
    limits: limits.containers,
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    blocks: standingBlocks(facts),
  });
  const selection = selectionOf(purpose);
  const selected = selection === null ? plan : selectedContainers(plan, selection);
  return parts.containers === "logs" ? { ...selected, containers: [], sandboxes: [] } : selected;
}

/** Images are judged as if the planned containers were removed. */
function goneBefore(plan: ContainerPlan | null): GoneBefore {
  const removed = (plan?.containers ?? []).filter(({ decision }) => decision.kind === "remove");
  return new Set(removed.map(({ container }) => container.id));
}
