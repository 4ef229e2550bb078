/** Reads protobuf's wire format; rejects whatever exceeds the bounds of its message. */

/** A response that is not the expected message, or leaves something to guess. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

export const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** A 64-bit varint is kept in two numbers; the lower one has this many bits. */
const LOW_BITS = 28;
const LOW_BYTES = 4;

/** A position in a message; nothing nested may read past the message's end. */
export class Cursor {
  at: number;
  end: number;
  readonly #bytes: Buffer;
  #low = 0;
  #high = 0;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** Returns the number of the next field and sets `wireType`. */
  tag(): number {
    const tag = this.#length();
    this.wireType = tag % 8;
    const number = Math.floor(tag / 8);
    if (number === 0) throw new MalformedError("a field has the number 0");
    return number;
  }

  wireType = VARINT;

  /** Enters a message after its length; returns the end of the enclosing one, for `leave`. */
  enter(): number {
    const around = this.end;
    this.end = this.#past(this.#length());
    return around;
  }

  leave(around: number): void {
    this.end = around;
  }

  text(): string {
    const start = this.span();
    return this.slice(start, this.at);
  }

  /** Skips a string or message; returns where it begins, after its length. */
  span(): number {
    const length = this.#length();
    const end = this.#past(length);
    this.at = end;
    return end - length;
  }

  slice(start: number, end: number): string {
    return this.#bytes.toString("utf8", start, end);
  }

  /** The lowest 32 bits. */
  uint32(): number {
    this.#varint();
    return ((this.#high % 16) * 2 ** LOW_BITS + this.#low) >>> 0;
  }

  uint64(): bigint {
    this.#varint();
    return BigInt.asUintN(64, (BigInt(this.#high) << BigInt(LOW_BITS)) | BigInt(this.#low));
  }

  /** Skips a field of the wire type read last. */
  skip(): void {
    if (this.wireType === VARINT) this.#varint();
    else if (this.wireType === BYTES) this.span();
    else if (this.wireType === FIXED64) this.at = this.#past(8);
    else if (this.wireType === FIXED32) this.at = this.#past(4);
    // Groups predate proto3, in which CRI is written.
    else throw new MalformedError(`a field has wire type ${this.wireType}`);
  }

  /** Where that ends which `skip` passes over, by its own word: as far as it is one that may be long. */
  endOfField(): number {
    if (this.wireType !== BYTES) return this.at;
    const start = this.at;
    const end = this.#length() + this.at;
    this.at = start;
    return end;
  }

  /** A tag or a length, at most 32 bits. */
  #length(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 35; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80 && value < 2 ** 32) return value;
    }
    throw new MalformedError("a length is too large");
  }

  #varint(): void {
    this.#low = 0;
    this.#high = 0;
    let factor = 1;
    for (let count = 1; count <= 10; count += 1) {
      const byte = this.#byte();
      if (count <= LOW_BYTES) this.#low += (byte & 0x7f) * factor;
      else this.#high += (byte & 0x7f) * factor;
      if (byte < 0x80) return;
      factor = count === LOW_BYTES ? 1 : factor * 128;
    }
    throw new MalformedError("an integer is longer than ten bytes");
  }

  #byte(): number {
    const byte = this.at < this.end ? this.#bytes[this.at] : undefined;
    if (byte === undefined) throw new MalformedError("an integer is truncated");
    this.at += 1;
    return byte;
  }

  #past(length: number): number {
    const end = this.at + length;
    if (end > this.end)
      throw new MalformedError("a field is longer than the message that holds it");
    return end;
  }
}

/** A tag and an integer are never longer, so with this many bytes neither is truncated. */
const HEAD_BYTES = 16;

/** Cuts the entries of a list out of the response while it arrives, each as a message with this entry alone. */
export class EntryCutter {
  readonly #field: number;
  readonly #onEntry: (entry: Buffer) => void;
  /** Of the field that has begun. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** With so many bytes of it, it is worth while to look. */
  #neededBytes = 0;

  constructor(field: number, onEntry: (entry: Buffer) => void) {
    this.#field = field;
    this.#onEntry = onEntry;
  }

  /** `isLast`: the answer ends with this piece, and another one may begin. Only what lies across pieces is put together. */
  push(piece: Buffer, isLast: boolean): void {
    let at = 0;
    while (this.#bytes > 0) {
      const begunBytes = this.#bytes;
      const more = piece.subarray(at, at + this.#neededBytes - begunBytes);
      this.#keep(more);
      const isEnd = isLast && at + more.length === piece.length;
      if (this.#bytes < this.#neededBytes && !isEnd) return;
      const begun = Buffer.concat(this.#pieces);
      const cut = this.#cut(begun, isEnd);
      this.#pieces = [];
      this.#bytes = 0;
      if (cut >= begunBytes) at += cut - begunBytes;
      else {
        at += more.length;
        this.#keep(begun.subarray(cut));
      }
    }
    const rest = at === 0 ? piece : piece.subarray(at);
    this.#keep(rest.subarray(this.#cut(rest, isLast)));
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(Buffer.from(bytes));
    this.#bytes += bytes.length;
  }

  /** Returns where the first incomplete field begins. */
  #cut(answer: Buffer, isLast: boolean): number {
    const cursor = new Cursor(answer);
    let start = 0;
    this.#neededBytes = HEAD_BYTES;
    while (isLast ? cursor.at < cursor.end : cursor.end - cursor.at >= HEAD_BYTES) {
      const isEntry = cursor.tag() === this.#field;
      if (isEntry && cursor.wireType !== BYTES)
        throw new MalformedError(`an entry of a list has wire type ${cursor.wireType}`);
      const end = cursor.endOfField();
      if (!isLast && end > cursor.end) {
        this.#neededBytes = end - start;
        break;
      }
      cursor.skip();
      if (isEntry) this.#onEntry(answer.subarray(start, cursor.at));
      start = cursor.at;
    }
    return start;
  }
}
