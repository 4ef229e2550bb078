/** Disk usage of images, by decision, repository, namespace and layer family. */
import type { ChainId } from "../../model/ids.ts";
import type { Bounds, ImagePlan } from "../../model/plan.ts";
import type { ImageKeepReason } from "../../model/reason.ts";
import type { ImageShare, ImageUsage } from "../../model/reports.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { atLeastZero, compared, smaller } from "../../model/values.ts";
import type { Ranked } from "../image/rank.ts";
import { repositoryOfNames } from "../image/reference.ts";
import { nameOf } from "./layer-order.ts";
import { type LayerForest, NOTHING, plus } from "./layers.ts";

export interface ImageUsageFacts {
  readonly plan: Pick<ImagePlan, "candidates" | "kept">;
  readonly snapshot: Pick<Snapshot, "containers" | "sandboxes">;
  readonly forest: LayerForest;
  /** All that is in use on the filesystems with images: no group takes more. */
  readonly inUseBytes: bigint;
}

/** Groups every image of a plan; the groups of a view come largest first. */
export function imageUsage(facts: ImageUsageFacts): ImageUsage {
  const subjects = subjectsOf(facts.plan);
  const namespaces = namespacesOf(facts.snapshot);
  const families = familyNames(subjects, facts.forest);
  const by = (namesOf: (subject: Subject) => readonly (string | null)[]): readonly ImageShare[] =>
    grouped(subjects, namesOf)
      .map(([name, group]) => shareOf(name, group, facts))
      .toSorted(bySize);
  return {
    total: shareOf(null, subjects, facts),
    byState: by((subject) => [isRemovable(subject) ? "removable" : subject.reason.kind]),
    byRepository: by((subject) => [repositoryOf(subject)]),
    byNamespace: by(({ reason }) => namespaces(reason)),
    byFamily: by(({ image }) => [families.get(facts.forest.familyOf(image.id)) ?? null]),
  };
}

interface Subject extends Ranked {
  readonly reason: ImageKeepReason;
}

const subjectsOf = ({ candidates, kept }: ImageUsageFacts["plan"]): readonly Subject[] => [
  ...candidates.map((one) => ({ ...one, reason: { kind: "no-trigger" as const } })),
  ...kept,
];

const repositoryOf = ({ image }: Subject): string | null =>
  repositoryOfNames([...image.repoTags, ...image.repoDigests]);

/** Images that only a missing trigger, or a condition of the whole pass, keeps are removable. */
const isRemovable = ({ reason: { kind } }: Subject): boolean =>
  kind === "no-trigger" || kind === "blocked" || kind === "changed";

function grouped<Item, Name extends string>(
  items: readonly Item[],
  namesOf: (item: Item) => readonly (Name | null)[],
): readonly (readonly [Name | null, readonly Item[]])[] {
  const named = items.flatMap((item) => namesOf(item).map((name) => ({ name, item })));
  return Array.from(
    Map.groupBy(named, ({ name }) => name),
    ([name, group]) => [name, group.map(({ item }) => item)] as const,
  );
}

function shareOf(
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
    removable: group.filter(isRemovable).length,
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
function familyNames(
  subjects: readonly Subject[],
  forest: LayerForest,
): ReadonlyMap<ChainId | null, string> {
  const layersOf = ({ id }: Image): number => forest.wholeChainOf(id)?.layers ?? 0;
  const names = new Map<ChainId | null, string>();
  const images = subjects
    .map(({ image }) => image)
    .toSorted(
      (one, other) => layersOf(one) - layersOf(other) || compared<string>(one.id, other.id),
    );
  for (const image of images) {
    const family = forest.familyOf(image.id);
    if (family !== null && !names.has(family)) names.set(family, nameOf(image));
  }
  return names;
}

/** The namespaces of the pods that use an image. */
function namespacesOf({
  containers,
  sandboxes,
}: ImageUsageFacts["snapshot"]): (reason: ImageKeepReason) => readonly (string | null)[] {
  const namespaces = new Map<string, string>([
    ...sandboxes.map((one) => [one.podUid, one.namespace] as const),
    ...sandboxes.map((one) => [one.id, one.namespace] as const),
    ...containers.map((one) => [one.id, one.podNamespace] as const),
  ]);
  return (reason) => {
    const users = reason.kind === "in-use" ? reason.users : [];
    const found = users.flatMap(
      (user) => namespaces.get(user.kind === "pod-spec" ? user.uid : user.id) || [],
    );
    return found.length === 0 ? [null] : [...new Set(found)];
  };
}

/** Names of a view are distinct; the group without a name comes last. */
const bySize = (one: ImageShare, other: ImageShare): number =>
  compared(other.unique.estimateBytes, one.unique.estimateBytes) ||
  compared(other.reportedBytes, one.reportedBytes) ||
  (one.name === null ? 1 : other.name === null ? -1 : compared(one.name, other.name));
