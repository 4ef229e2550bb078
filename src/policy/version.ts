/** Names and compares versions of runtimes. */
import type { RuntimeInfo } from "../model/snapshot.ts";

export type Version = readonly [major: number, minor: number, patch: number];

/** The first version that mounts images as volumes. On older ones, a container's mounts do not matter. */
const FIRST_WITH_IMAGE_VOLUMES: Readonly<Record<string, Version>> = {
  containerd: [2, 1, 0],
  "cri-o": [1, 31, 0],
};

/** An unknown runtime or version counts as one that mounts images. */
export function imageVolumesSupported(runtime: Pick<RuntimeInfo, "name" | "version">): boolean {
  const first = FIRST_WITH_IMAGE_VOLUMES[runtime.name.toLowerCase()];
  const version = parseVersion(runtime.version);
  return first === undefined || version === null || compareVersions(version, first) >= 0;
}

/**
 * A pre-release counts as its version: `2.0.0-rc.1` is within a range from 2.0.0. Text that is not a version is in no
 * range.
 */
export function isVersionWithin(
  text: string,
  { from, until }: { readonly from: Version; readonly until: Version },
): boolean {
  const version = parseVersion(text);
  if (version === null) return false;
  return compareVersions(version, from) >= 0 && compareVersions(version, until) < 0;
}

function parseVersion(text: string): Version | null {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+)|\D|$)/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

const compareVersions = (one: Version, other: Version): number =>
  one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
