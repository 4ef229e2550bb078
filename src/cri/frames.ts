/** gRPC's framing of messages in a stream of bytes. */
import { CallError } from "./errors.ts";

/** The largest message that runtimes send. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;

/** A message is preceded by a flag (not compressed) and its length. */
const PREFIX_BYTES = 5;

/** The bytes of one message after the other, each piece only until this returns; the last of a message may be empty. */
export type OnPiece = (piece: Buffer, isLast: boolean) => void;

/** Joins pieces, so that `onMessage` gets whole messages. */
export function wholeMessages(onMessage: (bytes: Buffer) => void): OnPiece {
  let pieces: Buffer[] = [];
  return (piece, isLast) => {
    pieces.push(Buffer.from(piece));
    if (!isLast) return;
    const [first = piece, ...others] = pieces;
    const message = others.length === 0 ? first : Buffer.concat(pieces);
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

/** Strips the prefixes. */
export class Frames {
  readonly #onPiece: OnPiece;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** Of the current message. */
  #missingBytes = 0;

  constructor(onPiece: OnPiece) {
    this.#onPiece = onPiece;
  }

  /** No message is incomplete. */
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
    throw new CallError("INTERNAL", "a message is compressed, which crigc did not request");
  const length = prefix.readUInt32BE(1);
  if (length > MESSAGE_LIMIT_BYTES)
    throw new CallError(
      "RESOURCE_EXHAUSTED",
      `larger than max (${length} vs. ${MESSAGE_LIMIT_BYTES})`,
    );
  return length;
}
