/** Extracts small files from a tar archive of any size, compressed or not, with bounded memory. */

import { type FileHandle, open } from "node:fs/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";

import { HostError } from "../model/errors.ts";
import { codeOf, hostError } from "./files.ts";

export interface Selection {
  /** Whether to extract the file of this name; names have no leading `./`. */
  readonly wanted: (name: string) => boolean;
  /** Larger files are skipped. */
  readonly fileBytesMax: number;
  /** Of all extracted files. */
  readonly bytesMax: number;
}

/** Throws `HostError` `read` if the file cannot be read, `parse` if it is not a complete tar archive. */
export async function extractFromTar(
  path: string,
  { wanted, fileBytesMax, bytesMax }: Selection,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  let keptBytes = 0;
  try {
    await using file = await open(path, "r");
    await using source = await sourceOf(path, file);
    const archive = new Archive(path, source);
    for (let entry = await archive.next(); entry !== null; entry = await archive.next()) {
      const { name, sizeBytes, isFile } = entry;
      if (!isFile || sizeBytes > fileBytesMax || !wanted(name)) {
        await archive.skip(sizeBytes + paddingOf(sizeBytes));
        continue;
      }
      keptBytes += sizeBytes;
      if (keptBytes > bytesMax)
        throw archive.failure(`its lists of images take more than ${bytesMax} bytes`);
      found.set(name, await archive.content(sizeBytes));
    }
    return found;
  } catch (error) {
    if (codeOf(error) === "") throw error;
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}`);
  }
}

interface Source extends AsyncDisposable {
  /** Fewer bytes than requested only at the end. */
  take(count: number): Promise<Uint8Array>;
  /** `false`: the file ends earlier. */
  skip(count: number): Promise<boolean>;
}

const MAGICS: readonly (readonly [string, readonly number[]])[] = [
  ["gzip", [0x1f, 0x8b]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ["bzip2", [0x42, 0x5a, 0x68]],
  ["lz4", [0x04, 0x22, 0x4d, 0x18]],
];

async function sourceOf(path: string, file: FileHandle): Promise<Source> {
  const start = await readAt(file, 0, 6);
  const packing = MAGICS.find(([, magic]) => magic.every((byte, at) => start[at] === byte))?.[0];
  if (packing === undefined) return plainSource(file, (await file.stat()).size);
  if (packing === "gzip" || packing === "zstd") return unpackedSource(file, packing);
  throw new HostError(
    "parse",
    `cannot read ${path}: it is compressed with ${packing}, which crigc cannot read; decompress it first`,
  );
}

/** Skipped parts are not read. */
function plainSource(file: FileHandle, size: number): Source {
  let at = 0;
  return {
    take: async (count) => {
      const bytes = await readAt(file, at, count);
      at += bytes.length;
      return bytes;
    },
    skip: async (count) => {
      at += count;
      return at <= size;
    },
    [Symbol.asyncDispose]: async () => undefined,
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

function unpackedSource(file: FileHandle, packing: "gzip" | "zstd"): Source {
  const packed = file.createReadStream({ start: 0, autoClose: false });
  const unpacked = packed.pipe(packing === "gzip" ? createGunzip() : createZstdDecompress());
  packed.on("error", (error) => unpacked.destroy(error));
  const chunks = unpacked[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let rest: Uint8Array = new Uint8Array(0);
  /** Passes on `count` bytes, chunk by chunk; returns how many there were. */
  const each = async (count: number, use: (piece: Uint8Array, at: number) => void) => {
    let done = 0;
    while (done < count) {
      if (rest.length === 0) {
        const next = await chunks.next();
        if (next.done === true) break;
        rest = next.value;
      }
      const piece = rest.subarray(0, count - done);
      rest = rest.subarray(piece.length);
      use(piece, done);
      done += piece.length;
    }
    return done;
  };
  return {
    take: async (count) => {
      const bytes = new Uint8Array(count);
      const length = await each(count, (piece, at) => bytes.set(piece, at));
      return bytes.subarray(0, length);
    },
    skip: async (count) => (await each(count, () => undefined)) === count,
    [Symbol.asyncDispose]: async () => {
      unpacked.destroy();
      packed.destroy();
    },
  };
}

const BLOCK = 512;
/** For names and extended headers; no tool writes longer ones. */
const HEADER_BYTES_MAX = 64 * 1024;
const ENTRIES_MAX = 1_000_000;

interface Entry {
  readonly name: string;
  readonly sizeBytes: number;
  readonly isFile: boolean;
}

class Archive {
  readonly #path: string;
  readonly #source: Source;
  #entries = 0;

  constructor(path: string, source: Source) {
    this.#path = path;
    this.#source = source;
  }

  /** The next entry, its content not read yet; `null` at the end. */
  async next(): Promise<Entry | null> {
    // What headers before the entry's own say about it.
    let longName: string | undefined;
    let longSize: string | undefined;
    for (;;) {
      const header = await this.#source.take(BLOCK);
      if (header.length === 0 && this.#entries > 0) return null;
      if (header.length < BLOCK) throw this.failure("it is truncated, or not a tar archive");
      if (header.every((byte) => byte === 0)) return null;
      if (!hasChecksum(header)) throw this.failure("it is not a tar archive");
      this.#entries += 1;
      if (this.#entries > ENTRIES_MAX) throw this.failure(`it has over ${ENTRIES_MAX} entries`);
      const type = String.fromCharCode(header[156] ?? 0);
      const sizeBytes = longSize === undefined ? numberIn(header, 124, 12) : Number(longSize);
      if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
        throw this.failure("it has an entry without a size");
      if (!"LKxg".includes(type)) {
        const name = (longName ?? nameIn(header)).replace(/^(?:\.?\/)+/, "");
        const isFile = type === "0" || type === "\0" || type === "7";
        // Links and directories have no content, whatever their size field says.
        return { name, sizeBytes: "123456".includes(type) ? 0 : sizeBytes, isFile };
      }
      if (sizeBytes > HEADER_BYTES_MAX) throw this.failure("it has a header that is too long");
      const text = textOf(await this.content(sizeBytes));
      if (type === "L") longName = text.replace(/\0.*$/s, "");
      if (type === "x") {
        // Records of `LENGTH KEY=VALUE\n`; only the name and the size matter here.
        longName = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1] ?? longName;
        longSize = /(?:^|\n)\d+ size=(\d{1,15})\n/.exec(text)?.[1] ?? longSize;
      }
    }
  }

  async content(sizeBytes: number): Promise<Uint8Array> {
    const bytes = await this.#source.take(sizeBytes);
    if (bytes.length < sizeBytes) throw this.failure("it ends in the middle of a file");
    await this.skip(paddingOf(sizeBytes));
    return bytes;
  }

  async skip(count: number): Promise<void> {
    if (!(await this.#source.skip(count))) throw this.failure("it ends in the middle of a file");
  }

  failure(what: string): HostError {
    return new HostError(
      "parse",
      `cannot read the archive ${this.#path}: ${what}; create it again with docker save or ctr images export`,
    );
  }
}

const paddingOf = (sizeBytes: number): number => (BLOCK - (sizeBytes % BLOCK)) % BLOCK;

/** The field after it is a prefix of the name only in POSIX archives. */
function nameIn(header: Uint8Array): string {
  const prefix = fieldIn(header, 257, 6) === "ustar" ? fieldIn(header, 345, 155) : "";
  return `${prefix === "" ? "" : `${prefix}/`}${fieldIn(header, 0, 100)}`;
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
