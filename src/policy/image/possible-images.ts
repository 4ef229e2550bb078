/** Which listed images a reference may match, if neither the list nor the runtime resolves it. */
import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";
import { imageNames } from "../keep/keep-pattern.ts";
import { parseReference, splitReference } from "./reference.ts";

export interface Doubt {
  /** The runtime could not say whether it has such an image; otherwise it has none with the full name. */
  readonly failed: boolean;
  /** The reference may be the beginning of an ID, because its author talked to the runtime directly. */
  readonly mayBeId: boolean;
}

/**
 * Runtimes complete a short name in their own way (CRI-O by aliases and search registries), so it may mean every image
 * with its tag whose repository ends with it; if the runtime could not say, with any tag.
 */
export function possibleImages(
  images: readonly Image[],
  text: string,
  { failed, mayBeId }: Doubt,
): ReadonlySet<ImageId> {
  const found = new Set<ImageId>();
  const reference = parseReference(text);
  const { name } = splitReference(text);
  const isShort = reference?.kind === "name" && reference.repository !== name;
  // An image with this very name or digest would have been found in the list, unless the runtime could not say. But a
  // digest is looked up without its tag, which is all that an image from an archive has.
  if (reference?.kind === "name") {
    const near = imagesByEnd(images).get(endOf(reference.repository));
    for (const [id, listed] of near === undefined ? [] : namesOf(near)) {
      const { repository, tag } = listed;
      const ends =
        repository === reference.repository || (isShort && repository.endsWith(`/${name}`));
      const isSame = tag === (reference.tag ?? (reference.digest === null ? "latest" : undefined));
      if (ends && (failed || isSame)) found.add(id);
    }
  }
  const prefix = mayBeId ? /^(?:sha256:)?([0-9a-f]+)$/.exec(text)?.[1] : undefined;
  if (prefix === undefined) return found;
  for (const { id } of images) if (id.replace("sha256:", "").startsWith(prefix)) found.add(id);
  return found;
}

/** By the last component of a name, which is that of its repository too. */
const imagesByEnd = byObject((images: readonly Image[]) => {
  const byEnd = new Map<string, Image[]>();
  for (const image of images) {
    for (const end of new Set([...image.repoTags, ...image.repoDigests].map(endOfName))) {
      const those = byEnd.get(end);
      if (those === undefined) byEnd.set(end, [image]);
      else those.push(image);
    }
  }
  return byEnd;
});

/** Only of images that are asked for: read of a whole node, their names take half a kilobyte each. */
const namesOf = byObject((images: readonly Image[]) =>
  images.flatMap((image) => imageNames(image).names.map((name) => [image.id, name] as const)),
);

const endOfName = (text: string): string => endOf(splitReference(text).name);
const endOf = (repository: string): string => repository.slice(repository.lastIndexOf("/") + 1);
