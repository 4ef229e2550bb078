/** The plan for images: triggers, candidates in order of removal, and why all others are kept. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { Compat } from "../../model/limits.ts";
import type {
  DiskUsage,
  ImageCandidate,
  ImagePlan,
  KeptImage,
  PlanNote,
} from "../../model/plan.ts";
import type { ImageBlock, ImageKeepReason, ImageTrigger } from "../../model/reason.ts";
import { watchedSince } from "../../model/time.ts";
import { once } from "../by-object.ts";
import type { Facts } from "../facts.ts";
import { gainOf } from "../layer/gain.ts";
import {
  type Choice as LayerChoice,
  layersCount,
  orderByLayers,
  withEstimates,
} from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import { evictionMarks } from "../pressure/judge.ts";
import { selectionOf } from "../selection.ts";
import { watchesSpace } from "../space/targets.ts";
import { triedWith } from "../tried.ts";
import { type Asked, asked, distinctTriggers, futileBlocks } from "./ask.ts";
import { estimate } from "./estimate.ts";
import { judgeImages, type Judgement } from "./judge.ts";
import { protectionOf } from "./protect.ts";
import { type Ranked, unusedFor } from "./rank.ts";

/** What the same plan removes before images, which are judged as if it were already removed. */
export interface GoneBefore {
  readonly containers: ReadonlySet<ContainerId>;
  /** Number of containers, sandboxes and log directories. */
  readonly removals: number;
}

/**
 * If `blocks` is not empty, `candidates` is empty and nothing is removed, with one exception: with `compat: kubelet`
 * and an invalid capacity there are candidates for age, because the kubelet removes them before it measures the disk.
 */
export function decideImages(input: Facts, before: GoneBefore): ImagePlan {
  const limits = input.limits.images;
  const judgement = judgeImages(input, {
    without: before.containers,
    selection: selectionOf(input.purpose),
  });
  const asks = asked(input, judgement);
  const due = agedImages(input, judgement);
  const { paused, tried, isStorePaused } = asks.nothingFreed;
  const aged = isStorePaused ? new Set<ImageId>() : due;
  const idle = asks.targets.length === 0 && aged.size === 0;
  const isHeld = asks.triggers.length > 0 || due.size > 0;
  const blocks = [
    ...judgement.blocks,
    ...asks.blocks,
    ...(idle ? futileBlocks(asks.futility) : []),
    ...(idle && isHeld ? paused : []),
  ];
  const choice = { judgement, asks, aged, blocks, compat: limits.compat };
  const plan = {
    purpose: input.purpose.kind,
    now: input.snapshot.clocks.wall,
    triggers: [...(due.size > 0 ? [AGE] : []), ...asks.triggers],
    targets: asks.targets,
    blocks,
    futility: asks.futility,
    usage: asks.disks.usage.map((usage) => ({ ...usage, evictions: evictionsOf(usage, input) })),
    accounting: limits.accounting,
    notes: notesOf(input, asks),
  };
  if (idle) return keptWhenRead({ ...plan, candidates: [] }, () => choose(choice).kept);
  const chosen = choose(choice);
  const layers = () => ({
    forest: forestOf(input.snapshot.images, input.ledger),
    gain: gainOf(input.ledger, input.snapshot.runtime),
  });
  const isMeasured = limits.compat === "none" && limits.accounting === "measured";
  const { candidates, kept } =
    !isMeasured || chosen.candidates.length === 0
      ? chosen
      : layersCount(limits, input.purpose, asks.targets)
        ? orderByLayers(chosen, layers(), distinctTriggers(asks.targets))
        : { ...chosen, candidates: withEstimates(chosen.candidates, layers()) };
  const expecting =
    tried.length > 0
      ? { compat: limits.compat, maximumRemovals: 1 }
      : { ...limits, removedBefore: before.removals };
  return { ...plan, candidates: estimate(candidates, asks.targets, expecting), kept };
}

const evictionsOf = ({ filesystem }: DiskUsage, { snapshot, limits }: Facts) =>
  evictionMarks(filesystem, {
    filesystems: snapshot.filesystems,
    limits: limits.pressure,
    compat: limits.images.compat,
  });

/**
 * Without a trigger everything is kept, and the reasons are computed only when read: an agent may run for weeks without
 * anybody asking.
 */
function keptWhenRead(plan: Omit<ImagePlan, "kept">, make: () => readonly KeptImage[]): ImagePlan {
  const kept = once(make);
  return {
    ...plan,
    get kept() {
      return kept();
    },
  };
}

const AGE: ImageTrigger = { kind: "age" };

function agedImages(input: Facts, judgement: Judgement): ReadonlySet<ImageId> {
  const { limits, purpose } = input;
  if (purpose.kind !== "periodic" || limits.images.maximumAge <= 0n) return new Set();
  const due = judgement
    .images()
    .filter(
      (subject) =>
        isPastMaximumAge(subject, input) &&
        protectionOf(subject, judgement.context(), "age").reason === null,
    );
  return new Set(due.map(({ image }) => image.id));
}

/** Whether the image was unused for longer than the maximum age, which is above 0, whatever protects it. */
function isPastMaximumAge({ record }: Ranked, { limits, ledger, startedAt }: Facts): boolean {
  const { maximumAge, compat } = limits.images;
  const { watched } = ledger;
  if (compat === "none") return unusedFor(record, watched) > maximumAge;
  // The kubelet forgets with each start, so it judges no age before it has run for one maximum age itself. The memory of an
  // agent that forgets like it begins at 0.
  if (startedAt === null || watched <= maximumAge) return false;
  const { lastUsedWatched } = record;
  return lastUsedWatched === null || watchedSince(watched, lastUsedWatched) > maximumAge;
}

interface Choice {
  readonly judgement: Judgement;
  readonly asks: Asked;
  readonly aged: ReadonlySet<ImageId>;
  readonly blocks: readonly ImageBlock[];
  readonly compat: Compat;
}

function choose(choice: Choice): LayerChoice {
  const { images, context: contextOf } = choice.judgement;
  const context = contextOf();
  const forAge: ImageCandidate[] = [];
  const others: ImageCandidate[] = [];
  const kept: KeptImage[] = [];
  for (const subject of images()) {
    const protection = protectionOf(subject, context);
    const triggers = triggersFor(choice, subject, protection.reason);
    if (triggers.length === 0) {
      kept.push({ ...subject, ...keptBy(protection, choice) });
      continue;
    }
    const list = triggers.includes(AGE) ? forAge : others;
    list.push({
      ...subject,
      triggers,
      unusedFor: unusedFor(subject.record, context.watched),
      expected: false,
      // An image that a rule keeps is removed only for its age, and was judged for that.
      tried:
        protection.reason === null ? protection.tried : protectionOf(subject, context, "age").tried,
    });
  }
  return { candidates: [...forAge, ...others], kept };
}

/** A rule, or that there is no trigger; the deciding code is last in `tried`. */
function keptBy(
  { reason, tried }: ReturnType<typeof protectionOf>,
  choice: Choice,
): Pick<KeptImage, "reason" | "tried"> {
  if (reason !== null) return { reason, tried };
  const unprotected = unprotectedReason(choice);
  return { reason: unprotected, tried: triedWith(tried, unprotected.kind) };
}

/** The triggers for this image; empty: it is kept. */
function triggersFor(
  choice: Choice,
  { image }: Ranked,
  reason: ImageKeepReason | null,
): readonly ImageTrigger[] {
  const { asks, aged, blocks, compat } = choice;
  // The kubelet's age pass comes before it looks at the disk.
  const ageGoes =
    blocks.length === 0 ||
    (compat === "kubelet" && blocks.every(({ kind }) => kind === "invalid-capacity"));
  const age = ageGoes && aged.has(image.id) ? [AGE] : [];
  const other = blocks.length === 0 && reason === null ? distinctTriggers(asks.targets) : [];
  return [...age, ...other];
}

function unprotectedReason({ asks, aged, blocks }: Choice): ImageKeepReason {
  const [first] = blocks;
  const judged =
    first?.kind === "invalid-capacity" ||
    first?.kind === "futile" ||
    first?.kind === "nothing-freed";
  const asking = asks.targets.length > 0 || aged.size > 0 || judged;
  return first === undefined || !asking
    ? { kind: "no-trigger" }
    : { kind: "blocked", block: first.kind };
}

function notesOf(facts: Facts, asks: Asked): readonly PlanNote[] {
  const { purpose, startedAt } = facts;
  const limits = facts.limits.images;
  const { maximumRemovals, compat } = limits;
  const periodic = purpose.kind === "periodic";
  const kubelet = compat === "kubelet";
  return [
    ...asks.disks.notes,
    ...asks.nothingFreed.tried.map((path) => ({ kind: "one-tried" as const, path })),
    ...(maximumRemovals === null
      ? []
      : [{ kind: "removal-limit" as const, limit: maximumRemovals }]),
    ...(periodic && !kubelet && !watchesSpace(limits) ? [{ kind: "space-off" as const }] : []),
    ...(periodic && limits.maximumAge > 0n && startedAt === null
      ? [{ kind: "maximum-age-needs-agent" as const, waits: kubelet }]
      : []),
  ];
}
