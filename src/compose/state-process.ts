/**
 * Ledger and history in a process of their own, beside the one that collects: SQLite waits for its disk within the thread that
 * calls it, and a thread that waits for a disk that hangs cannot even be ended. Requests and replies are lines of JSON.
 */

import { readClocks } from "../host/clock.ts";
import { stateFiles } from "../host/state-files.ts";
import { HostError } from "../model/errors.ts";
import type { LedgerRow } from "../store/ledger.ts";
import {
  type StateChannel,
  StateFile,
  type StateReply,
  type StateRequest,
} from "../store/state-file.ts";

/** The word by which the executable is started as that process; not for people. */
export const STATE_PROCESS = "__state";

type Line =
  | { readonly kind: "rows"; readonly rows: readonly LedgerRow[] }
  | { readonly kind: "reply"; readonly reply: StateReply };

/** Answers until its input ends. */
export async function runStateProcess(directory: string): Promise<void> {
  const file = new StateFile({ directory, files: stateFiles, now: () => readClocks().wall });
  const out = Bun.stdout.writer();
  const tell = (line: Line): void => void out.write(`${JSON.stringify(line)}\n`);
  for await (const text of linesOf(Bun.stdin.stream())) {
    // Both ends are this program, of the same build; the last line is cut off where whoever wrote it was killed.
    const request = requestOf(text);
    if (request === null) break;
    const reply = file.handle(request, (rows) => tell({ kind: "rows", rows }));
    tell({ kind: "reply", reply });
    try {
      await out.flush();
    } catch {
      // Whoever asked is gone, and what it left to be written is written all the same.
    }
  }
  file.close();
}

function requestOf(text: string): StateRequest | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export interface StateProcessOptions {
  /** What starts this program: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
  readonly directory: string;
}

/** Starts the process with the first request, and again where it has ended. */
export function processChannel(options: StateProcessOptions): StateChannel {
  let child: StateChild | null = null;
  return {
    ask: async (request, onRows) => {
      if (child === null || child.hasEnded) child = new StateChild(options);
      return await child.ask(request, onRows);
    },
    close: async (last) => child?.end(last),
  };
}

class StateChild {
  readonly #lines: AsyncIterator<string>;
  readonly #input: { write(text: string): unknown; flush(): unknown; end(): unknown };
  hasEnded = false;

  constructor({ program, directory }: StateProcessOptions) {
    const child = Bun.spawn([...program, STATE_PROCESS, directory], {
      // Nobody may wait for it: neither the reader of our messages, nor who unmounts our working directory.
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: {},
      onExit: () => {
        this.hasEnded = true;
      },
    });
    child.unref();
    this.#input = child.stdin;
    this.#lines = linesOf(child.stdout)[Symbol.asyncIterator]();
  }

  async ask(
    request: StateRequest,
    onRows: (rows: readonly LedgerRow[]) => void,
  ): Promise<StateReply> {
    this.#input.write(`${JSON.stringify(request)}\n`);
    this.#input.flush();
    for (;;) {
      const { done, value } = await this.#lines.next();
      if (done === true) break;
      const line: Line = JSON.parse(value);
      if (line.kind === "reply") return line.reply;
      onRows(line.rows);
    }
    this.hasEnded = true;
    throw new HostError("read", "the process that keeps the ledger ended");
  }

  async end(last: StateRequest | null): Promise<void> {
    if (last !== null) this.#input.write(`${JSON.stringify(last)}\n`);
    await this.#input.end();
  }
}

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const chunk of stream) {
    const [first = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    rest.push(first);
    for (const line of lines) {
      yield rest.join("");
      rest = [line];
    }
  }
}
