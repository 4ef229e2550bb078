// Disks for one test, each held by a shell that undoes everything when its stdin closes, also when the test is killed.
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
  const script = 'mount -t tmpfs -o "size=$2,mode=0777" tmpfs "$1" && echo mounted && read -r _';
  const holder = await hold(
    ["unshare", ...asUser, "--mount", "sh", "-c", script],
    [`${sizeBytes}`],
  );
  const directory = join(`/proc/${holder.pid}/root`, holder.place);
  return { directory, [Symbol.asyncDispose]: holder.close };
}

/** Runs `shell` with a new directory as its first operand, and waits for its first line. */
async function hold(shell: readonly string[], operands: readonly string[]) {
  const place = mkdtempSync(join(tmpdir(), "crigc-disk-"));
  const child = Bun.spawn([...shell, "sh", place, ...operands], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const answers = child.stdout.getReader();
  const close = async (): Promise<void> => {
    await child.stdin.end();
    await child.exited;
    rmSync(place, { recursive: true, force: true });
  };
  const answered = async (): Promise<void> => {
    const { value } = await answers.read();
    if (value === undefined) throw new Error((await child.stderr.text()).trim());
  };
  const tell = async (word: string): Promise<void> => {
    await child.stdin.write(`${word}\n`);
    await child.stdin.flush();
    await answered();
  };
  try {
    await answered();
  } catch (error) {
    await close();
    throw error;
  }
  return { pid: child.pid, place, tell, close };
}

/** Why such a disk cannot be made on this machine; `null` if it can. */
export const diskObstacle = await obstacle("a disk of its own", () => smallDisk(MiB));

async function obstacle(
  what: string,
  make: () => Promise<AsyncDisposable>,
): Promise<string | null> {
  try {
    await using _ = await make();
    return null;
  } catch (error) {
    console.warn(`tests on ${what} are skipped: ${String(error)}`);
    return String(error);
  }
}

/** A layer of whole pages, so that its size is what it takes. */
export const layer = (id: string, mebibytes: number): LayerDescription => ({
  id,
  bytes: mebibytes * MiB,
});
