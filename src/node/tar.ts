/** Extracts small files from a tar archive of any size, with bounded memory. */

import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";

import { HostError } from "../model/errors.ts";
import { reasonOf } from "./files.ts";

export interface Picked {
  /** Whether to extract the file of this name; names have no leading `./`. */
  readonly wanted: (name: string) => boolean;
  /** Larger files are skipped. */
  readonly fileBytesMax: number;
  /** Of all extracted files. */
  readonly bytesMax: number;
}

/** Throws `HostError` `read` if the file cannot be read, `parse` if it is not a complete tar archive. */
export async function pickFromTar(
  path: string,
  picked: Picked,
): Promise<ReadonlyMap<string, Uint8Array>> {
  await using source = await openBytes(path);
  return await pick(new Walk(path, source), picked);
}

async function pick(walk: Walk, picked: Picked): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  let keptBytes = 0;
  for (let entry = await walk.next(); entry !== null; entry = await walk.next()) {
    const { name, sizeBytes, isFile } = entry;
    if (!isFile || sizeBytes > picked.fileBytesMax || !picked.wanted(name)) {
      await walk.skip(sizeBytes);
      continue;
    }
    keptBytes += sizeBytes;
    if (keptBytes > picked.bytesMax)
      throw walk.failure(`its lists of images take more than ${picked.bytesMax} bytes`);
    found.set(name, await walk.content(sizeBytes));
  }
  return found;
}

interface Entry {
  readonly name: string;
  readonly sizeBytes: number;
  readonly isFile: boolean;
}

const BLOCK = 512;
/** For names and extended headers; no tool writes longer ones. */
const HEADER_BYTES_MAX = 64 * 1024;
const ENTRIES_MAX = 1_000_000;

/** What the preceding headers say about an entry. */
interface Extended {
  readonly name: string | null;
  readonly sizeBytes: number | null;
}

const noExtension: Extended = { name: null, sizeBytes: null };

class Walk {
  readonly #path: string;
  readonly #source: ByteSource;
  #entries = 0;

  constructor(path: string, source: ByteSource) {
    this.#path = path;
    this.#source = source;
  }

  /** The next entry, its content not read yet; `null` at the end. */
  async next(): Promise<Entry | null> {
    let extended = noExtension;
    for (;;) {
      const header = await this.#source.take(BLOCK);
      if (header.length === 0 && this.#entries > 0) return null;
      if (header.length < BLOCK) throw this.failure("it is truncated, or not a tar archive");
      if (header.every((byte) => byte === 0)) return null;
      if (!hasChecksum(header)) throw this.failure("it is not a tar archive");
      this.#entries += 1;
      if (this.#entries > ENTRIES_MAX) throw this.failure(`it has over ${ENTRIES_MAX} entries`);
      const type = String.fromCharCode(header[156] ?? 0);
      const sizeBytes = extended.sizeBytes ?? numberIn(header, 124, 12);
      if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
        throw this.failure("it has an entry without a size");
      if (!"LKxg".includes(type)) return entryOf(header, { type, sizeBytes, extended });
      if (sizeBytes > HEADER_BYTES_MAX) throw this.failure("it has a header that is too long");
      const text = textOf(await this.content(sizeBytes));
      if (type === "L") extended = { ...extended, name: text.replace(/\0.*$/s, "") };
      if (type === "x") extended = { ...extended, ...extendedOf(text) };
    }
  }

  async content(sizeBytes: number): Promise<Uint8Array> {
    const bytes = await this.#source.take(sizeBytes);
    if (bytes.length < sizeBytes) throw this.failure("it ends in the middle of a file");
    await this.skip(0, paddingOf(sizeBytes));
    return bytes;
  }

  async skip(sizeBytes: number, padding = paddingOf(sizeBytes)): Promise<void> {
    if (!(await this.#source.skip(sizeBytes + padding)))
      throw this.failure("it ends in the middle of a file");
  }

  failure(what: string): HostError {
    return new HostError(
      "parse",
      `cannot read the archive ${this.#path}: ${what}; create it again with docker save or ctr images export`,
    );
  }
}

const paddingOf = (sizeBytes: number): number => (BLOCK - (sizeBytes % BLOCK)) % BLOCK;

function entryOf(
  header: Uint8Array,
  facts: { readonly type: string; readonly sizeBytes: number; readonly extended: Extended },
): Entry {
  const { type, sizeBytes, extended } = facts;
  // The field is a prefix of the name only in POSIX archives.
  const prefix = fieldIn(header, 257, 6) === "ustar" ? fieldIn(header, 345, 155) : "";
  const own = fieldIn(header, 0, 100);
  const name = extended.name ?? (prefix === "" ? own : `${prefix}/${own}`);
  const isFile = type === "0" || type === "\0" || type === "7";
  // Links and directories have no content, whatever their size field says.
  const isEmpty = "123456".includes(type);
  return { name: name.replace(/^(?:\.?\/)+/, ""), sizeBytes: isEmpty ? 0 : sizeBytes, isFile };
}

/** Records of `LENGTH KEY=VALUE\n`; only the name and the size matter here. */
function extendedOf(text: string): Partial<Extended> {
  const name = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1];
  const size = /(?:^|\n)\d+ size=(\d{1,15})\n/.exec(text)?.[1];
  return {
    ...(name === undefined ? {} : { name }),
    ...(size === undefined ? {} : { sizeBytes: Number(size) }),
  };
}

/** The sum of the header's bytes, with its own field read as spaces. */
function hasChecksum(header: Uint8Array): boolean {
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  return sum === numberIn(header, 148, 8);
}

/** Octal text, or the binary form for sizes of 8 GiB and more. */
function numberIn(header: Uint8Array, offset: number, length: number): number {
  const field = header.subarray(offset, offset + length);
  if (((field[0] ?? 0) & 0x80) === 0) {
    const text = textOf(field).replaceAll(/[\0 ]/g, "");
    return /^[0-7]*$/.test(text) ? Number.parseInt(`0${text}`, 8) : Number.NaN;
  }
  return field.subarray(1).reduce((total, byte) => total * 256 + byte, (field[0] ?? 0) & 0x3f);
}

const fieldIn = (header: Uint8Array, offset: number, length: number): string =>
  textOf(header.subarray(offset, offset + length)).replace(/\0.*$/s, "");

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

export interface ByteSource extends AsyncDisposable {
  /** Fewer bytes than requested only at the end. */
  take(count: number): Promise<Uint8Array>;
  /** `false`: the file ends earlier. */
  skip(count: number): Promise<boolean>;
}

/** Detects the compression by the first bytes. Throws `HostError` `read`, or `parse` for an unknown compression. */
export async function openBytes(path: string): Promise<ByteSource> {
  const file = await asked(path, () => open(path, "r"));
  try {
    const start = await asked(path, () => readAt(file, 0, MAGIC_BYTES));
    const packing = packingOf(start);
    if (packing === "none") return await plainSource(path, file);
    await file.close();
    if (packing !== "gzip" && packing !== "zstd")
      throw new HostError(
        "parse",
        `cannot read ${path}: it is compressed with ${packing}, which crigc cannot read; decompress it first`,
      );
    return streamSource(path, packing);
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

const MAGIC_BYTES = 6;
const MAGICS: readonly (readonly [string, readonly number[]])[] = [
  ["gzip", [0x1f, 0x8b]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ["bzip2", [0x42, 0x5a, 0x68]],
  ["lz4", [0x04, 0x22, 0x4d, 0x18]],
];

const packingOf = (start: Uint8Array): string =>
  MAGICS.find(([, magic]) => magic.every((byte, at) => start[at] === byte))?.[0] ?? "none";

async function plainSource(path: string, file: FileHandle): Promise<ByteSource> {
  const { size } = await asked(path, () => file.stat());
  let at = 0;
  return {
    take: async (count) => {
      const bytes = await asked(path, () => readAt(file, at, count));
      at += bytes.length;
      return bytes;
    },
    skip: async (count) => {
      at += count;
      return at <= size;
    },
    [Symbol.asyncDispose]: () => file.close(),
  };
}

async function readAt(file: FileHandle, position: number, count: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(count);
  let length = 0;
  while (length < count) {
    const { bytesRead } = await file.read(bytes, length, count - length, position + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

function streamSource(path: string, packing: "gzip" | "zstd"): ByteSource {
  const file = createReadStream(path);
  const unpacked = file.pipe(packing === "gzip" ? createGunzip() : createZstdDecompress());
  file.on("error", (error) => unpacked.destroy(error));
  const chunks = unpacked[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let rest: Uint8Array = new Uint8Array(0);
  /** Returns what is available, at most `count` bytes; nothing at the end. */
  const some = async (count: number): Promise<Uint8Array> => {
    while (rest.length === 0) {
      const next = await asked(path, () => chunks.next());
      if (next.done === true) return rest;
      rest = next.value;
    }
    const piece = rest.subarray(0, count);
    rest = rest.subarray(piece.length);
    return piece;
  };
  return {
    take: async (count) => {
      const bytes = new Uint8Array(count);
      let length = 0;
      while (length < count) {
        const piece = await some(count - length);
        if (piece.length === 0) break;
        bytes.set(piece, length);
        length += piece.length;
      }
      return bytes.subarray(0, length);
    },
    skip: async (count) => {
      for (let left = count; left > 0;) {
        const piece = await some(left);
        if (piece.length === 0) return false;
        left -= piece.length;
      }
      return true;
    },
    [Symbol.asyncDispose]: async () => {
      unpacked.destroy();
      file.destroy();
    },
  };
}

async function asked<T>(path: string, question: () => Promise<T>): Promise<T> {
  try {
    return await question();
  } catch (error) {
    throw new HostError("read", `cannot read ${path}: ${reasonOf(error)}`, { cause: error });
  }
}
