/** Cuts the entries out of a list's answer without decoding them: the library decodes only those that are new. */
import { MalformedError } from "./malformed.ts";

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
/** A tag of more bits could pass an entry off as an unknown field, which is skipped. */
const FIELD_MAX = 2 ** 29 - 1;

/** Every entry as a message that holds nothing else: with its tag, so that the codec of the whole list reads it. */
export function cutEntries(answer: Buffer, fieldNumber: number): readonly Buffer[] {
  const cursor = new Cursor(answer);
  const entries: Buffer[] = [];
  while (cursor.at < answer.length) {
    const start = cursor.at;
    const tag = cursor.integer();
    const field = Math.floor(tag / 8);
    if (field < 1 || field > FIELD_MAX) throw new MalformedError(`a field has the number ${field}`);
    const isEntry = field === fieldNumber;
    if (isEntry && tag % 8 !== BYTES)
      throw new MalformedError(`an entry of a list has the wire type ${tag % 8}`);
    cursor.skip(tag % 8);
    if (isEntry) entries.push(answer.subarray(start, cursor.at));
  }
  return entries;
}

class Cursor {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** A tag or a length: at most 53 bits, of which an answer that fits into memory needs 32. */
  integer(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 49; factor *= 128) {
      const byte = this.#bytes[this.at];
      if (byte === undefined) throw new MalformedError("an integer is cut off");
      this.at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new MalformedError("an integer is longer than a length can be");
  }

  skip(wireType: number): void {
    if (wireType === VARINT) this.#skipVarint();
    else if (wireType === BYTES) this.#skipBytes(this.integer());
    else if (wireType === FIXED64) this.#skipBytes(8);
    else if (wireType === FIXED32) this.#skipBytes(4);
    // Groups are older than proto3, in which CRI is written.
    else throw new MalformedError(`a field has the wire type ${wireType}`);
  }

  #skipBytes(count: number): void {
    this.at += count;
    if (this.at > this.#bytes.length)
      throw new MalformedError("a field is longer than the answer that holds it");
  }

  #skipVarint(): void {
    for (let length = 1; length <= 10; length += 1) {
      const byte = this.#bytes[this.at];
      if (byte === undefined) throw new MalformedError("an integer is cut off");
      this.at += 1;
      if (byte < 0x80) return;
    }
    throw new MalformedError("an integer is longer than ten bytes");
  }
}
