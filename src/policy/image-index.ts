/** Finds the listed images that a reference means: by ID, digest and tag, in every spelling. */
import type { ImageId } from "../model/ids.ts";
import type { Image } from "../model/snapshot.ts";
import { parseReference, wholeDigest } from "./reference.ts";

export interface ImageIndex {
  readonly idsByKey: ReadonlyMap<string, ReadonlySet<ImageId>>;
}

export function indexImages(images: readonly Image[]): ImageIndex {
  const idsByKey = new Map<string, Set<ImageId>>();
  for (const image of images) {
    for (const key of keysOfImage(image)) {
      const ids = idsByKey.get(key) ?? new Set<ImageId>();
      idsByKey.set(key, ids.add(image.id));
    }
  }
  return { idsByKey };
}

/** Images that carry the reference; empty if none does. A digest decides before a tag, which may have moved. */
export function listedImages(index: ImageIndex, reference: string): ReadonlySet<ImageId> {
  for (const key of keysOfReference(reference)) {
    const ids = index.idsByKey.get(key);
    if (ids !== undefined) return ids;
  }
  return new Set();
}

/** One entry for each ID: a list may name an image twice. Names are united, the last size counts. */
export function distinctImages(images: readonly Image[], pin: "any" | "last"): readonly Image[] {
  const byId = new Map<ImageId, Image>();
  for (const image of images) {
    const before = byId.get(image.id);
    byId.set(image.id, before === undefined ? image : merged(before, image, pin));
  }
  return [...byId.values()];
}

/** Tags and digests, sorted, one a line: what `ImageRecord.names` holds. */
export const namesText = (image: Image): string =>
  [...new Set([...image.repoTags, ...image.repoDigests])].toSorted(byCodeUnit).join("\n");

function merged(before: Image, image: Image, pin: "any" | "last"): Image {
  return {
    id: image.id,
    repoTags: [...new Set([...before.repoTags, ...image.repoTags])],
    repoDigests: [...new Set([...before.repoDigests, ...image.repoDigests])],
    sizeBytes: image.sizeBytes,
    // The kubelet keeps the last entry's pin; where one of two says pinned, there is doubt, so it is.
    pinned: pin === "last" ? image.pinned : before.pinned || image.pinned,
  };
}

function keysOfImage(image: Image): readonly string[] {
  const keys = new Set<string>([image.id, ...image.repoTags, ...image.repoDigests]);
  const id = wholeDigest(image.id);
  if (id !== null) keys.add(digestKey(id));
  for (const text of image.repoDigests) {
    // Also of names that are none, such as `<none>@sha256:…`.
    const digest = wholeDigest(text.slice(text.indexOf("@") + 1));
    if (digest !== null) keys.add(digestKey(digest));
  }
  for (const text of image.repoTags) {
    const reference = parseReference(text);
    if (reference?.kind !== "name") continue;
    keys.add(tagKey(reference.repository, reference.tag));
    if (reference.digest !== null) keys.add(digestKey(reference.digest));
  }
  return [...keys];
}

/** The most exact first. */
function keysOfReference(text: string): readonly string[] {
  const reference = parseReference(text);
  if (reference === null) return [text];
  if (reference.kind === "digest") return [text, digestKey(reference.digest)];
  const keys = [text];
  if (reference.digest !== null) keys.push(digestKey(reference.digest));
  keys.push(tagKey(reference.repository, reference.tag));
  return keys;
}

const digestKey = (digest: string): string => `digest ${digest}`;
const tagKey = (repository: string, tag: string | null): string =>
  `tag ${repository}:${tag ?? "latest"}`;
const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
