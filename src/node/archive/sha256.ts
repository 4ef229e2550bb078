// SHA-256 sums, in hex.

import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";

export function sha256OfText(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** Reads in pieces: an executable is too large to hold in memory at once. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  await pipeline(createReadStream(path), async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) hash.update(chunk);
  });
  return hash.digest("hex");
}
