// Writes tar entries: just enough of the format for layers and image archives.

/** What stands before the content of a regular file, or the whole of a directory or link. */
export interface TarEntry {
  /** At most 100 bytes. */
  readonly name: string;
  readonly kind?: "file" | "directory" | "symlink";
  readonly mode?: number;
  readonly sizeBytes?: number;
  /** At most 100 bytes. */
  readonly linkTarget?: string;
}

const blockBytes = 512;
const typeFlags = { file: "0", directory: "5", symlink: "2" } as const;

/** The header block. Owner and time are always zero, so that equal content gives equal digests. */
export function tarHeader(entry: TarEntry): Uint8Array {
  const { name, kind = "file", sizeBytes = 0, linkTarget = "" } = entry;
  for (const text of [name, linkTarget])
    if (text.length > 100) throw new Error(`tar holds names of 100 bytes at most: ${text}`);
  const header = Buffer.alloc(blockBytes);
  const octal = (offset: number, value: number, width: number): unknown =>
    header.write(`${value.toString(8).padStart(width - 1, "0")}\u0000`, offset);
  header.write(name, 0);
  octal(100, entry.mode ?? (kind === "file" ? 0o644 : 0o755), 8);
  octal(108, 0, 8);
  octal(116, 0, 8);
  octal(124, kind === "file" ? sizeBytes : 0, 12);
  octal(136, 0, 12);
  // The sum of the header's bytes, with its own field read as spaces.
  header.fill(" ", 148, 156);
  header.write(typeFlags[kind], 156);
  header.write(linkTarget, 157);
  header.write("ustar\u000000", 257);
  octal(
    148,
    header.reduce((total, byte) => total + byte, 0),
    7,
  );
  return header;
}

/** What rounds content of `sizeBytes` up to a whole block. */
export const tarPadding = (sizeBytes: number): Uint8Array =>
  new Uint8Array((blockBytes - (sizeBytes % blockBytes)) % blockBytes);

export function tarFile(
  name: string,
  content: string | Uint8Array,
  mode = 0o644,
): readonly Uint8Array[] {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return [tarHeader({ name, mode, sizeBytes: bytes.length }), bytes, tarPadding(bytes.length)];
}

/** Two empty blocks. */
export const tarEnd = new Uint8Array(2 * blockBytes);
