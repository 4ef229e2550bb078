// Where the programs of each containerd release lie once scripts/setup has fetched them.
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** Debian's: bookworm, trixie, sid. */
export const releases = ["1.6", "1.7", "2.1"] as const;
export type Release = (typeof releases)[number];

export interface ReleasePrograms {
  readonly containerd: string;
  /** Looked up by containerd for its shim, and nothing else. */
  readonly binDirectory: string;
  readonly runc: string;
  /** Of 1.6 for every release, so that images arrive in the same way everywhere. */
  readonly ctr: string;
  /** The release's own, for commands that an operator types. */
  readonly ownCtr: string;
  readonly busybox: string;
}

const cache = resolve(import.meta.dir, "../../../.cache/containerd");

export function programsOf(release: Release): ReleasePrograms {
  const binDirectory = `${cache}/${release}/usr/bin`;
  const programs = {
    containerd: `${binDirectory}/containerd`,
    binDirectory,
    runc: `${cache}/runc/usr/sbin/runc`,
    ctr: `${cache}/1.6/usr/bin/ctr`,
    ownCtr: `${binDirectory}/ctr`,
    busybox: busyboxPath,
  };
  for (const program of Object.values(programs))
    if (!existsSync(program))
      throw new Error(`${program} is missing: run scripts/setup containerd`);
  return programs;
}

/** Static, so that it is a whole root file system by itself. */
export const busyboxPath = `${cache}/busybox/bin/busybox`;
