// A disk of a known size for one test: a tmpfs in a mount namespace of its own, which leaves nothing behind and needs no root.
import { mkdtempSync, rmdirSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { LayerDescription } from "../../support/fake-runtime/describe.ts";

export const MiB = 1024 * 1024;

export interface SmallDisk {
  /** A directory on it, seen through the process that holds the namespace. */
  readonly directory: string;
  usedBytes(): number;
  usedPercent(): number;
  freeBytes(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function smallDisk(sizeBytes: number): Promise<SmallDisk> {
  const opened = await open(sizeBytes);
  if (typeof opened === "string") throw new Error(`no disk can be made here: ${opened}`);
  return opened;
}

/** Why no disk can be made on this machine; `null`: one can. */
export const diskObstacle: string | null = await (async () => {
  const opened = await open(MiB);
  if (typeof opened === "string") return opened;
  await opened[Symbol.asyncDispose]();
  return null;
})();
if (diskObstacle !== null)
  console.warn(
    `tests on a disk of their own are skipped: no tmpfs can be mounted: ${diskObstacle}`,
  );

async function open(sizeBytes: number): Promise<SmallDisk | string> {
  const mountpoint = mkdtempSync(join(tmpdir(), "crigc-disk-"));
  const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  // The shell stays, as the holder of the namespace, until its stdin is closed: also when the test is killed.
  const script = 'mount -t tmpfs -o "size=$2,mode=0777" tmpfs "$1" && echo mounted && read -r _';
  const holder = Bun.spawn(
    ["unshare", ...asUser, "--mount", "sh", "-c", script, "sh", mountpoint, String(sizeBytes)],
    { stdin: "pipe", stdout: "pipe", stderr: "pipe" },
  );
  const close = async (): Promise<void> => {
    await holder.stdin.end();
    await holder.exited;
    rmdirSync(mountpoint);
  };
  const first = await holder.stdout.getReader().read();
  if (first.value === undefined) {
    const reason = (await holder.stderr.text()).trim();
    await close();
    return reason;
  }
  const directory = join(`/proc/${holder.pid}/root`, mountpoint);
  const used = (): { readonly used: number; readonly all: number } => {
    const { blocks, bavail, bsize } = statfsSync(directory);
    return { used: (blocks - bavail) * bsize, all: blocks * bsize };
  };
  return {
    directory,
    usedBytes: () => used().used,
    usedPercent: () => (100 * used().used) / used().all,
    freeBytes: () => used().all - used().used,
    [Symbol.asyncDispose]: close,
  };
}

/** A layer of whole pages, so that its size is what it takes. */
export const layer = (id: string, mebibytes: number): LayerDescription => ({
  id,
  bytes: mebibytes * MiB,
});
