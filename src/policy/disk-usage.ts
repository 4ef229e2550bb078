/** Disk usage of images, by decision and repository. */
import type { ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { ImageShare, ImageUsage } from "../model/reports.ts";
import type { Instant } from "../model/time.ts";
import { atLeastZero, compared, smaller } from "../model/values.ts";
import type { Ranked } from "./image/rank.ts";
import { repositoryOfNames } from "./image/reference.ts";
import type { Layers } from "./layers.ts";

export interface ImageUsageFacts {
  readonly plan: Pick<ImagePlan, "candidates" | "kept">;
  readonly layers: Layers;
  /** All that is in use on the filesystems with images: no group takes more. */
  readonly inUseBytes: bigint;
}

/** Groups every image of a plan; the groups of a view come largest first. */
export function imageUsage(facts: ImageUsageFacts): ImageUsage {
  const subjects = subjectsOf(facts.plan);
  const by = (nameOf: (subject: Subject) => string | null): readonly ImageShare[] =>
    Array.from(Map.groupBy(subjects, nameOf), ([name, group]) =>
      shareOf(name, group, facts),
    ).toSorted(bySize);
  return {
    total: shareOf(null, subjects, facts),
    byState: by((subject) => (isRemovable(subject) ? "removable" : subject.reason.kind)),
    byRepository: by(repositoryOf),
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

function shareOf(
  name: string | null,
  group: readonly Subject[],
  { layers, inUseBytes }: Pick<ImageUsageFacts, "layers" | "inUseBytes">,
): ImageShare {
  const removals = layers.removals();
  let uniqueBytes = 0n;
  let reportedBytes = 0n;
  for (const { image } of group) {
    uniqueBytes += removals.remove(image.id) ?? image.sizeBytes;
    reportedBytes += image.sizeBytes;
  }
  const uses: readonly Instant[] = group.flatMap(({ record }) => record.lastUsedAt ?? []);
  const allBytes = layers.sizeOf(group.map(({ image }) => image));
  return {
    name,
    images: group.length,
    removable: group.filter(isRemovable).length,
    reportedBytes,
    uniqueBytes: smaller(uniqueBytes, inUseBytes),
    sharedBytes: smaller(atLeastZero(allBytes - uniqueBytes), inUseBytes),
    lastUsedAt: uses.toSorted(compared).at(-1) ?? null,
  };
}

/** Names of a view are distinct; the group without a name comes last. */
const bySize = (one: ImageShare, other: ImageShare): number =>
  compared(other.uniqueBytes, one.uniqueBytes) ||
  compared(other.reportedBytes, one.reportedBytes) ||
  Number(one.name === null) - Number(other.name === null) ||
  compared(one.name ?? "", other.name ?? "");
