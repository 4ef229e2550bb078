/** How gRPC puts messages into a stream of bytes. */
import { CallError } from "./errors.ts";

/** What runtimes send at most. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;

/** A flag (nothing is compressed) and the length stand before each message. */
const PREFIX_BYTES = 5;

/** Bytes of one message after the other, in their order; the last piece of a message may be empty. */
export type OnPiece = (piece: Buffer, isLast: boolean) => void;

/** Messages as wholes: one that came in several pieces is put together once. */
export function wholeMessages(onMessage: (bytes: Buffer) => void): OnPiece {
  let pieces: Buffer[] = [];
  return (piece, isLast) => {
    pieces.push(piece);
    if (!isLast) return;
    const message = pieces.length === 1 ? piece : Buffer.concat(pieces);
    pieces = [];
    onMessage(message);
  };
}

export function framed(message: Buffer): Buffer {
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, PREFIX_BYTES);
  return frame;
}

/** Takes the prefixes out of what comes. */
export class Frames {
  readonly #onPiece: OnPiece;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** Of the message that has begun. */
  #missingBytes = 0;

  constructor(onPiece: OnPiece) {
    this.#onPiece = onPiece;
  }

  /** Nothing has begun that did not end. */
  get isEmpty(): boolean {
    return this.#prefixBytes === 0;
  }

  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        const copied = bytes.copy(this.#prefix, this.#prefixBytes, at);
        this.#prefixBytes += copied;
        at += copied;
        if (this.#prefixBytes < PREFIX_BYTES) return;
        this.#missingBytes = lengthIn(this.#prefix);
      }
      const piece = bytes.subarray(at, at + this.#missingBytes);
      at += piece.length;
      this.#missingBytes -= piece.length;
      const isLast = this.#missingBytes === 0;
      if (isLast) this.#prefixBytes = 0;
      this.#onPiece(piece, isLast);
    }
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
