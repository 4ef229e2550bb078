/** The place of each tag in its repository, most recently used first. */
import type { ImageId } from "../../model/ids.ts";
import { type Ranked, unusedSince } from "./rank.ts";
import { parseReference } from "./reference.ts";

export interface RepositoryPlace {
  readonly repository: string;
  /** 1 is the most recent; tags that tie share the better place. */
  readonly place: number;
}

/**
 * The best place of each image. An image without a tag has none. A tag is as recent as the later of first seen and last
 * used.
 */
export function repositoryPlaces(images: readonly Ranked[]): ReadonlyMap<ImageId, RepositoryPlace> {
  const byRepository = new Map<string, { readonly id: ImageId; readonly at: bigint }[]>();
  for (const { image, record } of images) {
    const at = unusedSince(record);
    for (const text of new Set(image.repoTags)) {
      const reference = parseReference(text);
      if (reference?.kind !== "name" || reference.tag === null) continue;
      const tags = byRepository.get(reference.repository) ?? [];
      tags.push({ id: image.id, at });
      byRepository.set(reference.repository, tags);
    }
  }
  const best = new Map<ImageId, RepositoryPlace>();
  for (const [repository, tags] of byRepository) {
    tags.sort((a, b) => Number(b.at - a.at));
    let place = 1;
    for (const [index, { id, at }] of tags.entries()) {
      if (tags[index - 1]?.at !== at) place = index + 1;
      const before = best.get(id);
      if (before === undefined || isBetter({ repository, place }, before))
        best.set(id, { repository, place });
    }
  }
  return best;
}

/** Breaks ties by name, so that the reason does not depend on the order of a list. */
const isBetter = (a: RepositoryPlace, b: RepositoryPlace): boolean =>
  a.place < b.place || (a.place === b.place && a.repository < b.repository);
