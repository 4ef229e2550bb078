/** The kubelet's names of log directories and links: the only place that writes or parses them. */

import { type PodUid, podUid } from "./ids.ts";

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
