/** Identifiers as the runtime spells them; the only place where a plain string becomes one. */

declare const brand: unique symbol;

/** `T`, told apart from every other use of the same primitive by `Name`. Costs nothing at run time. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** `Image.id` of the runtime, whole (usually `sha256:` and 64 hex digits; never shortened, never parsed). */
export type ImageId = Brand<string, "ImageId">;
/** `Container.id`, whole. */
export type ContainerId = Brand<string, "ContainerId">;
/** `PodSandbox.id`, whole. */
export type SandboxId = Brand<string, "SandboxId">;
/** A pod's UID: label `io.kubernetes.pod.uid`; the empty string stands for "no pod of Kubernetes". */
export type PodUid = Brand<string, "PodUid">;
/** One pass of the collector, for logs, history and reports: `YYYYMMDDTHHMMSSZ-xxxxxx`. */
export type PassId = Brand<string, "PassId">;

/** A chain of layers by its last one: the diff ID of the first layer, then `sha256("CHAIN DIFF")` for each next; `sha256:` and 64 hex digits. */
export type ChainId = Brand<string, "ChainId">;

export const imageId = (text: string): ImageId => text as ImageId;
export const containerId = (text: string): ContainerId => text as ContainerId;
export const sandboxId = (text: string): SandboxId => text as SandboxId;
export const podUid = (text: string): PodUid => text as PodUid;
export const chainId = (text: string): ChainId => text as ChainId;
export const passId = (text: string): PassId => text as PassId;
