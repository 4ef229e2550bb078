/** SHA-256, to compare entries of a list by their bytes, and for layer chains. */

const digest = new Uint8Array(32);
const words = new Int32Array(digest.buffer);

/** As eight numbers, until it is called again. */
export function digestOf(bytes: Buffer): Int32Array {
  Bun.SHA256.hash(bytes, digest);
  return words;
}

export const digestOfText = (text: string): string => Bun.SHA256.hash(text, "hex");
