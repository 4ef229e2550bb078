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
  const kind = entry.kind ?? "file";
  const header = new Uint8Array(blockBytes);
  const put = (offset: number, text: string): void => {
    header.set(new TextEncoder().encode(text), offset);
  };
  put(0, fieldText(entry.name));
  put(100, octal(entry.mode ?? (kind === "file" ? 0o644 : 0o755), 8));
  put(108, octal(0, 8));
  put(116, octal(0, 8));
  put(124, octal(kind === "file" ? (entry.sizeBytes ?? 0) : 0, 12));
  put(136, octal(0, 12));
  put(156, typeFlags[kind]);
  put(157, fieldText(entry.linkTarget ?? ""));
  put(257, "ustar\u000000");
  put(148, `${octal(checksum(header), 7)} `);
  return header;
}

/** What rounds content of `sizeBytes` up to a whole block. */
export function tarPadding(sizeBytes: number): Uint8Array {
  return new Uint8Array((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
}

/** Two empty blocks. */
export const tarEnd = new Uint8Array(2 * blockBytes);

function fieldText(text: string): string {
  if (text.length > 100) throw new Error(`tar holds names of 100 bytes at most: ${text}`);
  return text;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\u0000`;
}

/** The sum of the header's bytes, with its own field read as spaces. */
function checksum(header: Uint8Array): number {
  const sum = header.reduce((total, byte) => total + byte, 0);
  return sum + 8 * 0x20;
}
