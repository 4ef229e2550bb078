/** Identifiers as the runtime spells them; the only place where a plain string becomes one. */

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
export type CreationId = Brand<string, "CreationId">;
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
export const creationKey = (text: string): CreationId => text as CreationId;
export const creationId = (of: {
  readonly sandboxId: SandboxId;
  readonly name: string;
}): CreationId => creationKey(`${of.sandboxId}/${of.name}`);
export const passId = (text: string): PassId => text as PassId;

/** Begins the ID that stands for the boot within one process. */
export const PROCESS_BOOT = "process:";
export const isBootId = (id: string): boolean => id !== "" && !id.startsWith(PROCESS_BOOT);
