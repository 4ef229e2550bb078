/** One pass on the simulated node: the plan that an agent would make, removed as far as the agent would. */

import type { ImageId } from "../model/ids.ts";
import type { ImageLimits } from "../model/limits.ts";
import type { ImageItem } from "../model/pass.ts";
import type { ImageCandidate, ImagePlan } from "../model/plan.ts";
import { duration } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { decide } from "../policy/decide.ts";
import type { Facts } from "../policy/facts.ts";
import { targetReach } from "../policy/space/futility.ts";
import { judgeDisks, type Progress, storeTargets, targetsMet } from "../policy/space/targets.ts";
import { DEVICE, type SimulatedNode } from "./node.ts";

/** Reorders the candidates of a plan. */
type Reorder = (candidates: readonly ImageCandidate[]) => readonly ImageCandidate[];

/** Whether a periodic pass has anything to do, so that its plan is needed. */
export function isTriggered(node: SimulatedNode, limits: ImageLimits): boolean {
  const facts = { images: node.images, filesystems: [node.filesystem()] };
  return (
    limits.maximumAge > 0n ||
    judgeDisks(facts, limits).targets.length > 0 ||
    storeTargets(facts, limits, null).length > 0
  );
}

/** Removes what the plan says, one after the other, until its targets are met or it is futile to go on. */
export function removeByPlan(
  facts: Facts,
  node: SimulatedNode,
  reorder: Reorder | null,
): readonly ImageItem[] {
  const { images: plan } = decide(facts);
  if (plan === null || plan.candidates.length === 0) return [];
  const limits = facts.limits.images;
  const isAged = ({ triggers }: ImageCandidate): boolean =>
    triggers.some(({ kind }) => kind === "age");
  const aged = plan.candidates.filter(isAged);
  const others = plan.candidates.filter((candidate) => !isAged(candidate));
  const run = new Run(facts, plan, node);
  const room = limits.maxRemovalsPerPass ?? Infinity;
  for (const candidate of aged) {
    if (run.items.length >= room) return run.items;
    run.remove(candidate);
  }
  if (plan.targets.length === 0 || plan.blocks.length > 0) return run.items;
  // The kubelet does not count removals for age.
  if (limits.accounting === "reported") run.countFromHere();
  for (const candidate of reorder?.(others) ?? others) {
    if (run.items.length >= room || run.isOver()) break;
    run.remove(candidate);
  }
  return run.items;
}

class Run {
  readonly items: ImageItem[] = [];
  readonly #facts: Facts;
  readonly #plan: ImagePlan;
  readonly #node: SimulatedNode;
  readonly #before: bigint;
  readonly #canReach: ReturnType<typeof targetReach> | null;
  #reportedBytes = 0n;
  #estimatedBytes = 0n;
  #removed = 0;

  constructor(facts: Facts, plan: ImagePlan, node: SimulatedNode) {
    this.#facts = facts;
    this.#plan = plan;
    this.#node = node;
    this.#before = node.availableBytes;
    const collects = facts.limits.images.whenFutile === "collect";
    this.#canReach = collects ? null : targetReach(facts, plan);
  }

  countFromHere(): void {
    this.#reportedBytes = 0n;
    this.#removed = 0;
  }

  isOver(): boolean {
    const progress = this.#progress();
    if (targetsMet(this.#plan.targets, progress) !== null) return true;
    return this.#canReach?.(progress, this.items) === false;
  }

  remove(candidate: ImageCandidate): void {
    const { id, sizeBytes } = candidate.image;
    const measuredBytes = this.#node.remove(id);
    this.#reportedBytes += sizeBytes;
    this.#estimatedBytes += candidate.unscaled?.estimateBytes ?? sizeBytes;
    this.#removed += 1;
    this.items.push({
      candidate,
      trigger: candidate.triggers[0] ?? { kind: "space" },
      result: { kind: "removed", reportedBytes: sizeBytes, measuredBytes, settled: "at-once" },
      startedAt: this.#facts.snapshot.clocks.wall,
      took: duration(0n),
    });
  }

  #progress(): Progress {
    const { availableBytes: free, imageBytes } = this.#node;
    const bytes = { free, gained: free - this.#before };
    return {
      accounting: this.#facts.limits.images.accounting,
      disks: new Map([[DEVICE, { bytes, inodes: { free: 0n, gained: 0n } }]]),
      storeBytes: imageBytes,
      imageCount: this.#node.images.length,
      reportedBytes: this.#reportedBytes,
      estimatedBytes: this.#estimatedBytes,
      removed: this.#removed,
    };
  }
}

/** The order of the offline bound: what is used farthest in the future goes first; larger first among those that are never used again. */
export const farthestFirst =
  (begins: ReadonlyMap<ImageId, readonly number[]>, nowMs: number): Reorder =>
  (candidates) =>
    candidates
      .map((candidate) => ({
        candidate,
        nextMs: nextAfter(begins.get(candidate.image.id) ?? [], nowMs),
      }))
      .toSorted(
        (one, other) =>
          compared(other.nextMs, one.nextMs) ||
          compared(other.candidate.image.sizeBytes, one.candidate.image.sizeBytes),
      )
      .map(({ candidate }) => candidate);

/** Infinity: never. */
function nextAfter(times: readonly number[], nowMs: number): number {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle] ?? Infinity) > nowMs) to = middle;
    else from = middle + 1;
  }
  return times[from] ?? Infinity;
}
