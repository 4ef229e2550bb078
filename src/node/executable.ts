// Reads which loader an executable needs, which shows whether it can run in a root filesystem.

import { closeSync, openSync, readSync } from "node:fs";

import { HostError, messageOf } from "../model/errors.ts";
import { reasonOf } from "./files.ts";

/** Whether the file is a Linux executable, rather than an archive or a web page. */
export function isElf(path: string): boolean {
  const bytes = headOf(path);
  return bytes.length >= 4 && new DataView(bytes.buffer).getUint32(0) === elfMagic;
}

/** `/lib64/ld-linux-x86-64.so.2`, `/lib/ld-musl-x86_64.so.1`; `null` if it needs none or is not a 64-bit ELF file. */
export function loaderOf(path: string): string | null {
  if (!isElf(path)) return null;
  const bytes = headOf(path);
  const view = new DataView(bytes.buffer, 0, bytes.length);
  if (bytes.length < 64 || bytes[4] !== class64) return null;
  if (bytes[5] !== littleEndian) return null;
  const first = Number(view.getBigUint64(32, true));
  const size = view.getUint16(54, true);
  const count = view.getUint16(56, true);
  for (let index = 0; index < count; index += 1) {
    const at = first + index * size;
    if (at + 56 > bytes.length) return null;
    if (view.getUint32(at, true) !== loaderSegment) continue;
    const start = Number(view.getBigUint64(at + 8, true));
    const length = Number(view.getBigUint64(at + 32, true));
    if (start + length > bytes.length) return null;
    return new TextDecoder().decode(bytes.subarray(start, start + length)).replace(/\0.*$/s, "");
  }
  return null;
}

const elfMagic = 0x7f454c46;
const class64 = 2;
const littleEndian = 1;
const loaderSegment = 3;
/** Headers and the loader's name are at the start of every executable that a linker writes. */
const headBytes = 16 * 1024;

/** Throws `HostError`. */
function headOf(path: string): Uint8Array {
  try {
    return readHead(path);
  } catch (error) {
    throw new HostError(
      "read",
      `cannot read the executable ${path}: ${reasonOf(error)}; use one from a release`,
      { cause: error },
    );
  }
}

function readHead(path: string): Uint8Array {
  const bytes = new Uint8Array(headBytes);
  const file = openSync(path, "r");
  try {
    const length = readSync(file, bytes, 0, headBytes, 0);
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/** As long as a service may take to stop, and a little more. */
const timeoutMs = 200_000;

/** Throws with the command's output if it failed. */
export async function runCommand(words: readonly string[]): Promise<void> {
  const line = words.join(" ");
  const failed = (reason: string, cause?: unknown): HostError =>
    new HostError("refused", `cannot run ${line}: ${reason}; run it by hand to see why`, {
      cause,
    });
  let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  try {
    child = Bun.spawn([...words], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: timeoutMs,
    });
  } catch (error) {
    throw failed(messageOf(error), error);
  }
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code === 0) return;
  const said = `${stderr}\n${stdout}`.trim().split("\n").slice(0, 5).join(" ");
  throw failed(said === "" ? `it exited with ${child.signalCode ?? code}` : said);
}
