/** Names and compares versions of runtimes. */

import type { RuntimeInfo } from "../model/snapshot.ts";

export type Version = readonly [major: number, minor: number, patch: number];

/** Tells one version of a runtime from another. */
export const releaseKey = ({ name, version }: Pick<RuntimeInfo, "name" | "version">): string =>
  `${name}/${version}`;

/**
 * A pre-release counts as its version: `2.0.0-rc.1` is within a range from 2.0.0. Text that is not a version is in no
 * range.
 */
export function isVersionWithin(
  text: string,
  { from, until }: { readonly from: Version; readonly until: Version },
): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) return false;
  const version: Version = [Number(match[1]), Number(match[2]), Number(match[3])];
  return compareVersions(version, from) >= 0 && compareVersions(version, until) < 0;
}

const compareVersions = (one: Version, other: Version): number =>
  one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
