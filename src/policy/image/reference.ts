/** Image references: parses and normalises them, and finds the listed images that one matches. Never takes a port for a tag. */

import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";

/** A name with its tag or digest, or a digest alone (which may also be an image ID). */
export type Reference =
  | { readonly kind: "digest"; readonly digest: string }
  | {
      readonly kind: "name";
      /** Normalised: `docker.io/library/nginx`. */
      readonly repository: string;
      readonly tag: string | null;
      readonly digest: string | null;
    };

/** Parses a reference; `null` if the text is not one. Adds neither tag nor digest: `nginx` has `tag: null`. */
export function parseReference(text: string): Reference | null {
  const bare = text.replace(/^docker(?:-pullable)?:\/\//, "");
  const alone = wholeDigest(bare);
  if (alone !== null) return { kind: "digest", digest: alone };
  const { name, tag, digest } = splitReference(bare);
  if (!isRepository(name)) return null;
  if (tag !== null && !/^\w[\w.-]{0,127}$/.test(tag)) return null;
  const whole = wholeDigest(digest ?? "");
  if (digest !== null && whole === null) return null;
  return { kind: "name", repository: normaliseRepository(name), tag, digest: whole };
}

/**
 * The form in which to ask a runtime for a reference; `null` if the text is not one: the full name, or a full digest as
 * spelled. A runtime would also take `a` for the beginning of an ID, and answer with another image, or fail if two
 * match.
 */
export function fullReference(text: string): string | null {
  const reference = parseReference(text);
  if (reference === null) return null;
  if (reference.kind === "digest") return text;
  const { repository, tag, digest } = reference;
  return digest === null ? `${repository}:${tag ?? "latest"}` : `${repository}@${digest}`;
}

/** The digest in an ID or digest, with its algorithm (CRI-O omits `sha256:` in IDs); `null` if it is none. */
export function wholeDigest(text: string): string | null {
  if (/^[0-9a-f]{64}$/.test(text)) return `sha256:${text}`;
  return /^(?:sha256:[0-9a-fA-F]{64}|sha384:[0-9a-fA-F]{96}|sha512:[0-9a-fA-F]{128})$/.test(text)
    ? text.toLowerCase()
    : null;
}

export interface ReferenceParts {
  readonly name: string;
  readonly tag: string | null;
  readonly digest: string | null;
}

/** Splits at the `@`, and at the last colon if it follows the last slash: any other one is a port. */
export function splitReference(text: string): ReferenceParts {
  const at = text.indexOf("@");
  const head = at < 0 ? text : text.slice(0, at);
  const digest = at < 0 ? null : text.slice(at + 1);
  const colon = head.lastIndexOf(":");
  if (colon <= head.lastIndexOf("/") || head.endsWith("]"))
    return { name: head, tag: null, digest };
  return { name: head.slice(0, colon), tag: head.slice(colon + 1), digest };
}

/** Completes short names: `nginx` is `docker.io/library/nginx`, `grafana/loki` is `docker.io/grafana/loki`. */
export function normaliseRepository(name: string): string {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(0, slash));
  const named = isRegistry(first);
  const registry = !named || first === "index.docker.io" ? "docker.io" : first;
  const path = named ? name.slice(slash + 1) : name;
  // In a pattern, `**` may stand for a path with its own organisation.
  const official = registry === "docker.io" && !path.includes("/") && !path.includes("**");
  return registry === first && !official
    ? name
    : `${registry}/${official ? "library/" : ""}${path}`;
}

/** The normalised repository of a tag or digest name; `null` for IDs and for what is not a reference (`<none>:<none>`). */
export function repositoryOf(text: string): string | null {
  const reference = parseReference(text);
  return reference?.kind === "name" ? reference.repository : null;
}

/** The repository of an image's first tag, else of its first digest; `null` if it has neither. */
export const repositoryOfImage = ({ repoTags, repoDigests }: Image): string | null =>
  [...repoTags.toSorted(), ...repoDigests.toSorted()]
    .map(repositoryOf)
    .find((repository) => repository !== null) ?? null;

/** Whether a repository is the name that containerd invents for an image imported with digests: `import-2026-01-31`. */
export const isImportName = (repository: string): boolean =>
  /(?:^|\/)import-\d{4}-\d\d-\d\d$/.test(repository);

function isRegistry(component: string): boolean {
  return (
    /[.:[]/.test(component) || component === "localhost" || component !== component.toLowerCase()
  );
}

/** One component, or several of which the first may have a port. */
const isRepository = (name: string): boolean =>
  name.length <= 512 &&
  /^(?:[\w.-]+|(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d+)?(?:\/[\w.-]+)+)$/.test(name);

/** An image's names, parsed once for all patterns. */
export interface ImageNames {
  readonly names: readonly ImageName[];
  /** The ID, if it is a digest, and the repository digests. */
  readonly digests: readonly { readonly digest: string; readonly text: string }[];
}

export interface ImageName {
  /** As the runtime lists it. */
  readonly text: string;
  readonly repository: string;
  /** Not normalised: runtimes in front of Docker list short names, which a leading wildcard may match. */
  readonly listedRepository: string;
  readonly tag: string | null;
  readonly digest: string | null;
}

export function imageNames(image: Image): ImageNames {
  const names: ImageName[] = [];
  const id = wholeDigest(image.id);
  const digests = id === null ? [] : [{ digest: id, text: image.id as string }];
  for (const text of [...image.repoTags, ...image.repoDigests]) {
    const digest = wholeDigest(text.slice(text.indexOf("@") + 1));
    if (digest !== null) digests.push({ digest, text });
    const reference = parseReference(text);
    if (reference?.kind !== "name") continue;
    const { repository, tag } = reference;
    names.push({ text, repository, listedRepository: splitReference(text).name, tag, digest });
  }
  return { names, digests };
}

// Finds the listed images that a reference matches: by ID, digest and tag, in every spelling

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

/**
 * Images that a reference may match, if neither the list nor the runtime resolves it. Runtimes complete a short name in
 * their own way (CRI-O by aliases and search registries), so it may mean every image with its tag whose repository ends
 * with it; if the runtime could not say (`failed`), with any tag. `mayBeId`: it may be the beginning of an ID, because its
 * author talked to the runtime directly.
 */
export function possibleImages(
  images: readonly Image[],
  text: string,
  { failed, mayBeId }: { readonly failed: boolean; readonly mayBeId: boolean },
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
