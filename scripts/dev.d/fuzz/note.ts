// Where a process notes the input that it tries, in memory that another one sees: the last one before it hung or broke off.

import { readFileSync, writeFileSync } from "node:fs";

const HEAD = 8;
/** A longer input is noted by its beginning. */
const INPUT_MAX = 1 << 20;

export interface Note {
  readonly count: number;
  readonly input: Uint8Array;
}

export const createNote = (path: string): void =>
  writeFileSync(path, new Uint8Array(HEAD + INPUT_MAX));

export function readNote(path: string): Note {
  const bytes = readFileSync(path);
  return {
    count: bytes.readUInt32LE(0),
    input: bytes.subarray(HEAD, HEAD + bytes.readUInt32LE(4)),
  };
}

/** Notes each input before it is tried. */
export function noteWriter(path: string): (input: Uint8Array) => void {
  const bytes = Bun.mmap(path, { shared: true });
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let count = 0;
  return (input) => {
    const noted = input.subarray(0, INPUT_MAX);
    bytes.set(noted, HEAD);
    view.setUint32(4, noted.length, true);
    view.setUint32(0, (count += 1), true);
  };
}
