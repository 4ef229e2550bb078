/** Decides for the whole node: containers, sandboxes and logs first, then images as if the planned removals had happened. */

import type { HoldState } from "../model/hold.ts";
import type { ContainerId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { ContainerPlan, ImageTarget, Plan, PodSourceState, Purpose } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Duration, Instant } from "../model/time.ts";
import { bootGrace } from "./blocks.ts";
import type { ContainerInput } from "./container/container-input.ts";
import { decideContainers, decideContainersAgain } from "./container/containers.ts";
import { podSourceForImages, type PodView } from "./container/pod-source.ts";
import { judgePods, type PodJudgement } from "./container/pods.ts";
import { decideImages } from "./image/images.ts";
import { selectedContainers, selectionOf } from "./selection.ts";

/** Which halves of the node a plan is for. `logs`: only what deleted pods left in the log directories. */
export interface Parts {
  readonly containers: "all" | "logs" | "none";
  readonly images: boolean;
}

export interface Decide {
  readonly snapshot: Snapshot;
  /** As remembered after this snapshot. */
  readonly ledger: Ledger;
  readonly limits: Limits;
  readonly purpose: Purpose;
  readonly parts: Parts;
  readonly hold: HoldState;
  /** When the agent started; `null`: one pass without an agent. */
  readonly startedAt: Instant | null;
  /** Of a pass under pressure: what would end it. */
  readonly pressureTargets: readonly ImageTarget[];
  /** Devices on which removals lately gained nothing; none are known without an agent. */
  readonly noGainDevices?: ReadonlySet<string>;
  /** How long the pass has waited for starting pods already. */
  readonly waitedForPods: Duration;
}

/** The one path to a plan: `plan`, `explain`, a dry run and every pass of `gc` and of the agent take it. */
export function decide(input: Decide): Plan {
  const pods = podsOf(input);
  const containers = input.parts.containers === "none" ? null : containerPlan(input, pods);
  const without = new Set(containers === null ? [] : removedContainers(containers));
  const images = input.parts.images
    ? decideImages({
        snapshot: input.snapshot,
        ledger: input.ledger,
        limits: input.limits.images,
        hold: input.hold.kind === "none" ? null : input.hold,
        without,
        podSource: listSource(input),
        waitedForPods: input.waitedForPods,
        purpose: input.purpose,
        selection: selectionOf(input.purpose),
        pressureTargets: input.pressureTargets,
        ...(input.noGainDevices === undefined ? {} : { noGainDevices: input.noGainDevices }),
        startedAt: input.startedAt,
        removedBefore: containers === null ? 0 : removals(containers),
      })
    : null;
  return { containers, images };
}

/** The containers' half on lists that are newer than the snapshot; everything else is that of the pass. */
export function decideOnFreshLists(
  input: Decide,
  lists: Pick<Snapshot, "containers" | "sandboxes">,
): ContainerPlan {
  const pods = podsOf({ ...input, snapshot: { ...input.snapshot, ...lists } });
  return limitedTo(input, decideContainersAgain(containerInput(input, pods), { ...lists, pods }));
}

type ListFacts = Pick<Decide, "snapshot" | "ledger"> & { readonly limits: Pick<Limits, "memory"> };

const podsOf = (input: Decide): PodJudgement => judgePods(input.ledger.pods, podView(input));

const podView = ({ snapshot, ledger, limits }: ListFacts): PodView => ({
  ...snapshot,
  watched: ledger.watched,
  limits: limits.memory,
});

/** Whether the kubelet's list of pods may be believed, whose images count as used; `null`: there is no such list. */
export const listSource = (input: ListFacts): PodSourceState | null =>
  podSourceForImages(podView(input), input.ledger.pods);

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
    blocks: standing(input),
  };
}

/** One that went between the list and its status no longer stands for its name: another one is the newest then. */
const stillThere = ({ containers, imageVolumes }: Snapshot): Snapshot["containers"] =>
  containers.filter(({ id }) => imageVolumes.get(id)?.kind !== "gone");

function limitedTo({ parts, purpose }: Decide, plan: ContainerPlan): ContainerPlan {
  const selection = selectionOf(purpose);
  const selected = selection === null ? plan : selectedContainers(plan, selection);
  return parts.containers === "logs" ? { ...selected, containers: [], sandboxes: [] } : selected;
}

/** What holds back containers as well as images. */
function standing({ ledger, limits, hold }: Decide): readonly ImageBlock[] {
  const held: readonly ImageBlock[] =
    hold.kind === "none" ? [] : [{ kind: "on-hold", until: hold.until, reason: hold.reason }];
  return [...held, ...bootGrace({ ledger, limits: limits.images })];
}

const removals = ({ containers, sandboxes, podLogs }: ContainerPlan): number =>
  [...containers, ...sandboxes, ...podLogs].filter(({ decision }) => decision.kind === "remove")
    .length;

function removedContainers(plan: ContainerPlan): readonly ContainerId[] {
  return plan.containers
    .filter((planned) => planned.decision.kind === "remove")
    .map((planned) => planned.container.id);
}
