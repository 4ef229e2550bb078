/** SHA-256: to tell entries of a list apart by their bytes, and for the chains of layers. */

const buffer = Buffer.alloc(32);

/** As text of one byte a character, for a map. */
export function digestOf(bytes: Buffer): string {
  Bun.SHA256.hash(bytes, buffer);
  return buffer.toString("latin1");
}

/** Of a text, in hex. */
export const digestOfText = (text: string): string => {
  Bun.SHA256.hash(text, buffer);
  return buffer.toString("hex");
};
