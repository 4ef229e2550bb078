/** Disk usage of images, by decision, repository, namespace and layer family. */
import type { ImageShare, ImageUsage } from "../../model/disk-usage.ts";
import type { ChainId } from "../../model/ids.ts";
import type { Bounds, ImagePlan } from "../../model/plan.ts";
import type { ImageKeepReason } from "../../model/reason.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import type { Ranked } from "../image/rank.ts";
import { repositoryOfNames } from "../image/reference.ts";
import { nameOf } from "./layer-order.ts";
import type { LayerForest } from "./layers.ts";
import { NOTHING, plus } from "./path.ts";

/** `in-use`, the rule that keeps an image, or `removable`. */
type ImageState = ImageKeepReason["kind"] | "removable";

export interface ImageUsageFacts {
  readonly plan: Pick<ImagePlan, "candidates" | "kept">;
  readonly snapshot: Pick<Snapshot, "containers" | "sandboxes">;
  readonly forest: LayerForest;
  /** All that is in use on the filesystems with images: no group takes more. */
  readonly inUseBytes: bigint;
}

/** Groups every image of a plan; the groups of a view come largest first. */
export function imageUsage({ plan, snapshot, forest, inUseBytes }: ImageUsageFacts): ImageUsage {
  const subjects = subjectsOf(plan);
  const namespaces = namespacesOf(snapshot);
  const families = familyNames(subjects, forest);
  const by = (namesOf: (subject: Subject) => readonly (string | null)[]): readonly ImageShare[] =>
    grouped(subjects, namesOf).map(([name, group]) => shareOf(name, group, { forest, inUseBytes }));
  return {
    total: shareOf(null, subjects, { forest, inUseBytes }),
    byState: by(({ reason }) => [stateOf(reason)]).toSorted(bySize),
    byRepository: by((subject) => [repositoryOf(subject)]).toSorted(bySize),
    byNamespace: by(({ reason }) => namespaces(reason)).toSorted(bySize),
    byFamily: by(({ image }) => [families.get(forest.familyOf(image.id)) ?? null]).toSorted(bySize),
  };
}

export interface Subject extends Ranked {
  /** `null`: a candidate. */
  readonly reason: ImageKeepReason | null;
}

export const subjectsOf = ({ candidates, kept }: ImageUsageFacts["plan"]): readonly Subject[] => [
  ...candidates.map(({ image, record }) => ({ image, record, reason: null })),
  ...kept,
];

export const repositoryOf = ({ image }: Subject): string | null =>
  repositoryOfNames([...image.repoTags, ...image.repoDigests]);

/** Images that only a missing trigger, or a condition of the whole pass, keeps are removable. */
const REMOVABLE: readonly ImageKeepReason["kind"][] = ["no-trigger", "blocked", "changed"];

export const isRemovable = ({ reason }: Pick<Subject, "reason">): boolean =>
  reason === null || REMOVABLE.includes(reason.kind);

const stateOf = (reason: ImageKeepReason | null): ImageState =>
  reason === null || isRemovable({ reason }) ? "removable" : reason.kind;

export function grouped<Item, Name extends string>(
  items: readonly Item[],
  namesOf: (item: Item) => readonly (Name | null)[],
): readonly (readonly [Name | null, readonly Item[]])[] {
  const groups = new Map<Name | null, Item[]>();
  for (const item of items) {
    for (const name of namesOf(item)) {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [item]);
      else group.push(item);
    }
  }
  return [...groups];
}

export function shareOf(
  name: string | null,
  group: readonly Subject[],
  { forest, inUseBytes }: Pick<ImageUsageFacts, "forest" | "inUseBytes">,
): ImageShare {
  const within = (bounds: Bounds): Bounds => ({
    lowerBytes: smaller(bounds.lowerBytes, inUseBytes),
    estimateBytes: smaller(bounds.estimateBytes, inUseBytes),
    upperBytes: smaller(bounds.upperBytes, inUseBytes),
  });
  const removals = forest.removals();
  let unique = NOTHING;
  let reportedBytes = 0n;
  let lastUsedAt: Instant | null = null;
  for (const { image, record } of group) {
    unique = plus(unique, removals.remove(image.id) ?? unknownLayers(image));
    reportedBytes += image.sizeBytes;
    if (record.lastUsedAt !== null && (lastUsedAt === null || record.lastUsedAt > lastUsedAt))
      lastUsedAt = record.lastUsedAt;
  }
  const union = forest.union(group.map(({ image }) => image));
  // Where the estimates agree, so do the real sizes, however wide the bounds of both.
  const shares = union.estimateBytes > unique.estimateBytes;
  return {
    name,
    images: group.length,
    reportedBytes,
    unique: within(unique),
    shared: shares
      ? within({
          lowerBytes: atLeastZero(union.lowerBytes - unique.upperBytes),
          estimateBytes: union.estimateBytes - unique.estimateBytes,
          upperBytes: union.upperBytes - unique.lowerBytes,
        })
      : NOTHING,
    lastUsedAt,
  };
}

/** It may share everything, or nothing. */
const unknownLayers = ({ sizeBytes }: Image): Bounds => ({
  lowerBytes: 0n,
  estimateBytes: sizeBytes,
  upperBytes: sizeBytes,
});

/** A family is named by the image with the fewest layers: the base, if it is there. */
export function familyNames(
  subjects: readonly Subject[],
  forest: LayerForest,
): ReadonlyMap<ChainId | null, string> {
  const smallest = new Map<ChainId, { readonly layers: number; readonly image: Image }>();
  for (const { image } of subjects) {
    const family = forest.familyOf(image.id);
    const whole = forest.wholeChainOf(image.id);
    if (family === null || whole === null) continue;
    const { layers } = whole;
    const known = smallest.get(family);
    if (known === undefined || isBefore({ layers, image }, known))
      smallest.set(family, { layers, image });
  }
  return new Map([...smallest].map(([family, { image }]) => [family, nameOf(image)]));
}

const isBefore = (
  one: { readonly layers: number; readonly image: Image },
  other: { readonly layers: number; readonly image: Image },
): boolean =>
  one.layers < other.layers || (one.layers === other.layers && one.image.id < other.image.id);

/** The namespaces of the pods that use an image. */
function namespacesOf(
  snapshot: ImageUsageFacts["snapshot"],
): (reason: ImageKeepReason | null) => readonly (string | null)[] {
  const ofContainer = new Map(snapshot.containers.map((one) => [one.id, one.podNamespace]));
  const ofSandbox = new Map(snapshot.sandboxes.map((one) => [one.id, one.namespace]));
  const ofPod = new Map(snapshot.sandboxes.map((one) => [one.podUid, one.namespace]));
  return (reason) => {
    if (reason?.kind !== "in-use") return [null];
    const found = reason.users.map((user) => {
      switch (user.kind) {
        case "container":
        case "image-volume":
          return ofContainer.get(user.id);
        case "sandbox":
          return ofSandbox.get(user.id);
        case "pod-spec":
          return ofPod.get(user.uid);
        case "static-pod":
          return undefined;
      }
    });
    const named = new Set(found.flatMap((name) => name || []));
    return named.size === 0 ? [null] : [...named];
  };
}

const bySize = (one: ImageShare, other: ImageShare): number =>
  Number(other.unique.estimateBytes - one.unique.estimateBytes) ||
  Number(other.reportedBytes - one.reportedBytes) ||
  compareNames(one.name, other.name);

/** For distinct names of a view. */
const compareNames = (one: string | null, other: string | null): number =>
  one === null ? 1 : other === null ? -1 : one < other ? -1 : 1;
