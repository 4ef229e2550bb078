/** Normalises image references. Never takes a port in a registry name for a tag. */

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
export function repositoryOfNames(names: readonly string[]): string | null {
  const isDigest = (name: string): boolean => name.includes("@");
  const sorted = names.toSorted();
  for (const name of [...sorted.filter((it) => !isDigest(it)), ...sorted]) {
    const repository = repositoryOf(name);
    if (repository !== null) return repository;
  }
  return null;
}

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
