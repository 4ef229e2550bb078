/**
 * Decides whether it is worth removing images: before a pass, and again after each removal. If even an upper bound is too
 * small to relieve a disk, none is removed.
 */
import type { ImageId } from "../../model/ids.ts";
import type { ImageItem } from "../../model/pass.ts";
import type { Futility, ImagePlan, ImageTarget } from "../../model/plan.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { Filesystem, Image, Snapshot } from "../../model/snapshot.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import { distinctImages } from "../image/image-index.ts";
import { usageOf } from "../image/usage.ts";
import { layersCount } from "../layer/layer-order.ts";
import type { LayerForest } from "../layer/layers.ts";
import { forestOf } from "../layer/origins.ts";
import {
  breakdownOf,
  BYTES_PER_REPORTED_BYTE,
  type DiskFacts,
  type ImageUse,
  imageUseOf,
  inUseOf,
  type KnownLayers,
} from "./disk.ts";
import { gainOf, rememberGain } from "./freed.ts";
import { type Progress, targetsMet } from "./targets.ts";

/** Inodes of an image besides its layers' files: blobs, directories, metadata, which `inodes_used` omits on containerd. */
const INODES_BESIDE_LAYERS = 32n;

/** A target on a filesystem, in bytes or in inodes. */
export type DiskTarget = Extract<ImageTarget, { readonly device: string }>;
type Unit = keyof ImageUse;
const unitOf = ({ kind }: DiskTarget): Unit => (kind === "available-bytes" ? "bytes" : "inodes");

const relievedOf = (target: DiskTarget): bigint =>
  target.kind === "available-bytes" ? target.relievedBytes : target.relievedInodes;

interface Bound {
  /** What the runtime reports for its images; `null`: no figure. */
  readonly used: bigint | null;
  /** For the unused images: their reported sizes added up, each known layer once; or their number. */
  readonly unused: bigint;
  /** The most that a thousand bytes of these take; `null`: their layers are unknown, or inodes are short. */
  readonly mostPerMille: bigint | null;
  /** All that is in use on the filesystem. */
  readonly inUse: bigint;
}

/** The most that removing every unused image could free; `null` for inodes that the runtime does not count. */
export function boundOf(unit: Unit, bound: Bound): bigint | null {
  const { used, unused, mostPerMille, inUse } = bound;
  if (unit === "inodes") return used === null ? null : used + INODES_BESIDE_LAYERS * unused;
  const byFigure = used === null ? BYTES_PER_REPORTED_BYTE * unused : used + unused;
  if (mostPerMille === null) return smaller(byFigure, inUse);
  const byLayers = (unused * mostPerMille) / 1000n;
  return smaller(used === null ? byLayers : smaller(byFigure, byLayers), inUse);
}

/** What is judged beside the target and its filesystem. */
export interface FutilityFacts extends DiskFacts {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
}

/** Judges one target before the pass begins; `null` if it cannot be judged. */
export function futilityOf(
  target: DiskTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility | null {
  const unit = unitOf(target);
  const images = facts.images.filter(({ id }) => !facts.users.has(id));
  const { inodesFree: free, inodes: capacity } = filesystem;
  const bound = boundOf(unit, {
    used: imageUseOf(filesystem, facts)[unit],
    unused:
      unit === "bytes"
        ? bytesAfter(images, facts.layers?.forest ?? null)([])
        : BigInt(images.length),
    mostPerMille: mostOf(images, facts.layers),
    inUse: inUseOf(filesystem),
  });
  if (bound === null) return null;
  const needed = atLeastZero(
    relievedOf(target) - (unit === "bytes" ? filesystem.availableBytes : free),
  );
  const inBytes = unit === "bytes";
  return {
    filesystem: filesystem.path,
    boundBytes: inBytes ? bound : 0n,
    neededBytes: inBytes ? needed : 0n,
    futile: bound < needed,
    ...(inBytes ? {} : { inodes: { bound, needed, free, capacity } }),
    breakdown: breakdownOf(filesystem, facts),
  };
}

/** The most that a thousand reported bytes of these images take; `null` if none of their layers is known. */
const mostOf = (images: readonly Image[], layers: KnownLayers | null): bigint | null =>
  layers !== null && images.some(({ id }) => layers.forest.has(id)) ? layers.mostPerMille : null;

/**
 * The most that removing images frees once some were removed, in reported sizes: each layer once, at the upper end of
 * its bounds, and none that another image has: layers of a used image remain, however many unused images have them too.
 * Cheap as long as the removals follow the order in which the images were given.
 */
function bytesAfter(
  images: readonly Image[],
  forest: LayerForest | null,
): (removed: readonly ImageId[]) => bigint {
  let order = images;
  let left = leftFrom(order, forest);
  return (removed) => {
    if (removed.some((id, at) => order[at]?.id !== id)) {
      const places = new Map(removed.map((id, at) => [id, at]));
      const place = ({ id }: Image): number => places.get(id) ?? removed.length;
      order = order.toSorted((one, other) => place(one) - place(other));
      left = leftFrom(order, forest);
    }
    return left[removed.length] ?? 0n;
  };
}

/** For each place in the order of removal, what is left from there on. */
function leftFrom(order: readonly Image[], forest: LayerForest | null): readonly bigint[] {
  const removals = forest?.removals();
  const frees = order.map(({ id, sizeBytes }) => removals?.remove(id)?.upperBytes ?? sizeBytes);
  let sum = 0n;
  return frees
    .toReversed()
    .map((bytes) => (sum += bytes))
    .toReversed();
}

/**
 * Whether the remaining candidates can still reach the targets: judged as the plan did, with what the pass removed and
 * learned since.
 */
export function targetReach(
  facts: Pick<Facts, "snapshot" | "ledger" | "purpose" | "limits">,
  { targets, candidates }: Pick<ImagePlan, "targets" | "candidates">,
): (progress: Progress, items: readonly ImageItem[]) => boolean {
  const { snapshot, purpose } = facts;
  const forest = layersCount(facts.limits.images, purpose)
    ? forestOf(snapshot.images, facts.ledger)
    : null;
  const unused = unusedInOrder(snapshot, candidates);
  const unusedBytes = bytesAfter(unused, forest);
  let learned = facts.ledger;
  let seen = 0;
  return (progress, items) => {
    learned = rememberGain(learned, { runtime: snapshot.runtime, items: items.slice(seen) });
    seen = items.length;
    const removed = items.flatMap(({ candidate, result }) =>
      result.kind === "removed" ? [candidate.image.id] : [],
    );
    const bytesLeft = unusedBytes(removed);
    const mostPerMille = gainOf(learned, snapshot.runtime).most;
    const canBeMet = (target: ImageTarget): boolean => {
      if (!("device" in target)) return true;
      const { device } = target;
      const filesystem = snapshot.filesystems.find((one) => one.device === device);
      if (filesystem === undefined) return true;
      const unit = unitOf(target);
      const disk = progress.disks.get(device);
      const { free, gained } = disk?.[unit] ?? { free: 0n, gained: 0n };
      const used = imageUseOf(filesystem, snapshot)[unit];
      const bound = boundOf(unit, {
        used: used === null ? null : atLeastZero(used - gained),
        unused: unit === "bytes" ? bytesLeft : BigInt(unused.length - removed.length),
        mostPerMille: mostOf(unused, forest === null ? null : { forest, mostPerMille }),
        inUse: filesystem.capacityBytes - (disk?.bytes.free ?? 0n),
      });
      return bound === null || free + bound >= relievedOf(target);
    };
    // A target that is met needs nothing more.
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    if (purpose.kind !== "pressure") return open.some(canBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(canBeMet));
  };
}

/** Candidates in the order of removal, then the other unused images. */
function unusedInOrder(snapshot: Snapshot, candidates: ImagePlan["candidates"]): readonly Image[] {
  const { users } = usageOf(snapshot);
  const due = new Set(candidates.map(({ image }) => image.id));
  const others = distinctImages(snapshot.images, "any").filter(
    ({ id }) => !users.has(id) && !due.has(id),
  );
  return [...candidates.map(({ image }) => image), ...others];
}

/** How many percent the bound or the disk has to change to count as another state. */
const TELLING_PERCENT = 2n;

/** Whether the state of a disk has changed enough to report it again; a rotated file does not count. */
export function futilityDiffers(before: Futility, after: Futility): boolean {
  if (before.inodes !== undefined && after.inodes !== undefined) {
    const { bound, free, capacity } = after.inodes;
    return (
      (bound > 0n && apart(before.inodes.bound, bound, capacity)) ||
      apart(before.inodes.free, free, capacity)
    );
  }
  const { capacityBytes, availableBytes } = after.breakdown;
  return (
    // A disk that images could not relieve before is not reported again once nothing is left to gain.
    (after.boundBytes > 0n && apart(before.boundBytes, after.boundBytes, capacityBytes)) ||
    apart(before.breakdown.availableBytes, availableBytes, capacityBytes)
  );
}

/** Whether two amounts differ by at least two percent of the capacity. */
export function apart(one: bigint, other: bigint, capacity: bigint): boolean {
  const distance = one > other ? one - other : other - one;
  return distance > 0n && 100n * distance >= TELLING_PERCENT * capacity;
}
