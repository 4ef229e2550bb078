/** The interface of every decision, and crigc's own rules. `policyOf` in engine/node.ts chooses between these and the kubelet's. */
import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { ContainerPlan, ImagePlan, Plan } from "../model/plan.ts";
import type { ContainerInput } from "./container/container-rules.ts";
import { decideContainers } from "./container/containers.ts";
import { judgePods, type Listed } from "./container/pods.ts";
import type { Facts } from "./facts.ts";
import { decideImages, type GoneBefore } from "./image/images.ts";
import { type Recheck, recheckImages, standingBlocks } from "./image/judge.ts";
import { judgePressure, type PressureInput, type PressureVerdict } from "./pressure/thresholds.ts";
import { type Observation, remember } from "./remember.ts";
import { selectedContainers, selectionOf } from "./selection.ts";
import { measuredStop, type StopRule } from "./space.ts";

export function decideBy(halves: {
  readonly decideContainers: (input: ContainerInput) => ContainerPlan;
  readonly decideImages: (facts: Facts, before: GoneBefore) => ImagePlan;
}) {
  const containerPlan = (facts: Facts, fresh: Listed | null = null): ContainerPlan => {
    const plan = halves.decideContainers(containerInput(facts, fresh));
    const selection = selectionOf(facts.purpose);
    const selected = selection === null ? plan : selectedContainers(plan, selection);
    if (facts.parts.containers !== "logs") return selected;
    return { ...selected, containers: [], sandboxes: [] };
  };
  const decide = (facts: Facts): Plan => {
    const containers = facts.parts.containers === "none" ? null : containerPlan(facts);
    const images = facts.parts.images ? halves.decideImages(facts, goneBefore(containers)) : null;
    return { containers, images };
  };
  return { decide, decideContainers: containerPlan };
}

function containerInput(facts: Facts, fresh: Listed | null): ContainerInput {
  const { snapshot, ledger, limits, purpose } = facts;
  const { totalUptime } = ledger;
  // A container removed between the list and its status is not the newest of its name; another one is.
  const containers = snapshot.containers.filter(
    ({ id }) => snapshot.imageVolumes.get(id)?.kind !== "gone",
  );
  return {
    snapshot: { ...snapshot, containers, ...fresh },
    isFresh: fresh !== null,
    pods: judgePods(ledger.pods, { ...snapshot, totalUptime, limits: limits.ledger, ...fresh }),
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

export interface Policy {
  /** The next ledger. */
  readonly remember: (observation: Observation) => Ledger;
  /** The only way to make a plan, for `plan`, `explain`, dry runs, `gc` and the agent. */
  readonly decide: (facts: Facts) => Plan;
  /** Decides on containers again, by newer lists and the rest of the snapshot. */
  readonly decideContainers: (facts: Facts, fresh: Listed) => ContainerPlan;
  readonly recheckImages: (facts: Facts) => Recheck;
  readonly imageRemoved: (id: ImageId) => void;
  readonly judgePressure: (input: PressureInput) => PressureVerdict;
  readonly stopRule: (plan: ImagePlan) => StopRule;
  /** Whether a pass under pressure removes containers before images, as every other pass does. */
  readonly containersFirst: boolean;
  /** Whether layers decide anything. */
  readonly knowsLayers: boolean;
}

export const defaultPolicy: Policy = {
  remember: (observation) => remember(observation),
  ...decideBy({ decideContainers, decideImages }),
  recheckImages,
  imageRemoved: () => undefined,
  judgePressure,
  stopRule: measuredStop,
  containersFirst: false,
  knowsLayers: true,
};
