/** The plan for images: triggers, candidates in order of removal, and why all others are kept. */

import type { ContainerId, ImageId } from "../../model/ids.ts";
import type {
  ImageCandidate,
  ImagePlan,
  ImageTarget,
  KeptImage,
  PlanNote,
} from "../../model/plan.ts";
import type { ImageBlock, ImageKeepReason, ImageTrigger } from "../../model/reason.ts";
import { once } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import type { Layers } from "../layers.ts";
import { layersOf } from "../origins.ts";
import { evictionMarks } from "../pressure/thresholds.ts";
import { isByName, selectionOf } from "../selection.ts";
import { watchesSpace } from "../space.ts";
import { distinctTriggers, type RemovalDemand, removalDemand } from "./demand.ts";
import { nameOf } from "./image-index.ts";
import { judgeImages, type Judgement } from "./judge.ts";
import { protectionOf } from "./protect.ts";
import { type Ranked, unusedFor } from "./rank.ts";

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
  const isTriggered = demand.triggers.length > 0 || due.size > 0;
  const blocks = [
    ...judgement.blocks,
    ...demand.disks.blocks,
    ...(isIdle && isTriggered ? demand.outOfReach : []),
  ];
  const pressure = { filesystems: snapshot.filesystems, limits: facts.limits.pressure };
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
        unusedFor(subject.record, facts.ledger.watched) > maximumAge &&
        protectionOf(subject, judgement.context()).reason === null,
    );
  return new Set(due.map(({ image }) => image.id));
}

interface Choosing {
  readonly facts: Facts;
  readonly judgement: Judgement;
  readonly demand: RemovalDemand;
  readonly aged: ReadonlySet<ImageId>;
  readonly blocks: readonly ImageBlock[];
}

interface Choice {
  readonly candidates: readonly ImageCandidate[];
  readonly kept: readonly KeptImage[];
}

/** Those for their age first, at any disk usage; both in the order of removal. */
function choiceOf(choosing: Choosing): Choice {
  const { facts, judgement, demand, aged, blocks } = choosing;
  const { snapshot, ledger, last } = facts;
  const context = judgement.context();
  const triggers = blocks.length > 0 ? [] : distinctTriggers(demand.targets);
  const layers = layersOf(snapshot.images, ledger);
  const forAge: Chosen[] = [];
  const others: Chosen[] = [];
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
    unusedFor: unusedFor(one.record, ledger.watched),
    estimateBytes: removals.remove(one.image.id) ?? one.image.sizeBytes,
  }));
  return {
    candidates: withExpected(candidates, demand.targets),
    kept: [...kept, ...sharing.kept],
  };
}

interface Chosen extends Ranked {
  readonly tried: readonly ImageKeepReason["kind"][];
}

/** What could not be removed goes last for a day. */
const lastLast = (images: readonly Ranked[], last: ReadonlySet<string>): readonly Ranked[] => [
  ...images.filter(({ image }) => !last.has(image.id)),
  ...images.filter(({ image }) => last.has(image.id)),
];

/** Images that stay have all layers of these, so their removal would free nothing. */
function withoutSharers(
  chosen: readonly Chosen[],
  { layers, staying }: { readonly layers: Layers; readonly staying: readonly Ranked["image"][] },
): { readonly free: readonly Chosen[]; readonly kept: readonly KeptImage[] } {
  const isCovered = layers.coveredBy(staying.map(({ id }) => id));
  const names = new Map(staying.map((image) => [image.id, nameOf(image)]));
  const free: Chosen[] = [];
  const kept: KeptImage[] = [];
  for (const one of chosen) {
    const { image, record } = one;
    const tried: Chosen["tried"] = layers.has(image.id)
      ? [...one.tried, "shares-all-layers"]
      : one.tried;
    if (!isCovered(image.id)) free.push({ ...one, tried });
    else {
      const those = layers.builtOn(image.id).filter((id) => names.has(id));
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
  const isPeriodic = facts.purpose.kind === "periodic";
  return [
    ...demand.disks.notes,
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
