/**
 * Ledger and history in a separate process: SQLite blocks the thread that calls it while it waits for its disk, and a thread
 * blocked by a hanging disk cannot even be ended. Requests and replies are lines of JSON.
 */

import { giveBack, MUCH } from "../host/process/memory.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { wallClock } from "../host/time/clock.ts";
import { HostError } from "../model/errors.ts";
import { StateFile } from "../store/file/state-file.ts";
import type { StateChannel, StateReply, StateRequest } from "../store/file/state-request.ts";
import type { LedgerRow } from "../store/ledger/ledger.ts";
import { STATE_PROCESS } from "./state-word.ts";

type Line =
  | { readonly kind: "rows"; readonly rows: readonly LedgerRow[] }
  | { readonly kind: "reply"; readonly reply: StateReply };

/** Serves requests until its input ends. */
export async function runStateProcess(directory: string): Promise<void> {
  using file = new StateFile({ directory, files: stateFiles, now: () => wallClock() });
  const out = Bun.stdout.writer();
  // The requester may be gone; its pending records are still written.
  const tell = async (line: Line): Promise<void> => {
    try {
      await out.write(`${JSON.stringify(line)}\n`);
      await out.flush();
    } catch {}
  };
  for await (const text of linesOf(Bun.stdin.stream())) {
    // Both ends are the same build; only the last line may be truncated, if its writer was killed.
    const request = requestOf(text);
    if (request === null) break;
    const reply = file.handle(request, (rows) => void tell({ kind: "rows", rows }));
    await tell({ kind: "reply", reply });
  }
}

function requestOf(text: string): StateRequest | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export interface StateProcessOptions {
  /** Command that starts this program: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
  readonly directory: string;
}

/** Starts the process on the first request, and again if it ended. */
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

interface Asked {
  readonly onRows: (rows: readonly LedgerRow[]) => void;
  readonly resolve: (reply: StateReply) => void;
  readonly reject: (error: HostError) => void;
}

class StateChild {
  readonly #exited: Promise<number>;
  readonly #input: { write(text: string): unknown; flush(): unknown; end(): unknown };
  /** Answers come in the order of the requests. */
  #asked: Asked[] = [];
  hasEnded = false;

  constructor({ program, directory }: StateProcessOptions) {
    const child = Bun.spawn([...program, STATE_PROCESS, directory], {
      // A hanging process must not keep our stderr or working directory open.
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: {},
    });
    child.unref();
    this.#exited = child.exited;
    this.#input = child.stdin;
    void this.#listen(child.stdout);
  }

  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ onRows, resolve, reject });
      for (const piece of lineOf(request)) this.#input.write(piece);
      this.#input.flush();
    });
  }

  async end(last: readonly StateRequest[]): Promise<void> {
    for (const request of last) for (const piece of lineOf(request)) this.#input.write(piece);
    await this.#input.end();
    await this.#exited;
  }

  async #listen(output: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const text of linesOf(output)) {
      const line: Line = JSON.parse(text);
      giveBack(MUCH / 8);
      if (line.kind === "rows") this.#asked[0]?.onRows(line.rows);
      else this.#asked.shift()?.resolve(line.reply);
    }
    this.hasEnded = true;
    const unanswered = this.#asked;
    this.#asked = [];
    for (const { reject } of unanswered) reject(new HostError("read", "the ledger process exited"));
  }
}

const ROWS_OF_PIECE = 256;

/** In pieces: a first ledger has megabytes, and as one text it would be in memory several times. */
function* lineOf(request: StateRequest): Generator<string> {
  if (request.kind !== "write") return yield `${JSON.stringify(request)}\n`;
  const { changes, ...head } = request;
  const { puts, drops } = changes;
  yield JSON.stringify({ ...head, changes: { drops, puts: [] } }).slice(0, -"]}}".length);
  for (let at = 0; at < puts.length; at += ROWS_OF_PIECE) {
    const rows = JSON.stringify(puts.slice(at, at + ROWS_OF_PIECE)).slice(1, -1);
    yield at === 0 ? rows : `,${rows}`;
  }
  yield "]}}\n";
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
