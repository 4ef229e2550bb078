/** The findings of `crigc audit`, and what baselines name and the node lacks, as plain data. */

import type { Removal } from "./history.ts";
import type { DiskBreakdown } from "./plan.ts";
import type { Container, Image, Sandbox } from "./snapshot.ts";
import type { Instant } from "./time.ts";

/** A removed image from the history, with the measured and expected bytes. */
export type PastRemoval = Pick<
  Removal,
  "names" | "measuredBytes" | "freesAtLeastBytes" | "settled" | "at"
>;

/** `removable`: no use, pin or rule keeps the image, so removing it by hand is safe. */
export type AuditFinding =
  /** It has neither tag nor digest. */
  | {
      readonly kind: "nameless-image";
      readonly image: Image;
      readonly inUse: boolean;
      readonly removable: boolean;
    }
  | {
      readonly kind: "ghost-image";
      readonly image: Image;
      readonly since: Instant;
      readonly attempts: number;
    }
  /** Bytes of a filesystem that no image, container or log explains. */
  | {
      readonly kind: "unexplained-bytes";
      readonly filesystem: string;
      readonly breakdown: DiskBreakdown;
    }
  /** It has a digest but no tag, and nothing uses it. */
  | { readonly kind: "untagged-image"; readonly image: Image; readonly removable: boolean }
  /** Its only name is the one that containerd invents for an import: `import-2026-01-31@sha256:…`. */
  | {
      readonly kind: "made-up-name";
      readonly image: Image;
      readonly inUse: boolean;
      readonly removable: boolean;
    }
  /** Removals of this repository's images freed far less than their layers suggest: something else keeps their content. */
  | {
      readonly kind: "content-kept";
      readonly repository: string;
      readonly removals: number;
      /** The least that these removals should have freed, and what they freed, added up. */
      readonly expectedAtLeastBytes: bigint;
      readonly measuredBytes: bigint;
      readonly lastAt: Instant;
    }
  /** The runtime's image store is larger than its images explain. */
  | {
      readonly kind: "unexplained-store-bytes";
      readonly filesystem: string;
      readonly usedBytes: bigint;
      /** Of all listed images, added up. */
      readonly reportedBytes: bigint;
      readonly images: number;
    }
  | { readonly kind: "foreign-container"; readonly container: Container }
  | { readonly kind: "foreign-sandbox"; readonly sandbox: Sandbox }
  /** Its sandbox is not listed. */
  | { readonly kind: "orphan-container"; readonly container: Container }
  /** The log directories could not be read, so no log is removed. */
  | { readonly kind: "unread-logs"; readonly message: string }
  | { readonly kind: "stray-log-entry"; readonly directory: string; readonly entry: string }
  /** The kubelet's record of a pulled image that is not on the node. `imageRef`: `null` if the record is not valid. */
  | {
      readonly kind: "stale-pull-record";
      readonly path: string;
      readonly imageRef: string | null;
      readonly names: readonly string[];
    }
  /** A pull that a crash interrupted, of a name that no image on the node has. */
  | { readonly kind: "stale-pull-intent"; readonly name: string; readonly directory: string }
  /** The kubelet will ask the registry, although the image is here to stay. */
  | {
      readonly kind: "pull-needs-credentials";
      readonly image: Image;
      readonly path: string;
      readonly because: "baseline" | "loaded";
    }
  /** A record that is not valid, such as one of 0 bytes after a power cut. */
  | { readonly kind: "broken-pull-record"; readonly image: Image; readonly path: string }
  /** A container's reference that matches no image. */
  | { readonly kind: "unresolved-reference"; readonly reference: string; readonly message: string }
  /** What something uses could not be read, so no image is removed. */
  | { readonly kind: "unknown-use"; readonly subject: string; readonly message: string };

/** An image of a baseline, or the sandbox image, that is not as it should be. */
export interface BaselineGap {
  /**
   * `missing`: not on the node. `name-missing`: there, but not under these names. `sandbox-image`: missing, and without it
   * no pod starts. `unpinned`: there, but the runtime no longer pins it.
   */
  readonly kind: "missing" | "name-missing" | "sandbox-image" | "unpinned";
  /** A tag or digest if it has one, else the ID. */
  readonly name: string;
  /** Its lines that match no image; of an unpinned one, the line that says that it was pinned. */
  readonly patterns: readonly string[];
  /** The first of these lines, or who names the sandbox image. */
  readonly source: string;
}

export interface Baseline {
  /** Images that baselines name. */
  readonly images: number;
  /** Of these, the ones that are there under all their names. */
  readonly present: number;
  /** All that are missing, under one of their names or altogether; also the sandbox image, which no baseline need name. */
  readonly missing: number;
  readonly gaps: readonly BaselineGap[];
}

export const isMissing = ({ kind }: BaselineGap): boolean => kind !== "unpinned";
