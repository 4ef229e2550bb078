/** The plan for images: triggers, candidates in order of removal, and why all others are kept. */

import type { ContainerId, ImageId } from "../../model/ids.ts";
import type {
  Futility,
  ImageCandidate,
  ImagePlan,
  ImageTarget,
  JudgedImage,
  KeptImage,
  PlanNote,
} from "../../model/plan.ts";
import type { ImageKeepReason, ImageTrigger, RemovalBlock } from "../../model/reason.ts";
import { compared, once } from "../../model/values.ts";
import { breakdownOf } from "../disk.ts";
import type { Facts } from "../facts.ts";
import { type Layers, layersOf } from "../layers.ts";
import { evictionMarks } from "../pressure/thresholds.ts";
import { isByName, selectionOf } from "../selection.ts";
import {
  budgetTargets,
  type DiskJudgement,
  freeTargets,
  futilityOf,
  judgeDisks,
  watchesSpace,
} from "../space.ts";
import { judgeImages, type Judgement } from "./judge.ts";
import { protectionOf } from "./protect.ts";
import { type Ranked, unusedFor } from "./rank.ts";
import { distinctImages, nameOf } from "./reference.ts";

/** Containers that the same plan removes before images, which are judged as if these were already removed. */
export type GoneBefore = ReadonlySet<ContainerId>;

/** If `blocks` is not empty, `candidates` is empty and nothing is removed. */
export function decideImages(facts: Facts, before: GoneBefore): ImagePlan {
  const { snapshot, purpose } = facts;
  const judgement = judgeImages(facts, before, selectionOf(purpose));
  const demand = removalDemand(facts, judgement);
  const due = agedImages(facts, judgement);
  const aged = demand.isStorePaused ? new Set<ImageId>() : due;
  const isIdle = demand.targets.length === 0 && aged.size === 0;
  const { disks, triggers } = demand;
  // An invalid disk has no targets, but might have triggered.
  const isTriggered = triggers.length > 0 || due.size > 0 || disks.blocks.length > 0;
  const blocks = [
    ...judgement.blocks,
    ...disks.blocks,
    ...(isIdle && isTriggered ? demand.outOfReach : []),
  ];
  const pressure = { filesystems: snapshot.filesystems, limits: facts.limits.pressure };
  const plan = {
    purpose: purpose.kind,
    now: snapshot.clocks.wall,
    triggers: [...(due.size > 0 ? [AGE] : []), ...triggers],
    targets: demand.targets,
    blocks,
    futility: demand.futility,
    usage: disks.usage.map((usage) => ({
      ...usage,
      evictions: evictionMarks(usage.filesystem, pressure),
    })),
    notes: notesOf(facts, demand, isIdle),
  };
  const choose = once(() => choiceOf({ facts, judgement, demand, aged, isTriggered, blocks }));
  if (isIdle)
    return {
      ...plan,
      candidates: [],
      // Computed when read: an agent may run for weeks without anybody asking.
      get kept() {
        return choose().kept;
      },
    };
  return { ...plan, ...choose() };
}

const AGE: ImageTrigger = { kind: "age" };

function agedImages(facts: Facts, judgement: Judgement): ReadonlySet<ImageId> {
  const { limits, purpose } = facts;
  const { maximumAge } = limits.images;
  if (purpose.kind !== "periodic" || maximumAge <= 0n) return new Set();
  const due = judgement
    .images()
    .filter(
      (subject) =>
        unusedFor(subject.record, facts.ledger.totalUptime) > maximumAge &&
        protectionOf(subject, judgement.context()).reason === null,
    );
  return new Set(due.map(({ image }) => image.id));
}

interface Choosing {
  readonly facts: Facts;
  readonly judgement: Judgement;
  readonly demand: RemovalDemand;
  readonly aged: ReadonlySet<ImageId>;
  readonly isTriggered: boolean;
  readonly blocks: readonly RemovalBlock[];
}

/** Those for their age first, at any disk usage; both in the order of removal. */
function choiceOf(choosing: Choosing): Pick<ImagePlan, "candidates" | "kept"> {
  const { facts, judgement, demand, aged, blocks } = choosing;
  const { snapshot, ledger, last } = facts;
  const context = judgement.context();
  const triggers = blocks.length > 0 ? [] : distinctTriggers(demand.targets);
  const layers = layersOf(snapshot.images, ledger);
  const forAge: JudgedImage[] = [];
  const others: JudgedImage[] = [];
  const kept: KeptImage[] = [];
  for (const subject of lastLast(judgement.images(), last)) {
    const protection = protectionOf(subject, context);
    if (blocks.length === 0 && aged.has(subject.image.id)) {
      forAge.push({ ...subject, tried: protection.tried });
    } else if (protection.reason === null && triggers.length > 0) {
      others.push({ ...subject, tried: protection.tried });
    } else {
      const reason = protection.reason ?? unprotectedReason(choosing);
      const tried =
        protection.reason === null ? [...protection.tried, reason.kind] : protection.tried;
      kept.push({ ...subject, reason, tried });
    }
  }
  const sharing = isByName(facts.purpose)
    ? { free: others, kept: [] }
    : withoutSharers(others, { layers, staying: kept.map(({ image }) => image) });
  const ordered = [
    ...basesAfterTheirImages(forAge, layers).map((one) => ({ ...one, triggers: [AGE] })),
    ...basesAfterTheirImages(sharing.free, layers).map((one) => ({ ...one, triggers })),
  ];
  const removals = layers.removals();
  const candidates = ordered.map((one) => ({
    ...one,
    unusedFor: unusedFor(one.record, ledger.totalUptime),
    estimateBytes: removals.remove(one.image.id) ?? one.image.sizeBytes,
  }));
  return {
    candidates: withExpected(candidates, demand.targets),
    kept: [...kept, ...sharing.kept],
  };
}

/** What could not be removed goes last for a day. */
const lastLast = (images: readonly Ranked[], last: ReadonlySet<string>): readonly Ranked[] => [
  ...images.filter(({ image }) => !last.has(image.id)),
  ...images.filter(({ image }) => last.has(image.id)),
];

/** Images that stay have all layers of these, so their removal would free nothing. */
function withoutSharers(
  chosen: readonly JudgedImage[],
  { layers, staying }: { readonly layers: Layers; readonly staying: readonly Ranked["image"][] },
): { readonly free: readonly JudgedImage[]; readonly kept: readonly KeptImage[] } {
  const names = new Map(staying.map((image) => [image.id, nameOf(image)]));
  const free: JudgedImage[] = [];
  const kept: KeptImage[] = [];
  for (const one of chosen) {
    const { image, record } = one;
    const tried: JudgedImage["tried"] = layers.has(image.id)
      ? [...one.tried, "shares-all-layers"]
      : one.tried;
    const those = layers.builtOn(image.id).filter((id) => names.has(id));
    if (those.length === 0) free.push({ ...one, tried });
    else {
      const images = those.slice(0, NAMED_MAX).map((id) => ({ id, name: names.get(id) ?? id }));
      kept.push({ image, record, reason: { kind: "shares-all-layers", images }, tried });
    }
  }
  return { free, kept };
}

/** Maximum number of images named in a reason. */
const NAMED_MAX = 3;

/** A base directly after the last image built on it. */
function basesAfterTheirImages<Subject extends Ranked>(
  subjects: readonly Subject[],
  layers: Layers,
): readonly Subject[] {
  const places = layers.lastPlaces(subjects.map(({ image }) => image.id));
  const placed = subjects.map((subject) => ({
    subject,
    place: places.get(subject.image.id) ?? 0,
    depth: layers.depthOf(subject.image.id),
  }));
  return placed
    .toSorted((one, other) => one.place - other.place || other.depth - one.depth)
    .map(({ subject }) => subject);
}

const unprotectedReason = ({ isTriggered, blocks: [first] }: Choosing): ImageKeepReason =>
  first === undefined || !isTriggered
    ? { kind: "no-trigger" }
    : { kind: "blocked", block: first.kind };

function notesOf(facts: Facts, demand: RemovalDemand, isIdle: boolean): readonly PlanNote[] {
  const isPeriodic = facts.purpose.kind === "periodic";
  return [
    // Otherwise they are blocks.
    ...(isIdle ? [] : demand.outOfReach.map((block) => ({ kind: "out-of-reach" as const, block }))),
    ...(isPeriodic && !watchesSpace(facts.limits.images) ? [{ kind: "space-off" as const }] : []),
  ];
}

/** Marks the candidates up to the estimated stop. The pass itself stops by measurement. */
export function withExpected(
  candidates: readonly Omit<ImageCandidate, "expected">[],
  targets: readonly ImageTarget[],
): readonly ImageCandidate[] {
  let sum = 0n;
  return candidates.map((candidate) => {
    const forAge = candidate.triggers[0]?.kind === "age";
    const expected = forAge || targets.some((target) => !isMetBy(target, sum));
    if (expected) sum += candidate.estimateBytes;
    return { ...candidate, expected };
  });
}

/** No runtime reports how many inodes an image takes. */
const isMetBy = (target: ImageTarget, sum: bigint): boolean =>
  "wantedBytes" in target && sum >= target.wantedBytes;

// What the pass has to free: the targets of its purpose, without those that removing images cannot reach

type OutOfReach = Extract<RemovalBlock, { readonly kind: "futile" | "nothing-freed" }>;

interface RemovalDemand {
  readonly disks: DiskJudgement;
  /** Everything that is met, futile or not. */
  readonly triggers: readonly ImageTrigger[];
  /** What a pass frees down to. */
  readonly targets: readonly ImageTarget[];
  readonly futility: readonly Futility[];
  /** Why no image is removed for a disk that triggers. */
  readonly outOfReach: readonly OutOfReach[];
  /** Whether all disks that hold images are paused, so that no age or budget removes any. */
  readonly isStorePaused: boolean;
}

function removalDemand(facts: Facts, judgement: Judgement): RemovalDemand {
  const { snapshot, limits, paused } = facts;
  const disks = judgeDisks(snapshot, limits.images);
  const wanted = wantedTargets(facts, disks);
  const futility = futilityOfTargets(wanted, facts, judgement);
  const stores = snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
  const isStorePaused = stores.length > 0 && stores.every(({ device }) => paused.has(device));
  const isFutile = (target: ImageTarget): boolean => futility.get(target)?.futile === true;
  const targets = wanted.filter((target) => {
    if (!("device" in target)) return !isStorePaused;
    // The pressure on a disk ends with the last of its thresholds.
    const together = wanted.filter(
      (one) => "device" in one && one.device === target.device && isOfPressure(one),
    );
    return (
      !paused.has(target.device) && !(isOfPressure(target) ? together : [target]).some(isFutile)
    );
  });
  const pauses = stores.flatMap(({ device, path: filesystem }): readonly OutOfReach[] => {
    const remaining = paused.get(device);
    return remaining === undefined ? [] : [{ kind: "nothing-freed", filesystem, remaining }];
  });
  return {
    disks,
    triggers: distinctTriggers(wanted),
    targets,
    futility: [...futility.values()],
    outOfReach: [...futileBlocks([...futility.values()]), ...pauses],
    isStorePaused,
  };
}

/** One for each filesystem and unit, with the largest need. */
function futileBlocks(futility: readonly Futility[]): readonly OutOfReach[] {
  const needOf = (one: Futility): bigint => one.inodes?.needed ?? one.neededBytes;
  const smallestFirst = futility
    .filter(({ futile }) => futile)
    .toSorted((one, other) => compared(needOf(one), needOf(other)));
  const largest = new Map(
    smallestFirst.map((one) => [JSON.stringify([one.filesystem, "inodes" in one]), one]),
  );
  return Array.from(largest.values(), (one) => ({ kind: "futile", ...one }));
}

/** Each trigger once, in the order of the targets. */
export function distinctTriggers(targets: readonly ImageTarget[]): readonly ImageTrigger[] {
  const byText = new Map(
    targets.map(({ trigger }) => [
      trigger.kind === "pressure" ? trigger.signal : trigger.kind,
      trigger,
    ]),
  );
  return [...byText.values()];
}

function wantedTargets(facts: Facts, disks: DiskJudgement): readonly ImageTarget[] {
  const { snapshot, ledger, purpose, limits } = facts;
  if (purpose.kind === "all-unused")
    return [{ kind: "everything", trigger: { kind: "all-unused" } }];
  // A disk that has vanished since it was judged, for example by an unmount, triggers nothing.
  const ofPressure = facts.pressureTargets.filter(
    (target) =>
      !("device" in target) || snapshot.filesystems.some(({ device }) => device === target.device),
  );
  if (purpose.kind === "pressure") return ofPressure;
  const images = distinctImages(snapshot.images, "any");
  const size = (): bigint => layersOf(snapshot.images, ledger).sizeOf(images);
  const ofDisks = watchesSpace(limits.images) ? disks.targets : [];
  const ofRequest = freeTargets(snapshot, purpose.freeBytes ?? 0n);
  return [...ofRequest, ...ofDisks, ...budgetTargets(size, limits.images), ...ofPressure];
}

function futilityOfTargets(
  targets: readonly ImageTarget[],
  { snapshot, ledger }: Facts,
  { images, usage }: Judgement,
): ReadonlyMap<ImageTarget, Futility> {
  const judged = new Map<ImageTarget, Futility>();
  for (const target of targets) {
    if (!("device" in target)) continue;
    const filesystem = snapshot.filesystems.find(({ device }) => device === target.device);
    if (filesystem === undefined) continue;
    const unused = images().filter(({ image }) => !usage.users.has(image.id));
    const unusedBytes = unused.reduce((sum, { image }) => sum + image.sizeBytes, 0n);
    const layers = layersOf(snapshot.images, ledger);
    const breakdown = breakdownOf(filesystem, { ...snapshot, layers });
    judged.set(target, futilityOf(target, filesystem, { snapshot, unusedBytes, breakdown }));
  }
  return judged;
}

const isOfPressure = ({ trigger }: ImageTarget): boolean => trigger.kind === "pressure";
