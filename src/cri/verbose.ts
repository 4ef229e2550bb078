/** Finds image names and log directories in the JSON of verbose responses, whose shape every runtime invents for itself. */

type Info = Readonly<Record<string, string>>;

/** containerd 1.x and CRI-O name the sandbox image in "config"; containerd 2 and cri-dockerd name none. */
export function sandboxImagesOf(info: Info): readonly string[] {
  const found = new Set<string>();
  for (const text of Object.values(info))
    collect(parsed(text), { keys: sandboxImageKeys, found, depth: 0 });
  return [...found];
}

/**
 * `image` at the top level of a sandbox's "info" on containerd and CRI-O. CRI-O without pause containers omits it: the
 * name is then only in an annotation of the sandbox's runtime specification.
 */
export function imageOfSandbox(info: Info): string | null {
  const document = parsed(info["info"] ?? "");
  const names = [
    at(document, ["image"]),
    at(document, ["runtimeSpec", "annotations", "io.kubernetes.cri-o.ImageName"]),
  ];
  return names.find((name): name is string => typeof name === "string" && name !== "") ?? null;
}

/**
 * Where the containers of a sandbox log to: `config.log_directory` on containerd; on CRI-O the directory of the
 * sandbox's own log, from an annotation. "" if the runtime does not say.
 */
export function logDirectoryOfSandbox(info: Info): string {
  const document = parsed(info["info"] ?? "");
  const directory = at(document, ["config", "log_directory"]);
  if (typeof directory === "string" && directory !== "") return directory;
  const log = at(document, ["runtimeSpec", "annotations", "io.kubernetes.cri-o.LogPath"]);
  const slash = typeof log === "string" ? log.lastIndexOf("/") : -1;
  return typeof log === "string" && slash > 0 ? log.slice(0, slash) : "";
}

const at = (document: unknown, keys: readonly string[]): unknown =>
  keys.reduce((value, key) => (isRecord(value) ? value[key] : undefined), document);

const sandboxImageKeys: ReadonlySet<string> = new Set([
  "sandboximage",
  "pauseimage",
  "infraimage",
  "podinfracontainerimage",
]);

/** Deeper than any runtime's configuration. */
const depthMax = 12;

interface Search {
  /** Lower case, without separators. */
  readonly keys: ReadonlySet<string>;
  readonly found: Set<string>;
  readonly depth: number;
}

function collect(value: unknown, search: Search): void {
  if (typeof value !== "object" || value === null || search.depth > depthMax) return;
  for (const [key, inner] of Object.entries(value)) {
    const isNamed = search.keys.has(key.toLowerCase().replaceAll(/[_-]/g, ""));
    if (isNamed && typeof inner === "string" && inner !== "") search.found.add(inner);
    collect(inner, { ...search, depth: search.depth + 1 });
  }
}

/** Invalid JSON names nothing, and must not stop a pass. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
