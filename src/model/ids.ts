/** Identifiers as the runtime spells them; the only place where a plain string becomes one. And the names of logs made of them. */

declare const brand: unique symbol;

/** `T`, distinct from every other use of the same primitive by `Name`. Costs nothing at run time. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** `Image.id` in full (usually `sha256:` and 64 hex digits; never shortened, never parsed). */
export type ImageId = Brand<string, "ImageId">;
/** `Container.id` in full. */
export type ContainerId = Brand<string, "ContainerId">;
/** `PodSandbox.id` in full. */
export type SandboxId = Brand<string, "SandboxId">;
/** A pod's UID, from label `io.kubernetes.pod.uid`; "" if Kubernetes did not create the pod. */
export type PodUid = Brand<string, "PodUid">;
/** A sandbox and the name of a container in it: `SANDBOX/NAME`. */
/** One pass of the collector, for logs, history and reports: `YYYYMMDDTHHMMSSZ-xxxxxx`. */
export type PassId = Brand<string, "PassId">;

/**
 * A layer chain, identified by its last layer: the diff ID of the first layer, then `sha256("CHAIN DIFF")` for each
 * further one; `sha256:` and 64 hex digits.
 */
export type ChainId = Brand<string, "ChainId">;

export const imageId = (text: string): ImageId => text as ImageId;
export const containerId = (text: string): ContainerId => text as ContainerId;
export const sandboxId = (text: string): SandboxId => text as SandboxId;
export const podUid = (text: string): PodUid => text as PodUid;
export const chainId = (text: string): ChainId => text as ChainId;
export const passId = (text: string): PassId => text as PassId;

/** Begins the ID that stands for the boot within one process. */
export const PROCESS_BOOT = "process:";
export const isBootId = (id: string): boolean => id !== "" && !id.startsWith(PROCESS_BOOT);

/** A file name has at most 255 bytes; the part before `.log` is cut to fit. */
const STEM_MAX_BYTES = 251;
const SUFFIX = ".log";
/** Shorter text after the last dash is not a container ID, not even a truncated one. */
const ID_MIN_LENGTH = 6;

// Namespaces and pod names have no underscore, so the three parts are unambiguous.
const podDirectory =
  /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?_[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?_([A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)$/;

/** The UID in `NAMESPACE_NAME_UID`; `null` for any other name. */
export function podUidOfLogDirectory(entry: string): PodUid | null {
  const uid = podDirectory.exec(entry)?.[1];
  return uid === undefined ? null : podUid(uid);
}

/** The name itself as a UID, as old kubelets named log directories; `null` for names that cannot be one (`lost+found`). */
export function podUidOfOldLogDirectory(entry: string): PodUid | null {
  return /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$/.test(entry) ? podUid(entry) : null;
}

/** The link to a container's log in the legacy directory: `POD_NAMESPACE_CONTAINER-ID.log`, cut to 255 bytes. */
export function containerLogLink(container: {
  readonly podName: string;
  readonly podNamespace: string;
  readonly name: string;
  readonly id: string;
}): string {
  const stem = `${container.podName}_${container.podNamespace}_${container.name}-${container.id}`;
  return `${cutToBytes(stem, STEM_MAX_BYTES)}${SUFFIX}`;
}

/**
 * The part after the last dash of a link's name: an ID, or its beginning if the name was truncated; `null` for other
 * names.
 */
export function containerIdOfLogLink(entry: string): string | null {
  const dash = entry.lastIndexOf("-");
  if (dash < 0 || !entry.endsWith(SUFFIX)) return null;
  const id = entry.slice(dash + 1, -SUFFIX.length);
  return id.length < ID_MIN_LENGTH ? null : id;
}

/**
 * Whether the text is a full ID as runtimes create them: 64 hex digits. A shorter one may be truncated, or another
 * program's.
 */
export const isWholeContainerId = (text: string): boolean => /^[0-9a-f]{64}$/.test(text);

/** In UTF-8, without cutting a character. */
function cutToBytes(text: string, bytesMax: number): string {
  let bytes = 0;
  let cut = "";
  for (const character of text) {
    bytes += utf8Bytes(character.codePointAt(0) ?? 0);
    if (bytes > bytesMax) return cut;
    cut += character;
  }
  return cut;
}

function utf8Bytes(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
