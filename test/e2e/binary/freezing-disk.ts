// A disk for one test that can be frozen, as one that hangs: an ext4 on a loop device.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface FreezingDisk {
  readonly directory: string;
  /** Whoever writes to it waits from now on; for a minute at most, whatever becomes of the test. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// The shell ends with its stdin, also when the test is killed, and leaves nothing frozen or mounted behind; where it is killed
// itself, the session of its own thaws.
const script = `
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
  const opened = await open();
  if (typeof opened === "string") throw new Error(`no disk can be frozen here: ${opened}`);
  return opened;
}

/** Why no disk can be frozen on this machine; `null`: one can. */
export const freezeObstacle: string | null = await (async () => {
  if (process.getuid?.() !== 0) return "only root may";
  const opened = await open();
  if (typeof opened === "string") return opened;
  try {
    await opened.freeze();
    await opened.thaw();
    return null;
  } catch (error) {
    return String(error);
  } finally {
    await opened[Symbol.asyncDispose]();
  }
})();
if (freezeObstacle !== null)
  console.warn(`tests on a disk that hangs are skipped: none can be frozen: ${freezeObstacle}`);

async function open(): Promise<FreezingDisk | string> {
  const place = mkdtempSync(join(tmpdir(), "crigc-freeze-"));
  const holder = Bun.spawn(["sh", "-c", script, "sh", place], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const answers = holder.stdout.getReader();
  const answered = async (): Promise<void> => {
    const { value } = await answers.read();
    if (value === undefined) throw new Error((await holder.stderr.text()).trim());
  };
  const close = async (): Promise<void> => {
    await holder.stdin.end();
    await holder.exited;
    rmSync(place, { recursive: true, force: true });
  };
  const tell = async (word: string): Promise<void> => {
    await holder.stdin.write(`${word}\n`);
    await holder.stdin.flush();
    await answered();
  };
  try {
    await answered();
  } catch (error) {
    await close();
    return String(error);
  }
  return {
    directory: join(place, "mount"),
    freeze: () => tell("freeze"),
    thaw: () => tell("thaw"),
    [Symbol.asyncDispose]: close,
  };
}
