/** Decides for the whole node: containers, sandboxes and logs first, then images as if these were already removed. */

import type { ContainerPlan, Plan } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { standingBlocks } from "./blocks.ts";
import { byParts } from "./by-object.ts";
import type { ContainerInput } from "./container/container-input.ts";
import { decideContainers, decideContainersAgain } from "./container/containers.ts";
import { podView } from "./container/pod-source.ts";
import { judgePods, type PodJudgement } from "./container/pods.ts";
import type { Facts } from "./facts.ts";
import { decideImages, type GoneBefore } from "./image/images.ts";
import { selectedContainers, selectionOf } from "./selection.ts";

/** The halves of the node that a plan is for. `logs`: only what deleted pods left in the log directories. */
export interface Parts {
  readonly containers: "all" | "logs" | "none";
  readonly images: boolean;
}

export interface Decide extends Facts {
  readonly parts: Parts;
}

/** The only way to make a plan, for `plan`, `explain`, dry runs, `gc` and the agent. */
export function decide(input: Decide): Plan {
  const containers =
    input.parts.containers === "none"
      ? null
      : containerPlan(input, judgePods(input.ledger.pods, podView(input)));
  const images = input.parts.images ? decideImages(input, goneBefore(containers)) : null;
  return { containers, images };
}

export interface FreshLists extends Pick<Snapshot, "containers" | "sandboxes"> {
  /** Not before they were requested. */
  readonly listedAt: Instant;
}

/** The container half on lists newer than the snapshot; everything else is that of the pass. */
export function decideOnFreshLists(
  input: Decide,
  { listedAt, ...lists }: FreshLists,
): ContainerPlan {
  const view = podView({ ...input, snapshot: { ...input.snapshot, ...lists } });
  const pods = judgePods(input.ledger.pods, { ...view, listedAt });
  return limitedTo(input, decideContainersAgain(containerInput(input, pods), { ...lists, pods }));
}

const containerPlan = (input: Decide, pods: PodJudgement): ContainerPlan =>
  limitedTo(input, decideContainers(containerInput(input, pods)));

function containerInput(input: Decide, pods: PodJudgement): ContainerInput {
  const { snapshot, limits, purpose } = input;
  return {
    snapshot: { ...snapshot, containers: stillThere(snapshot) },
    pods,
    limits: limits.containers,
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    blocks: standingBlocks(input),
  };
}

/** A container removed between the list and its status is not the newest of its name; another one is. */
const stillThere = ({ containers, imageVolumes }: Snapshot): Snapshot["containers"] =>
  withoutGone({ containers, imageVolumes });

/** The same list where none has gone, by which the order of its containers is known. */
const withoutGone = byParts(
  ({ containers, imageVolumes }: Pick<Snapshot, "containers" | "imageVolumes">) => {
    const isGone = ({ id }: Snapshot["containers"][number]): boolean =>
      imageVolumes.get(id)?.kind === "gone";
    return containers.some(isGone) ? containers.filter((it) => !isGone(it)) : containers;
  },
);

function limitedTo({ parts, purpose }: Decide, plan: ContainerPlan): ContainerPlan {
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
