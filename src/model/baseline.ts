/** What the baselines of a node name, and what of it the node lacks. */

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
