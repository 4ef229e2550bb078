/** Disk usage of images as a tree: layer families, their repositories with unique bytes, and the bytes that these share. */
import type { FamilyUsage } from "../../model/disk-usage.ts";
import { atLeastZero } from "../../model/values.ts";
import {
  familyNames,
  grouped,
  type ImageUsageFacts,
  isRemovable,
  repositoryOf,
  shareOf,
  subjectsOf,
} from "./disk-usage.ts";

/** The largest family first, and in it the largest repository; families share nothing with each other. */
export function usageTree({
  plan,
  forest,
  inUseBytes,
}: Pick<ImageUsageFacts, "plan" | "forest" | "inUseBytes">): readonly FamilyUsage[] {
  const subjects = subjectsOf(plan);
  const names = familyNames(subjects, forest);
  return grouped(subjects, ({ image }) => [forest.familyOf(image.id)])
    .map(([family, members]): FamilyUsage => {
      const repositories = grouped(members, (subject) => [repositoryOf(subject)])
        .map(([name, images]) => ({
          name,
          images: images.length,
          removable: images.filter(isRemovable).length,
          uniqueBytes: shareOf(name, images, { forest, inUseBytes }).unique.estimateBytes,
        }))
        .toSorted((one, other) => Number(other.uniqueBytes - one.uniqueBytes));
      const bytes = shareOf(null, members, { forest, inUseBytes }).unique.estimateBytes;
      const unique = repositories.reduce((sum, { uniqueBytes }) => sum + uniqueBytes, 0n);
      return {
        name: names.get(family) ?? null,
        bytes,
        sharedBytes: atLeastZero(bytes - unique),
        repositories,
      };
    })
    .toSorted((one, other) => Number(other.bytes - one.bytes));
}
