/** Finds the listed images that a reference matches: by ID, digest and tag, in every spelling. */
import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";
import { imageNames } from "../keep/keep-pattern.ts";
import { parseReference, splitReference } from "./reference.ts";

export interface ImageIndex {
  /** Images by their ID, tags and digests as listed. */
  readonly byText: ReadonlyMap<string, readonly ImageId[]>;
  /** By normal form, for names listed in another form. */
  readonly byNormalForm: ReadonlyMap<string, readonly ImageId[]>;
  /** By the last component of their names. */
  readonly byEnd: ReadonlyMap<string, readonly Image[]>;
}

/** Computed once per list; an unchanged list is the same array. */
export const indexImages: (images: readonly Image[]) => ImageIndex = byObject((images) => {
  const byText = new Map<string, readonly ImageId[]>();
  const byNormalForm = new Map<string, readonly ImageId[]>();
  const byEnd = new Map<string, Image[]>();
  for (const image of images) {
    const { own, forms, ends } = namesForIndex(image);
    add(byText, image.id, own);
    for (const tag of image.repoTags) add(byText, tag, own);
    for (const digest of image.repoDigests) add(byText, digest, own);
    for (const form of forms) add(byNormalForm, form, own);
    for (const end of ends) {
      const those = byEnd.get(end);
      if (those === undefined) byEnd.set(end, [image]);
      else those.push(image);
    }
  }
  // A bare digest may be the ID of one image and the digest of another; in doubt it names both.
  for (const { id } of images) {
    const others = byNormalForm.get(id) ?? byNormalForm.get(`sha256:${id}`);
    if (others !== undefined) add(byText, id, others);
  }
  return { byText, byNormalForm, byEnd };
});

/** Of an image, which is the same object while the runtime lists it unchanged. */
const namesForIndex = byObject((image: Image) => {
  const names = [...image.repoTags, ...image.repoDigests];
  return {
    own: [image.id],
    forms: [...otherForms(image)],
    ends: [...new Set(names.map((text) => endOf(splitReference(text).name)))],
  };
});

function add(ids: Map<string, readonly ImageId[]>, key: string, own: readonly ImageId[]): void {
  const before = ids.get(key);
  ids.set(key, before === undefined ? own : union(before, own));
}

/** The display name of an image: its first tag, else its first digest, else its ID. */
export const nameOf = ({ id, repoTags, repoDigests }: Image): string =>
  repoTags.toSorted()[0] ?? repoDigests.toSorted()[0] ?? id;

/** Images with this reference; empty if none. A digest alone decides: the tag next to it may have moved. */
export function listedImages(index: ImageIndex, reference: string): readonly ImageId[] {
  // Runtimes mostly name an image as they list it, so only other spellings need parsing.
  const exact = index.byText.get(reference);
  if (exact !== undefined) return exact;
  const form = normalForm(reference);
  if (form === null) return [];
  return union(index.byNormalForm.get(form) ?? [], index.byText.get(form) ?? []);
}

/** Each once, in order. */
export const union = (some: readonly ImageId[], others: readonly ImageId[]): readonly ImageId[] => [
  ...new Set([...some, ...others]),
];

/** Normal forms that are not listed as such. */
function otherForms(image: Image): ReadonlySet<string> {
  const forms = new Set<string>();
  const { names, digests } = imageNames(image);
  // Also for names that are not valid, such as `<none>@sha256:…`.
  for (const { digest, text } of digests) if (digest !== text) forms.add(digest);
  for (const { text, repository, listedRepository, tag, digest } of names) {
    const isNormal = tag !== null && digest === null && repository === listedRepository;
    if (!isNormal && (digest === null || image.repoTags.includes(text)))
      forms.add(tagForm(repository, tag));
  }
  return forms;
}

function normalForm(text: string): string | null {
  const reference = parseReference(text);
  if (reference === null || reference.kind === "digest") return reference?.digest ?? null;
  return reference.digest ?? tagForm(reference.repository, reference.tag);
}

const tagForm = (repository: string, tag: string | null): string =>
  `${repository}:${tag ?? "latest"}`;

const endOf = (repository: string): string => repository.slice(repository.lastIndexOf("/") + 1);

export interface Doubt {
  /** The runtime could not say whether it has such an image; otherwise it has none with the full name. */
  readonly failed: boolean;
  /** The reference may be the beginning of an ID, because its author talked to the runtime directly. */
  readonly mayBeId: boolean;
}

/**
 * Images that a reference may match, if neither the list nor the runtime resolves it. Runtimes complete a short name in
 * their own way (CRI-O by aliases and search registries), so it may mean every image with its tag whose repository ends
 * with it; if the runtime could not say, with any tag.
 */
export function possibleImages(
  images: readonly Image[],
  text: string,
  { failed, mayBeId }: Doubt,
): ReadonlySet<ImageId> {
  const found = new Set<ImageId>();
  const reference = parseReference(text);
  const { name } = splitReference(text);
  // An image with this very name or digest would have been found in the list, unless the runtime could not say. But a
  // digest is looked up without its tag, which is all that an image from an archive has.
  if (reference?.kind === "name") {
    const isShort = reference.repository !== name;
    const tag = reference.tag ?? (reference.digest === null ? "latest" : undefined);
    for (const image of indexImages(images).byEnd.get(endOf(reference.repository)) ?? []) {
      const isPossible = imageNames(image).names.some(
        (listed) =>
          (listed.repository === reference.repository ||
            (isShort && listed.repository.endsWith(`/${name}`))) &&
          (failed || listed.tag === tag),
      );
      if (isPossible) found.add(image.id);
    }
  }
  const prefix = mayBeId ? /^(?:sha256:)?([0-9a-f]+)$/.exec(text)?.[1] : undefined;
  if (prefix === undefined) return found;
  for (const { id } of images) if (id.replace("sha256:", "").startsWith(prefix)) found.add(id);
  return found;
}

/** One entry per ID: a list may have an image twice. Names are merged, and the last size counts. */
export function distinctImages(images: readonly Image[], pin: "any" | "last"): readonly Image[] {
  const byId = new Map<ImageId, Image>();
  for (const image of images) {
    const before = byId.get(image.id);
    byId.set(image.id, before === undefined ? image : merged(before, image, pin));
  }
  return byId.size === images.length ? images : [...byId.values()];
}

function merged(before: Image, image: Image, pin: "any" | "last"): Image {
  return {
    id: image.id,
    repoTags: [...new Set([...before.repoTags, ...image.repoTags])],
    repoDigests: [...new Set([...before.repoDigests, ...image.repoDigests])],
    sizeBytes: image.sizeBytes,
    // The kubelet uses the last entry's pin; crigc, in doubt, counts an image as pinned if any entry says so.
    pinned: pin === "last" ? image.pinned : before.pinned || image.pinned,
  };
}

/** Tags and digests, sorted, one per line, as in `ImageRecord.names`. */
export const namesText: (image: Image) => string = byObject((image) =>
  [...new Set([...image.repoTags, ...image.repoDigests])].toSorted().join("\n"),
);
