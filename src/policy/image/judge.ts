/** Judges every image of a snapshot once: its users, its protection, and what blocks all removal. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { ImageCandidate, Selection } from "../../model/plan.ts";
import type { ImageKeepReason, RemovalBlock } from "../../model/reason.ts";
import type { Image, KeepProblem, Snapshot } from "../../model/snapshot.ts";
import { plus, uptimeSince } from "../../model/time.ts";
import { compared, once } from "../../model/values.ts";
import { startingPods } from "../creations.ts";
import type { Facts } from "../facts.ts";
import { compileKeepRules } from "../keep/keep.ts";
import { layersOf } from "../layers.ts";
import { newRecord } from "../remember.ts";
import { isByName, selectedImages } from "../selection.ts";
import { lacksRoom, roomsOf } from "../space.ts";
import { type ProtectionContext, protectionOf, sandboxNames } from "./protect.ts";
import { compareImages, type Ranked, repositoryPlaces } from "./rank.ts";
import { distinctImages, nameOf, namesText } from "./reference.ts";
import { type Usage, usageOf } from "./usage.ts";

/** Functions are computed when first called: mostly nothing has to be removed. */
export interface Judgement {
  /** Each listed image once, in the order of removal. */
  readonly images: () => readonly Ranked[];
  /** The same by ID, without the order, which takes longer than all else. */
  readonly byId: () => ReadonlyMap<ImageId, Ranked>;
  readonly usage: Usage;
  readonly context: () => ProtectionContext;
  /** Reasons other than the state of the disk for which no image may be removed. */
  readonly blocks: readonly RemovalBlock[];
}

/**
 * `without`: containers that the same plan removes first; images are judged as if they were removed. `selection`: of a
 * removal by hand.
 */
export function judgeImages(
  facts: Facts,
  without: ReadonlySet<ContainerId> = new Set(),
  selection: Selection | null = null,
): Judgement {
  const { snapshot, ledger } = facts;
  const limits = facts.limits.images;
  const usage = usageOf(snapshot, without);
  const keep = compileKeepRules(snapshot.keep.rules);
  const byId = once(() => {
    const distinct = distinctImages(snapshot.images, "any");
    return new Map(distinct.map((image) => [image.id, { image, record: recordOf(facts, image) }]));
  });
  const images = once(() => [...byId().values()].toSorted(compareImages(ledger.imageConfigs)));
  const context = once((): ProtectionContext => ({
    limits,
    users: usage.users,
    released: new Set(
      without.size === 0
        ? []
        : [...usageOf(snapshot).users.keys()].filter((id) => !usage.users.has(id)),
    ),
    keep,
    sandbox: sandboxNames(snapshot, limits.infraImages),
    places: once(() => repositoryPlaces(images())),
    selected: selection === null ? null : selectedImages([...byId().values()], selection, facts),
    totalUptime: ledger.totalUptime,
    ageRestartedUptime: ledger.ageRestartedUptime,
  }));
  const blocks = imageBlocks(facts, usage, [...snapshot.keep.problems, ...keep.problems]);
  return { images, byId, usage, context, blocks };
}

/** An image without a record is new. */
const recordOf = ({ snapshot, ledger }: Facts, image: Image): ImageRecord =>
  ledger.images.get(image.id) ?? newRecord(image, snapshot.clocks.wall, ledger.totalUptime);

/** Why a candidate is kept after all; `null`: it may be removed. `gone`: what the pass has removed since the lists. */
export type Recheck = (
  candidate: ImageCandidate,
  gone: ReadonlySet<ImageId>,
) => ImageKeepReason | null;

/**
 * Judges candidates again just before their removal: the node once, then each costs a lookup. `facts.snapshot` is the
 * plan's with fresh lists, image volumes and resolutions. Its clocks and `facts.ledger` stay those of the plan, so that
 * no image ages while the pass runs. A reason of kind `blocked` holds for every candidate on these facts.
 */
export function recheckImages(facts: Facts): Recheck {
  // A container that the plan removed first is no longer listed, so it selects no image of its namespace any more.
  const judgement = judgeImages(facts);
  const [block] = judgement.blocks;
  if (block !== undefined) return () => blockedBy(block);
  const context = judgement.context();
  const layers = once(() => layersOf(facts.snapshot.images, facts.ledger));
  return ({ image, triggers }, gone) => {
    const subject = judgement.byId().get(image.id);
    if (subject === undefined) return changed("it is no longer listed");
    if (namesText(subject.image) !== namesText(image))
      return changed("its tags or digests changed");
    const forAge = triggers[0]?.kind === "age";
    const { reason } = protectionOf(subject, context);
    if (reason !== null || forAge || isByName(facts.purpose)) return reason;
    // One that may go itself, such as a twin, does not count.
    const stays = (id: ImageId): boolean => {
      const other = judgement.byId().get(id);
      return !gone.has(id) && other !== undefined && protectionOf(other, context).reason !== null;
    };
    const sharer = layers().builtOn(image.id).find(stays);
    if (sharer === undefined) return null;
    const name = nameOf(judgement.byId().get(sharer)?.image ?? image);
    return { kind: "shares-all-layers", images: [{ id: sharer, name }] };
  };
}

export const changed = (what: string): ImageKeepReason => ({ kind: "changed", what });

/** Whether another loop saw the image missing, so that it is not the one that was planned. */
export function isRecreated(
  { image: { id } }: Pick<ImageCandidate, "image">,
  planned: Pick<Ledger, "images">,
  current: Pick<Ledger, "images">,
): boolean {
  const [then, now] = [planned.images.get(id), current.images.get(id)];
  return (
    now?.firstSeenUptime !== then?.firstSeenUptime ||
    now?.ageRestartedUptime !== then?.ageRestartedUptime
  );
}

/** Names what is wrong with the node's use or with the keep rules, for the record of the pass. */
export function blockedBy(block: RemovalBlock): ImageKeepReason {
  const faults =
    block.kind === "usage-unknown"
      ? block.unknown.map(({ subject, message }) => `${subject}: ${message}`)
      : block.kind === "keep-rules-invalid"
        ? block.problems.map(({ source, message }) => `${source}: ${message}`)
        : [];
  const detail = faults.length > 0 && { detail: faults.join("; ") };
  return { kind: "blocked", block: block.kind, ...detail };
}

/** The blocks of images, in the order in which they are reported; empty if images may be removed. */
const imageBlocks = (
  facts: Facts,
  { unknown }: Usage,
  problems: readonly KeepProblem[],
): readonly RemovalBlock[] => [
  ...standingBlocks(facts),
  ...(problems.length === 0 ? [] : [{ kind: "keep-rules-invalid" as const, problems }]),
  ...(unknown.length === 0 ? [] : [{ kind: "usage-unknown" as const, unknown }]),
  ...roomsOf(facts.snapshot)
    .filter(lacksRoom)
    .map(({ path }) => ({ kind: "no-room" as const, filesystem: path })),
  ...[startingBlock(facts.snapshot)].filter((block) => block !== null),
];

type StartingBlock = Extract<RemovalBlock, { readonly kind: "pod-starting" }>;

/** Pods that are starting; `null` too where their directories were not read. `awaited`: those for which a pass has waited. */
export function startingBlock(
  snapshot: Snapshot,
  awaited: ReadonlySet<string> = new Set(),
): StartingBlock | null {
  const { podDirectories, observedAt } = snapshot;
  if (podDirectories === undefined) return null;
  const pods = startingPods(snapshot, podDirectories, observedAt).filter(
    ({ uid }) => !awaited.has(uid),
  );
  const [remaining] = pods
    .map((pod) => pod.remaining)
    .toSorted((one, other) => compared(other, one));
  if (remaining === undefined) return null;
  return { kind: "pod-starting", pods, remaining, until: plus(observedAt, remaining) };
}

/** The blocks of both containers and images: a hold, and the grace period after a boot. */
export function standingBlocks({ hold, ledger }: Facts): readonly RemovalBlock[] {
  const held: readonly RemovalBlock[] =
    hold.kind === "none" ? [] : [{ kind: "on-hold", until: hold.until, reason: hold.reason }];
  const { graceUntil, graceReason, totalUptime } = ledger;
  if (graceUntil === null || totalUptime >= graceUntil) return held;
  const remaining = uptimeSince(graceUntil, totalUptime);
  return [...held, { kind: "boot-grace", because: graceReason ?? "boot", remaining }];
}
