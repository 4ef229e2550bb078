// A state directory on a disk without a byte, or without an inode: collection goes on, and nothing is lost once there is room.

import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { mebibyte, mountDisk, takeInodes, unmount } from "../../../test/support/containerd/disk.ts";
import { imageIdOf } from "../../../test/support/fake-runtime/describe.ts";
import { startFakeRuntime } from "../../../test/support/fake-runtime/server.ts";
import { runProgram } from "../../../test/support/program.ts";
import { nodeFlags, readState, type Result, type Torture } from "./common.ts";

const IMAGES = 5;

export async function full({ rounds, random, deadlineMs }: Torture): Promise<Result> {
  const faults: string[] = [];
  const kinds = { bytes: 0, inodes: 0 };
  let tried = 0;
  for (; tried < rounds && performance.now() < deadlineMs; tried += 1) {
    const kind = tried % 2 === 0 ? "bytes" : "inodes";
    kinds[kind] += 1;
    // Every other time there was a ledger before; and the last bytes may be just enough for half of a write.
    const wish = {
      kind,
      known: tried % 4 < 2,
      leftBytes: Math.floor(random.next() * 3) * 4096,
    } as const;
    const said = await oneFull(wish);
    faults.push(...said.map((fault) => `full ${tried + 1} (${JSON.stringify(wish)}): ${fault}`));
    if (faults.length > 20) break;
  }
  return {
    name: "full",
    tried,
    faults,
    figures: `${kinds.bytes} disks without a byte, ${kinds.inodes} without an inode, ${IMAGES} images removed on each`,
  };
}

type Wish = {
  readonly kind: "bytes" | "inodes";
  readonly known: boolean;
  readonly leftBytes: number;
};

async function oneFull({ kind, known, leftBytes }: Wish): Promise<readonly string[]> {
  const home = mkdtempSync(join(tmpdir(), "crigc-torture-"));
  const disk = await mountDisk(home, "disk", { sizeBytes: 8 * mebibyte, reservedPercent: 0 });
  const images = Array.from({ length: IMAGES }, (_, at) => ({
    id: imageIdOf(`full ${at}`),
    repoTags: [`r.example/full:${at}`],
    sizeBytes: 1_000 + at,
  }));
  const runtime = await startFakeRuntime({
    node: { imageFilesystems: [{ mountpoint: home }], images: known ? images.slice(0, 1) : images },
  });
  try {
    const stateDir = join(disk.path, "state");
    const flags = [...nodeFlags(home, runtime, stateDir), "--minimum-image-ttl-duration=0s"];
    const faults: string[] = [];
    const gc = async (what: string, exits: readonly number[] = [0]): Promise<void> => {
      const { exitCode, stderr } = await runProgram(["gc", "--all-unused", ...flags]);
      if (!exits.includes(exitCode)) faults.push(`${what} ended with ${exitCode}: ${stderr}`);
      if (runtime.node.images.length > 0)
        faults.push(`${what} left ${runtime.node.images.length} images`);
    };
    if (known) {
      await gc("the first pass");
      for (const image of images) runtime.node.addImage(image);
    }
    const before = known ? readState(stateDir) : null;
    const made = kind === "bytes" ? takeBytes(disk.path, leftBytes) : takeInodes(disk, 0);
    // Records that there is no room for are lost, which the pass says by its exit code.
    await gc("the pass on the full disk", [0, 1]);
    rmSync(made, { recursive: true });
    // What was known is known again, and what comes now is recorded.
    const after = readState(stateDir);
    faults.push(...after.notices);
    if (before !== null && after.removals.length < before.removals.length)
      faults.push("removals of before are gone");
    for (const image of images) runtime.node.addImage(image);
    await gc("the pass once there was room");
    const last = readState(stateDir).removals.length - after.removals.length;
    if (last !== IMAGES) faults.push(`${last} of ${IMAGES} removals are in the history`);
    return faults;
  } finally {
    await runtime.stop();
    await unmount(disk.path);
    rmSync(home, { recursive: true, force: true });
  }
}

function takeBytes(directory: string, leftBytes: number): string {
  const path = join(directory, "ballast");
  const { bavail, bsize } = statfsSync(directory);
  try {
    writeFileSync(path, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)));
  } catch (error) {
    // What the filesystem itself needs for the file was missing at the end: full it is.
    if ((error as { code?: unknown }).code !== "ENOSPC") throw error;
  }
  return path;
}
