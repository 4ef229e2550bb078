// A disk for one test, held by a shell that undoes everything when its stdin closes, also when the test is killed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { LayerDescription } from "../../support/fake-runtime/describe.ts";

export const MiB = 1024 * 1024;

/** A tmpfs of a known size in a mount namespace of its own, which needs no root. */
export interface SmallDisk extends AsyncDisposable {
  /** A directory on it, seen through the process that holds the namespace. */
  readonly directory: string;
}

export async function smallDisk(sizeBytes: number): Promise<SmallDisk> {
  const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  const place = mkdtempSync(join(tmpdir(), "crigc-disk-"));
  const script = 'mount -t tmpfs -o "size=$2,mode=0777" tmpfs "$1" && echo mounted && read -r _';
  const words = ["unshare", ...asUser, "--mount", "sh", "-c", script, "sh", place, `${sizeBytes}`];
  const child = Bun.spawn(words, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const close = async (): Promise<void> => {
    await child.stdin.end();
    await child.exited;
    rmSync(place, { recursive: true, force: true });
  };
  const { value } = await child.stdout.getReader().read();
  if (value === undefined) {
    await close();
    throw new Error((await child.stderr.text()).trim());
  }
  const directory = join(`/proc/${child.pid}/root`, place);
  return { directory, [Symbol.asyncDispose]: close };
}

/** Why such a disk cannot be made on this machine; `null` if it can. */
export const diskObstacle = await smallDisk(MiB).then(
  async (disk) => (await disk[Symbol.asyncDispose](), null),
  (error: unknown) => {
    console.warn(`tests on a disk of its own are skipped: ${String(error)}`);
    return String(error);
  },
);

/** A layer of whole pages, so that its size is what it takes. */
export const layer = (id: string, mebibytes: number): LayerDescription => ({
  id,
  bytes: mebibytes * MiB,
});
