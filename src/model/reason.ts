/** Why something is kept or removed: closed unions of plain data. `docs/policy.md` and `docs/containers.md` have every code. */

import type { ContainerId, ImageId, PodUid, SandboxId } from "./ids.ts";
import type { Signal } from "./limits.ts";
import type { Duration, Instant } from "./time.ts";

export type ImageUser =
  | {
      readonly kind: "container";
      readonly id: ContainerId;
      readonly name: string;
      readonly podName: string;
      readonly state: string;
    }
  | {
      readonly kind: "image-volume";
      readonly id: ContainerId;
      readonly name: string;
      readonly podName: string;
    }
  | { readonly kind: "pod-spec"; readonly uid: PodUid };

export type NotSelectedReason = { readonly kind: "not-selected" };

export type ImageKeepReason =
  | { readonly kind: "in-use"; readonly users: readonly ImageUser[] }
  | { readonly kind: "pinned" }
  /** `by`: the runtime or the flag names it, or a built-in pattern for pause images matches. */
  | {
      readonly kind: "sandbox-image";
      readonly by: "runtime" | "flag" | "pattern";
      readonly name: string;
    }
  | {
      readonly kind: "keep-rule";
      readonly pattern: string;
      readonly source: string;
      readonly name: string;
    }
  /** Loaded from an archive. */
  | { readonly kind: "keep-loaded" }
  | {
      readonly kind: "keep-per-repository";
      readonly repository: string;
      readonly place: number;
      readonly limit: number;
    }
  /** Kept images have all of its layers, so its removal would free nothing. */
  | {
      readonly kind: "shares-all-layers";
      /** The first few of them. */
      readonly images: readonly { readonly id: ImageId; readonly name: string }[];
    }
  | {
      readonly kind: "too-young";
      readonly age: Duration;
      readonly minimumAge: Duration;
      /** The age counts from a restart of the minimum age, not from first seen. */
      readonly restarted?: true;
    }
  /** `rm` or `gc --filter` selected others. */
  | NotSelectedReason
  /** Used at or after the instant of the pass. */
  | { readonly kind: "just-used" }
  | { readonly kind: "no-trigger" }
  /**
   * A trigger is met, but a reason in the plan's `blocks` stops the whole pass. `detail`: if it came up only during the
   * pass.
   */
  | { readonly kind: "blocked"; readonly block: RemovalBlock["kind"]; readonly detail?: string }
  /** Its removal was not planned when the pass began, or facts changed since. */
  | { readonly kind: "changed"; readonly what: string };

export type ImageTrigger =
  | { readonly kind: "space" }
  | { readonly kind: "free" }
  | { readonly kind: "budget" }
  | { readonly kind: "age" }
  | { readonly kind: "pressure"; readonly signal: Signal }
  | { readonly kind: "all-unused" };

/** Why no image is removed in this pass. */
export type RemovalBlock =
  | { readonly kind: "on-hold"; readonly until: Instant | null; readonly reason: string }
  | {
      readonly kind: "boot-grace";
      readonly because: "boot" | "containers-vanished";
      readonly remaining: Duration;
    }
  | {
      readonly kind: "keep-rules-invalid";
      readonly problems: readonly { readonly source: string; readonly message: string }[];
    }
  /** A reference or a container's image volumes could not be read, so what is in use is unknown. */
  | {
      readonly kind: "usage-unknown";
      readonly unknown: readonly { readonly subject: string; readonly message: string }[];
    }
  /** Their images look unused until the runtime lists their containers. */
  | {
      readonly kind: "pod-starting";
      /** `container` is "" where crigc knows only the pod. */
      readonly pods: readonly { readonly uid: string; readonly container: string }[];
      readonly remaining: Duration;
      readonly until: Instant;
    }
  | { readonly kind: "invalid-capacity"; readonly path: string; readonly message: string }
  | {
      readonly kind: "futile";
      readonly filesystem: string;
      readonly boundBytes: bigint;
      readonly neededBytes: bigint;
      /** If inodes are short; the amounts in bytes are 0 then. */
      readonly inodes?: { readonly bound: bigint | null; readonly needed: bigint };
    }
  /** CRI-O would lose an image and keep its layers. */
  | { readonly kind: "no-room"; readonly filesystem: string }
  /** Removals in a row gave no space back; for `remaining` no image is removed there. */
  | { readonly kind: "nothing-freed"; readonly filesystem: string; readonly remaining: Duration };

/** Why something that belongs to a pod is kept. */
export type CommonKeepReason =
  | NotSelectedReason
  | { readonly kind: "source-not-ready"; readonly message: string }
  | { readonly kind: "blocked"; readonly block: RemovalBlock["kind"] }
  | { readonly kind: "changed"; readonly what: string };

type PodRemoveReason = { readonly kind: "pod-gone" };

export type ContainerKeepReason =
  | { readonly kind: "running" }
  | { readonly kind: "foreign" }
  | { readonly kind: "too-young"; readonly age: Duration; readonly minimumAge: Duration }
  /** CREATED or UNKNOWN in a pod that is not deleted. */
  | { readonly kind: "not-dead"; readonly state: string }
  /** The newest instance of its name in a live pod, while none of that name is running. */
  | { readonly kind: "newest-of-name" }
  | { readonly kind: "within-limits" }
  | CommonKeepReason;

export type ContainerRemoveReason =
  | PodRemoveReason
  | { readonly kind: "pod-terminated" }
  | { readonly kind: "over-per-container-limit"; readonly limit: number }
  | { readonly kind: "over-total-limit"; readonly limit: number }
  | { readonly kind: "foreign-dead" };

export type SandboxKeepReason =
  | { readonly kind: "ready" }
  | { readonly kind: "has-containers"; readonly containers: readonly ContainerId[] }
  | { readonly kind: "newest-of-pod" }
  | { readonly kind: "foreign" }
  | CommonKeepReason;

export type SandboxRemoveReason =
  | PodRemoveReason
  | { readonly kind: "pod-terminated" }
  | { readonly kind: "superseded" }
  | { readonly kind: "foreign-dead" };

export type LogKeepReason =
  | { readonly kind: "pod-known" }
  | { readonly kind: "pod-not-gone-yet" }
  | { readonly kind: "stray" }
  /** A container or sandbox of its pod is listed. */
  | { readonly kind: "in-use"; readonly what: string }
  | CommonKeepReason;

export type LogRemoveReason = PodRemoveReason | { readonly kind: "container-gone" };

export type Subject =
  | { readonly kind: "image"; readonly id: ImageId }
  | { readonly kind: "container"; readonly id: ContainerId }
  | { readonly kind: "sandbox"; readonly id: SandboxId }
  | { readonly kind: "pod-logs"; readonly entry: string }
  | { readonly kind: "log-link"; readonly entry: string };
