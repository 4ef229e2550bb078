/** Disk usage of images, by decision, repository, namespace and layer family. */
import type { ChainId } from "../model/ids.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { ImageShare, ImageUsage } from "../model/reports.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { atLeastZero, compared, smaller } from "../model/values.ts";
import { nameOf } from "./image/image-index.ts";
import type { Ranked } from "./image/rank.ts";
import { repositoryOfNames } from "./image/reference.ts";
import type { Layers } from "./layers.ts";

export interface ImageUsageFacts {
  readonly plan: Pick<ImagePlan, "candidates" | "kept">;
  readonly snapshot: Pick<Snapshot, "containers" | "sandboxes">;
  readonly layers: Layers;
  /** All that is in use on the filesystems with images: no group takes more. */
  readonly inUseBytes: bigint;
}

/** Groups every image of a plan; the groups of a view come largest first. */
export function imageUsage(facts: ImageUsageFacts): ImageUsage {
  const subjects = subjectsOf(facts.plan);
  const namespaces = namespacesOf(facts.snapshot);
  const families = familyNames(subjects, facts.layers);
  const by = (namesOf: (subject: Subject) => readonly (string | null)[]): readonly ImageShare[] =>
    grouped(subjects, namesOf)
      .map(([name, group]) => shareOf(name, group, facts))
      .toSorted(bySize);
  return {
    total: shareOf(null, subjects, facts),
    byState: by((subject) => [isRemovable(subject) ? "removable" : subject.reason.kind]),
    byRepository: by((subject) => [repositoryOf(subject)]),
    byNamespace: by(({ reason }) => namespaces(reason)),
    byFamily: by(({ image }) => [families.get(familyOf(facts.layers, image)) ?? null]),
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
  { layers, inUseBytes }: Pick<ImageUsageFacts, "layers" | "inUseBytes">,
): ImageShare {
  const removals = layers.removals();
  let uniqueBytes = 0n;
  let reportedBytes = 0n;
  let lastUsedAt: Instant | null = null;
  for (const { image, record } of group) {
    uniqueBytes += removals.remove(image.id) ?? image.sizeBytes;
    reportedBytes += image.sizeBytes;
    if (record.lastUsedAt !== null && (lastUsedAt === null || record.lastUsedAt > lastUsedAt))
      lastUsedAt = record.lastUsedAt;
  }
  const allBytes = layers.sizeOf(group.map(({ image }) => image));
  return {
    name,
    images: group.length,
    removable: group.filter(isRemovable).length,
    reportedBytes,
    uniqueBytes: smaller(uniqueBytes, inUseBytes),
    sharedBytes: smaller(atLeastZero(allBytes - uniqueBytes), inUseBytes),
    lastUsedAt,
  };
}

/** A family is named by the image with the fewest layers: the base, if it is there. */
function familyNames(
  subjects: readonly Subject[],
  layers: Layers,
): ReadonlyMap<ChainId | null, string> {
  const layersOf = ({ id }: Image): number => layers.chainOf(id)?.layers ?? 0;
  const names = new Map<ChainId | null, string>();
  const images = subjects
    .map(({ image }) => image)
    .toSorted(
      (one, other) => layersOf(one) - layersOf(other) || compared<string>(one.id, other.id),
    );
  for (const image of images) {
    const family = familyOf(layers, image);
    if (family !== null && !names.has(family)) names.set(family, nameOf(image));
  }
  return names;
}

/** The first layer of an image; `null` if its layers are unknown. */
const familyOf = (layers: Layers, { id }: Image): ChainId | null =>
  layers.layersOf(id)[0]?.chain ?? null;

/** The namespaces of the pods that use an image. */
function namespacesOf({
  containers,
  sandboxes,
}: ImageUsageFacts["snapshot"]): (reason: ImageKeepReason) => readonly (string | null)[] {
  const namespaces = new Map<string, string>([
    ...sandboxes.map((one) => [one.podUid, one.namespace] as const),
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
  compared(other.uniqueBytes, one.uniqueBytes) ||
  compared(other.reportedBytes, one.reportedBytes) ||
  (one.name === null ? 1 : other.name === null ? -1 : compared(one.name, other.name));
