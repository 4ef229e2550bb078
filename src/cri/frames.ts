/** How gRPC puts messages into a stream of bytes. */
import { CallError } from "./errors.ts";

/** What runtimes send at most. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
/** A flag (nothing is compressed) and the length stand before each message. */
const PREFIX_BYTES = 5;

export function framed(message: Buffer): Buffer {
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, PREFIX_BYTES);
  return frame;
}

/** Cuts messages out of what comes; one that came in several pieces is put together once, when it is whole. */
export class Frames {
  readonly #onMessage: (bytes: Buffer) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Of the message that has begun. */
  #length: number | null = null;

  constructor(onMessage: (bytes: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  /** Nothing has begun that did not end. */
  get isEmpty(): boolean {
    return this.#bytes === 0 && this.#length === null;
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    for (;;) {
      if (this.#length === null) {
        if (this.#bytes < PREFIX_BYTES) return;
        this.#length = lengthIn(this.#take(PREFIX_BYTES));
      }
      if (this.#bytes < this.#length) return;
      const message = this.#take(this.#length);
      this.#length = null;
      this.#onMessage(message);
    }
  }

  #take(count: number): Buffer {
    const [first = Buffer.alloc(0)] = this.#pieces;
    const all = this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces);
    this.#bytes = all.length - count;
    this.#pieces = this.#bytes === 0 ? [] : [all.subarray(count)];
    return all.subarray(0, count);
  }
}

function lengthIn(prefix: Buffer): number {
  if (prefix[0] !== 0)
    throw new CallError("INTERNAL", "a message is compressed, although nobody asked for that");
  const length = prefix.readUInt32BE(1);
  if (length > MESSAGE_LIMIT_BYTES)
    throw new CallError(
      "RESOURCE_EXHAUSTED",
      `larger than max (${length} vs. ${MESSAGE_LIMIT_BYTES})`,
    );
  return length;
}
