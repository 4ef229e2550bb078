/** The plan for images: triggers, candidates in order of removal, and why all others are kept. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageLimits } from "../../model/limits.ts";
import {
  expectedBytes,
  type ImageCandidate,
  type ImagePlan,
  type ImageTarget,
  type KeptImage,
  type PlanNote,
} from "../../model/plan.ts";
import type { ImageBlock, ImageKeepReason, ImageTrigger } from "../../model/reason.ts";
import { watchedSince } from "../../model/time.ts";
import { once } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import { type Choice, layersCount, orderByLayers, withEstimates } from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import { evictionMarks } from "../pressure/thresholds.ts";
import { selectionOf } from "../selection.ts";
import { gainOf } from "../space/freed.ts";
import { distinctTriggers, isSpaceOff, type RemovalDemand, removalDemand } from "./demand.ts";
import { judgeImages, type Judgement } from "./judge.ts";
import { type Protection, protectionOf } from "./protect.ts";
import { type Ranked, unusedFor } from "./rank.ts";

/**
 * `without`: containers that the same plan removes first; images are judged as if they were removed.
 * If `blocks` is not empty, `candidates` is empty and nothing is removed, with one exception: with `compat: kubelet`
 * and an invalid capacity there are candidates for age, because the kubelet removes them before it measures the disk.
 */
export function decideImages(facts: Facts, without: ReadonlySet<ContainerId>): ImagePlan {
  const { snapshot, purpose } = facts;
  const limits = facts.limits.images;
  const judgement = judgeImages(facts, without, selectionOf(purpose));
  const demand = removalDemand(facts, judgement);
  const due = agedImages(facts, judgement);
  const aged = demand.isStorePaused ? new Set<ImageId>() : due;
  const isIdle = demand.targets.length === 0 && aged.size === 0;
  const isTriggered = demand.triggers.length > 0 || due.size > 0;
  const blocks = [
    ...judgement.blocks,
    ...demand.blocks,
    ...(isIdle ? demand.futile : []),
    ...(isIdle && isTriggered ? demand.paused : []),
  ];
  const pressure = {
    filesystems: snapshot.filesystems,
    limits: facts.limits.pressure,
    compat: limits.compat,
  };
  const plan = {
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    triggers: [...(due.size > 0 ? [AGE] : []), ...demand.triggers],
    targets: demand.targets,
    blocks,
    futility: demand.futility,
    usage: demand.disks.usage.map((usage) => ({
      ...usage,
      evictions: evictionMarks(usage.filesystem, pressure),
    })),
    accounting: limits.accounting,
    notes: notesOf(facts, demand, isIdle),
  };
  const choose = once(() => choiceOf({ facts, judgement, demand, aged, blocks }));
  if (isIdle)
    return {
      ...plan,
      candidates: [],
      // Computed when read: an agent may run for weeks without anybody asking.
      get kept() {
        return choose().kept;
      },
    };
  const { candidates, kept } = withLayers(choose(), facts, demand.targets);
  // If removals gave nothing back, one image is tried.
  const expecting =
    demand.tried.length > 0
      ? { compat: limits.compat, maxRemovals: 1 }
      : { compat: limits.compat, maxRemovals: null };
  return { ...plan, candidates: estimate(candidates, demand.targets, expecting), kept };
}

const AGE: ImageTrigger = { kind: "age" };

function withLayers(choice: Choice, facts: Facts, targets: readonly ImageTarget[]): Choice {
  const { snapshot, ledger, purpose } = facts;
  const limits = facts.limits.images;
  const isMeasured = limits.compat === "none" && limits.accounting === "measured";
  if (!isMeasured || choice.candidates.length === 0) return choice;
  const layers = {
    forest: forestOf(snapshot.images, ledger),
    gain: gainOf(ledger, snapshot.runtime),
  };
  return layersCount(limits, purpose)
    ? orderByLayers(choice, layers, distinctTriggers(targets))
    : { ...choice, candidates: withEstimates(choice.candidates, layers) };
}

function agedImages(facts: Facts, judgement: Judgement): ReadonlySet<ImageId> {
  const { limits, purpose } = facts;
  if (purpose.kind !== "periodic" || limits.images.maximumAge <= 0n) return new Set();
  const due = judgement
    .images()
    .filter(
      (subject) =>
        isPastMaximumAge(subject, facts) &&
        protectionOf(subject, judgement.context(), "age").reason === null,
    );
  return new Set(due.map(({ image }) => image.id));
}

/** Whether the image was unused for longer than the maximum age, which is above 0, whatever protects it. */
function isPastMaximumAge({ record }: Ranked, facts: Facts): boolean {
  const { limits, startedAt, agesFrom } = facts;
  const { maximumAge, compat } = limits.images;
  const { watched } = facts.ledger;
  if (compat === "none") return unusedFor(record, watched) > maximumAge;
  // The kubelet forgets with each start, so it judges no age before it has run for one maximum age itself.
  if (startedAt === null || watched - (agesFrom?.watched ?? 0n) <= maximumAge) return false;
  const { lastUsedWatched } = record;
  return lastUsedWatched === null || watchedSince(watched, lastUsedWatched) > maximumAge;
}

interface Choosing {
  readonly facts: Facts;
  readonly judgement: Judgement;
  readonly demand: RemovalDemand;
  readonly aged: ReadonlySet<ImageId>;
  readonly blocks: readonly ImageBlock[];
}

function choiceOf(choosing: Choosing): Choice {
  const context = choosing.judgement.context();
  const forAge: ImageCandidate[] = [];
  const others: ImageCandidate[] = [];
  const kept: KeptImage[] = [];
  for (const subject of choosing.judgement.images()) {
    const protection = protectionOf(subject, context);
    const triggers = triggersFor(choosing, subject, protection);
    // As it is recorded, even if not all of it counts.
    const { image } = subject;
    const record = choosing.facts.ledger.images.get(image.id) ?? subject.record;
    if (triggers.length === 0) {
      // A rule, or that there is no trigger; the deciding code is last in `tried`.
      const reason = protection.reason ?? unprotectedReason(choosing);
      const tried =
        protection.reason === null ? [...protection.tried, reason.kind] : protection.tried;
      kept.push({ ...subject, record, reason, tried });
      continue;
    }
    // An image that a rule keeps is removed only for its age, and was judged for that.
    const { tried } =
      protection.reason === null ? protection : protectionOf(subject, context, "age");
    const list = triggers.includes(AGE) ? forAge : others;
    list.push({
      ...subject,
      record,
      triggers,
      unusedFor: unusedFor(record, context.watched),
      expected: false,
      tried,
    });
  }
  return { candidates: [...forAge, ...others], kept };
}

/** The triggers for this image; empty: it is kept. */
function triggersFor(
  { facts, demand, aged, blocks }: Choosing,
  { image }: Ranked,
  { reason }: Protection,
): readonly ImageTrigger[] {
  const isBlocked = blocks.length > 0;
  // The kubelet's age pass comes before it looks at the disk.
  const isAgeBlocked =
    isBlocked &&
    (facts.limits.images.compat === "none" ||
      blocks.some(({ kind }) => kind !== "invalid-capacity"));
  const age = aged.has(image.id) && !isAgeBlocked ? [AGE] : [];
  return [...age, ...(isBlocked || reason !== null ? [] : distinctTriggers(demand.targets))];
}

function unprotectedReason({ demand, aged, blocks }: Choosing): ImageKeepReason {
  const [first] = blocks;
  // These take the targets away.
  const isOfDisk = blocks.some(({ kind }) =>
    ["invalid-capacity", "futile", "nothing-freed"].includes(kind),
  );
  const isTriggered = demand.targets.length > 0 || aged.size > 0 || isOfDisk;
  return first === undefined || !isTriggered
    ? { kind: "no-trigger" }
    : { kind: "blocked", block: first.kind };
}

function notesOf(facts: Facts, demand: RemovalDemand, isIdle: boolean): readonly PlanNote[] {
  const { purpose, startedAt } = facts;
  const limits = facts.limits.images;
  const { compat } = limits;
  const periodic = purpose.kind === "periodic";
  return [
    ...demand.disks.notes,
    // Otherwise they are blocks.
    ...(isIdle ? [] : demand.outOfReach.map((block) => ({ kind: "out-of-reach" as const, block }))),
    ...demand.tried.map((path) => ({ kind: "one-tried" as const, path })),
    ...(periodic && isSpaceOff(facts) ? [{ kind: "space-off" as const }] : []),
    ...(periodic && limits.maximumAge > 0n && startedAt === null && compat === "kubelet"
      ? [{ kind: "maximum-age-needs-agent" as const }]
      : []),
  ];
}

export interface EstimateLimits extends Pick<ImageLimits, "compat"> {
  /** `null`: no limit. */
  readonly maxRemovals: number | null;
}

/** Marks the candidates up to the estimated stop. The pass itself stops by measurement. */
export function estimate(
  candidates: readonly ImageCandidate[],
  targets: readonly ImageTarget[],
  limits: EstimateLimits,
): readonly ImageCandidate[] {
  let sum: Estimate = { bytes: 0n, images: 0 };
  // The kubelet does not count removals for age, and once triggered removes at least one image.
  const separate = limits.compat === "kubelet";
  const room = limits.maxRemovals ?? Infinity;
  return candidates.map((candidate, index) => {
    const forAge = candidate.triggers.some(({ kind }) => kind === "age");
    const first = separate && sum.images === 0;
    const expected =
      index < room && (forAge || first || !targets.every((target) => isMet(target, sum)));
    if (!(forAge && separate))
      sum = { bytes: sum.bytes + expectedBytes(candidate), images: sum.images + 1 };
    return { ...candidate, expected };
  });
}

interface Estimate {
  readonly bytes: bigint;
  readonly images: number;
}

function isMet(target: ImageTarget, sum: Estimate): boolean {
  switch (target.kind) {
    case "available-bytes":
    case "store-bytes":
      return sum.bytes >= target.wantedBytes;
    case "free-inodes":
      // No runtime reports how many inodes an image takes.
      return target.wantedInodes <= 0n;
    case "everything":
      return false;
  }
}
