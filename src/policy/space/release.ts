/** Whether a runtime frees space immediately or with a delay, learned once per version. */
import type { Ledger, ReleaseRecord } from "../../model/ledger.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { isVersionWithin, type Version } from "../version.ts";

export type SpaceRelease = "immediate" | "delayed" | "unknown";

export type ReleaseSign =
  /** The image's space was there when the call returned. */
  | "there-at-once"
  /** Some space was there when the call returned, and none followed; one such removal is enough. */
  | "none-followed"
  /** No space at all: a delay longer than the watch, or an image that shares all its layers. */
  | "nothing-seen"
  /** More space appeared than was there when the call returned. */
  | "more-followed";

/** Below this a gain cannot be told from what other programs do to the disk. */
export const TELLING_BYTES = 65_536n;

/** Nothing is known about the version yet. */
export const noRelease: ReleaseRecord = { promptRemovals: 0, lateRemovals: 0 };

/** Weak signs; this many together make a runtime immediate. */
const IMMEDIATE_SIGNS = 3;
/** Another program that deletes a file looks like a delay, so one such sign proves nothing. */
const DELAYED_SIGNS = 2;
/** More signs of a delay than this add nothing, so that one learned by mistake is soon dropped. */
const MOST_DELAYED_SIGNS = 4;

interface KnownRelease {
  readonly runtime: string;
  /** All versions if there is no range; `until` is the first version that behaves differently. */
  readonly versions?: { readonly from: Version; readonly until: Version };
  readonly release: Exclude<SpaceRelease, "unknown">;
}

const KNOWN: readonly KnownRelease[] = [
  // It deletes layers before it answers; its reported sizes include shared layers.
  { runtime: "cri-o", release: "immediate" },
  // It leaves deleting to its garbage collector, which runs later.
  {
    runtime: "containerd",
    versions: { from: [2, 0, 0], until: [2, 0, 5] },
    release: "delayed",
  },
];

export function spaceReleaseOf(
  { name, version }: Pick<RuntimeInfo, "name" | "version">,
  record: ReleaseRecord,
): SpaceRelease {
  const known = KNOWN.find(
    ({ runtime, versions }) =>
      runtime === name.toLowerCase() &&
      (versions === undefined || isVersionWithin(version, versions)),
  );
  if (known !== undefined) return known.release;
  if (record.promptRemovals >= IMMEDIATE_SIGNS) return "immediate";
  return record.lateRemovals >= DELAYED_SIGNS ? "delayed" : "unknown";
}

/** From the record of the version. */
export const releaseOf = (
  { releases }: Pick<Ledger, "releases">,
  runtime: Pick<RuntimeInfo, "name" | "version">,
): SpaceRelease => spaceReleaseOf(runtime, releases.get(releaseKey(runtime)) ?? noRelease);

/** The key of a runtime's record in the ledger. */
export const releaseKey = ({ name, version }: Pick<RuntimeInfo, "name" | "version">): string =>
  `${name}/${version}`;

/**
 * The record after one more removal. A removal without a delay takes back two signs of one: after a slow call, late
 * space was already there.
 */
export function learnRelease(record: ReleaseRecord, sign: ReleaseSign): ReleaseRecord {
  const { promptRemovals, lateRemovals } = record;
  switch (sign) {
    case "none-followed":
      return lateRemovals > DELAYED_SIGNS
        ? { ...record, lateRemovals: lateRemovals - DELAYED_SIGNS }
        : { promptRemovals: IMMEDIATE_SIGNS, lateRemovals: 0 };
    case "more-followed":
      return { ...record, lateRemovals: Math.min(lateRemovals + 1, MOST_DELAYED_SIGNS) };
    case "there-at-once":
    case "nothing-seen":
      // If a delay was seen before, space that is there at once may belong to the previous removal.
      if (lateRemovals >= (sign === "there-at-once" ? 1 : DELAYED_SIGNS)) return record;
      return { ...record, promptRemovals: Math.min(promptRemovals + 1, IMMEDIATE_SIGNS) };
  }
}
