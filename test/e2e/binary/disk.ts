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

/** An ext4 on a loop device that can be frozen, like a disk that hangs. */
export interface FreezingDisk extends AsyncDisposable {
  readonly directory: string;
  /** Every writer hangs from now on; for a minute at most, whatever becomes of the test. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
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

// Should the shell itself be killed, the session that it started thaws the disk.
const freezer = `
PATH=$PATH:/usr/sbin:/sbin
truncate -s 32M "$1/disk" && mkfs.ext4 -q -F "$1/disk" && mkdir "$1/mount" && mount -o loop "$1/disk" "$1/mount" || exit 1
echo mounted
while read -r word; do
  case $word in
    freeze) fsfreeze -f "$1/mount"; setsid sh -c 'sleep 60; fsfreeze -u "$1"' sh "$1/mount" >/dev/null 2>&1 </dev/null & ;;
    thaw) fsfreeze -u "$1/mount" ;;
  esac || exit 1
  echo "$word"
done
fsfreeze -u "$1/mount" 2>/dev/null
umount "$1/mount" || umount -l "$1/mount"
`;

export async function freezingDisk(): Promise<FreezingDisk> {
  const holder = await hold(["sh", "-c", freezer], []);
  return {
    directory: join(holder.place, "mount"),
    freeze: () => holder.tell("freeze"),
    thaw: () => holder.tell("thaw"),
    [Symbol.asyncDispose]: holder.close,
  };
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
export const freezeObstacle = await obstacle("a disk that hangs", async () => {
  const disk = await freezingDisk();
  await disk.freeze();
  await disk.thaw();
  return disk;
});

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
