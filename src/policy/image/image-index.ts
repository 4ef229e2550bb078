/** Finds the listed images that a reference matches: by ID, digest and tag, in every spelling. */
import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import { byObject, byParts } from "../by-object.ts";
import { imageNames } from "../keep/keep-pattern.ts";
import { parseReference } from "./reference.ts";

export interface ImageIndex {
  /** Images by their ID, tags and digests as listed. */
  readonly byText: ReadonlyMap<string, readonly ImageId[]>;
  /** By normal form, for names listed in another form. */
  readonly byNormalForm: ReadonlyMap<string, readonly ImageId[]>;
}

/** Computed once per list; an unchanged list is the same array. */
export const indexImages: (images: readonly Image[]) => ImageIndex = byObject((images) => {
  const byText = new Map<string, readonly ImageId[]>();
  const byNormalForm = new Map<string, readonly ImageId[]>();
  for (const image of images) {
    const own = [image.id];
    add(byText, image.id, own);
    for (const text of image.repoTags) add(byText, text, own);
    for (const text of image.repoDigests) add(byText, text, own);
    for (const form of otherForms(image)) add(byNormalForm, form, own);
  }
  // A bare digest may be the ID of one image and the digest of another; in doubt it names both.
  for (const { id } of images) {
    const others = byNormalForm.get(id) ?? byNormalForm.get(`sha256:${id}`);
    if (others !== undefined) add(byText, id, others);
  }
  return { byText, byNormalForm };
});

function add(ids: Map<string, readonly ImageId[]>, key: string, own: readonly ImageId[]): void {
  const before = ids.get(key);
  ids.set(key, before === undefined ? own : union(before, own));
}

/** Images with this reference; empty if none. A digest alone decides: the tag next to it may have moved. */
export function listedImages(index: ImageIndex, reference: string): readonly ImageId[] {
  // Runtimes mostly name an image as they list it, so only other spellings need parsing.
  const exact = index.byText.get(reference);
  if (exact !== undefined) return exact;
  const form = normalForm(reference);
  if (form === null) return [];
  return union(index.byNormalForm.get(form) ?? [], index.byText.get(form) ?? []);
}

function union(some: readonly ImageId[], others: readonly ImageId[]): readonly ImageId[] {
  const more = others.filter((id) => !some.includes(id));
  return more.length === 0 ? some : [...some, ...more];
}

/** One entry per ID: a list may have an image twice. Names are merged, and the last size counts. */
export const distinctImages = (images: readonly Image[], pin: "any" | "last"): readonly Image[] =>
  (pin === "any" ? withAnyPin : withLastPin)(images);

const withAnyPin = byObject((images: readonly Image[]) => mergedById(images, "any"));
const withLastPin = byObject((images: readonly Image[]) => mergedById(images, "last"));

function mergedById(images: readonly Image[], pin: "any" | "last"): readonly Image[] {
  const byId = new Map<ImageId, Image>();
  for (const image of images) {
    const before = byId.get(image.id);
    byId.set(image.id, before === undefined ? image : merged(before, image, pin));
  }
  return byId.size === images.length ? images : [...byId.values()];
}

/** Tags and digests, sorted, one per line, as in `ImageRecord.names`. */
export const namesText: (image: Image) => string = byObject((image) =>
  [...new Set([...image.repoTags, ...image.repoDigests])].toSorted().join("\n"),
);

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

/** Normal forms that are not listed as such. */
const otherForms = byObject((image: Image): readonly string[] => {
  const forms = new Set<string>();
  const { names, digests } = imageNames(image);
  // Also for names that are not valid, such as `<none>@sha256:…`.
  for (const { digest, text } of digests) if (digest !== text) forms.add(digest);
  for (const { text, repository, listedRepository, tag, digest } of names) {
    const isNormal = tag !== null && digest === null && repository === listedRepository;
    if (!isNormal && (digest === null || image.repoTags.includes(text)))
      forms.add(tagForm(repository, tag));
  }
  return forms.size === 0 ? NO_FORMS : [...forms];
});

const NO_FORMS: readonly string[] = [];

function normalForm(text: string): string | null {
  const reference = parseReference(text);
  if (reference === null || reference.kind === "digest") return reference?.digest ?? null;
  return reference.digest ?? tagForm(reference.repository, reference.tag);
}

const tagForm = (repository: string, tag: string | null): string =>
  `${repository}:${tag ?? "latest"}`;

/** The images of these records that a complete list lacks. */
export const unlistedImages = byParts(
  ({
    known,
    listed,
  }: {
    readonly known: ReadonlyMap<ImageId, unknown>;
    readonly listed: readonly Pick<Image, "id">[];
  }): readonly ImageId[] => {
    const there = new Set(listed.map(({ id }) => id));
    return [...known.keys()].filter((id) => !there.has(id));
  },
);
