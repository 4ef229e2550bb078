/** Writes standard output and standard error completely, and keeps the first error of each. */

import { fstatSync, writeSync } from "node:fs";
import { isatty } from "node:tty";

import { codeOf } from "./files.ts";
import { collectIfGrown } from "./process.ts";

/** How long to retry a file that answers "try again". No disk does; a device may. */
const RETRY_MS = 5_000;
const RETRY_PAUSE_MS = 10;

type OutputStream = NodeJS.WriteStream & { readonly fd: number };

export class Output {
  readonly #stream: OutputStream;
  readonly #isFile: boolean;
  #failure: unknown = null;

  constructor(stream: OutputStream) {
    this.#stream = stream;
    this.#isFile = isFile(stream.fd);
    stream.on("error", (error: unknown) => this.#note(error));
  }

  /** The first write error; `null` if there was none. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Never throws. Later writes are tried even after a failure: a log continues once its disk has room. */
  write(text: string, done: () => void = () => undefined): void {
    if (!this.#isFile) {
      this.#stream.write(text, (error) => {
        this.#note(error ?? null);
        done();
      });
      return;
    }
    try {
      writeWhole(this.#stream.fd, Buffer.from(text));
    } catch (error) {
      this.#note(error);
    }
    done();
  }

  /**
   * As fast as a pipe accepts it, so that only a piece of a long text is held; once `signal` aborts, it no longer waits
   * for a reader.
   */
  async writeAll(pieces: Iterable<string>, signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    for (const piece of pieces) {
      collectIfGrown();
      const taken = new Promise<void>((resolve) => this.write(piece, resolve));
      if (!this.#isFile) await Promise.race([taken, stopped]);
    }
  }

  /** Resolves when a pipe has accepted everything: exiting earlier would cut off what is beyond its 64 KiB. */
  async close(): Promise<void> {
    if (!this.#isFile) await new Promise<void>((resolve) => this.#stream.end(() => resolve()));
  }

  #note(error: unknown): void {
    this.#failure ??= error;
  }
}

/**
 * On a file that accepts nothing more (a full disk, /dev/full), Bun's stream loses the error of one write and retries
 * the others forever. Pipes, sockets and terminals still use it: their readers may be slow, and waiting for one must
 * not stop the agent.
 */
function isFile(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return !stats.isFIFO() && !stats.isSocket() && !isatty(fd);
  } catch {
    return true;
  }
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  const giveUpAt = performance.now() + RETRY_MS;
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      const again = codeOf(error) === "EINTR" || codeOf(error) === "EAGAIN";
      if (!again || performance.now() > giveUpAt) throw error;
      Bun.sleepSync(RETRY_PAUSE_MS);
    }
  }
}
