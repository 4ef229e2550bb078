/** Reads a file sequentially, decompressing it if necessary. Skipped parts of an uncompressed file are not read. */

import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";

import { HostError } from "../../model/errors.ts";
import { reasonOf } from "../files/errno.ts";

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
