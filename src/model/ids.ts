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

/** What tells one container log from another. */
export interface ContainerLog {
  readonly podUid: PodUid;
  readonly name: string;
  readonly attempt: number;
}

export const isSameLog = (one: ContainerLog, other: ContainerLog): boolean =>
  one.attempt === other.attempt && one.name === other.name && one.podUid === other.podUid;

const containerName = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

/** Directory, subdirectory and file of a container's log below the pod log directory; `null` if Kubernetes gives no such names. */
export function logPathOf(
  container: ContainerLog & { readonly podNamespace: string; readonly podName: string },
): readonly [string, string, string] | null {
  const { podNamespace, podName, podUid: uid, name, attempt } = container;
  const entry = `${podNamespace}_${podName}_${uid}`;
  const isOfPod = uid !== "" && podUidOfLogDirectory(entry) === uid && containerName.test(name);
  return isOfPod ? [entry, name, `${attempt}.log`] : null;
}

/** The container whose log has this path below the pod log directory; `null` for any other path. */
export function containerOfLogPath(parts: readonly string[]): ContainerLog | null {
  const [entry = "", name = "", file = ""] = parts;
  const uid = podUidOfLogDirectory(entry);
  const attempt = /^(0|[1-9]\d{0,9})\.log$/.exec(file)?.[1];
  if (parts.length !== 3 || uid === null || attempt === undefined) return null;
  return containerName.test(name) ? { podUid: uid, name, attempt: Number(attempt) } : null;
}
