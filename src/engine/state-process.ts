/**
 * Ledger and history in a separate process: SQLite blocks the thread that calls it while it waits for its disk, and a thread
 * blocked by a hanging disk cannot even be ended. Requests and replies are lines of JSON.
 */

import { tmpdir } from "node:os";

import { HostError } from "../model/errors.ts";
import { wallClock } from "../node/clock.ts";
import type { LedgerRow } from "../store/ledger-rows.ts";
import { StateFile } from "../store/state-file.ts";
import type { StateChannel, StateReply, StateRequest } from "../store/state-request.ts";
import { STATE_PROCESS } from "./world.ts";

type Line =
  | { readonly kind: "rows"; readonly rows: readonly LedgerRow[] }
  | { readonly kind: "reply"; readonly reply: StateReply };

/** Serves requests until its input ends. */
export async function runStateProcess(directory: string): Promise<void> {
  using file = new StateFile({ directory, now: () => wallClock() });
  const out = Bun.stdout.writer();
  // The requester may be gone; its pending records are still written.
  const send = async (line: Line): Promise<void> => {
    try {
      await out.write(`${JSON.stringify(line)}\n`);
      await out.flush();
    } catch {}
  };
  for await (const text of linesOf(Bun.stdin.stream())) {
    // Both ends are the same build; only the last line may be truncated, if its writer was killed.
    const request: StateRequest | null = parsedLine(text);
    if (request === null) break;
    const reply = file.handle(request, (rows) => void send({ kind: "rows", rows }));
    await send({ kind: "reply", reply });
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

interface PendingRequest {
  readonly onRows: (rows: readonly LedgerRow[]) => void;
  readonly resolve: (reply: StateReply) => void;
  readonly reject: (error: HostError) => void;
}

class StateChild {
  readonly #exited: Promise<number>;
  readonly #input: { write(text: string): unknown; flush(): unknown; end(): unknown };
  /** Answers come in the order of the requests. */
  #pending: PendingRequest[] = [];
  hasEnded = false;

  constructor({ program, directory }: StateProcessOptions) {
    const child = Bun.spawn([...program, STATE_PROCESS, directory], {
      // A hanging process must not keep our stderr or working directory open.
      stdio: ["pipe", "pipe", "pipe"],
      cwd: "/",
      // For the copy of a file that cannot be read in place.
      env: { TMPDIR: tmpdir() },
    });
    child.unref();
    this.#exited = child.exited;
    this.#input = child.stdin;
    const tail = stderrTail(child.stderr);
    void this.#listen(child.stdout).then(async (fault) => {
      this.hasEnded = true;
      if (fault !== "") child.kill("SIGKILL");
      this.#reject(fault === "" ? await tail : fault);
    });
  }

  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ onRows, resolve, reject });
      this.#send(request);
    });
  }

  async end(last: readonly StateRequest[]): Promise<void> {
    for (const request of last) this.#send(request);
    await this.#input.end();
    await this.#exited;
  }

  #send(request: StateRequest): void {
    // A process that ended is noticed by the end of its output, with what it printed.
    try {
      for (const piece of lineOf(request)) this.#input.write(piece);
      Promise.resolve(this.#input.flush()).catch(() => undefined);
    } catch {}
  }

  /** Returns the fault of a line; an empty text: the output ended. */
  async #listen(output: AsyncIterable<Uint8Array>): Promise<string> {
    for await (const text of linesOf(output)) {
      const line: Line | null = parsedLine(text);
      if (line?.kind !== "rows" && line?.kind !== "reply")
        return `it sent ${JSON.stringify(text.slice(0, 100))}`;
      if (line.kind === "rows") this.#pending[0]?.onRows(line.rows);
      else this.#pending.shift()?.resolve(line.reply);
    }
    return "";
  }

  #reject(why: string): void {
    const pending = this.#pending;
    this.#pending = [];
    const message = `the ledger process ended${why === "" ? "" : `: ${why}`}`;
    for (const { reject } of pending) reject(new HostError("read", message));
  }
}

/** `null`: not JSON. */
function parsedLine(text: string): ReturnType<typeof JSON.parse> {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const STDERR_CHARACTERS = 1000;

/** The end of what a process that crashed printed, on one line. */
async function stderrTail(stderr: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let end = "";
  for await (const chunk of stderr)
    end = (end + decoder.decode(chunk, { stream: true })).slice(-STDERR_CHARACTERS);
  return end.replaceAll(/\s+/g, " ").trim();
}

const ROWS_OF_PIECE = 256;

/** In pieces: a first ledger has megabytes, and as one text it would be in memory several times. */
function* lineOf(request: StateRequest): Generator<string> {
  if (request.kind !== "ledger") return yield `${JSON.stringify(request)}\n`;
  const { changes, ...head } = request;
  yield JSON.stringify({ ...head, changes: [] }).slice(0, -"]}".length);
  for (let at = 0; at < changes.length; at += ROWS_OF_PIECE) {
    const rows = JSON.stringify(changes.slice(at, at + ROWS_OF_PIECE)).slice(1, -1);
    yield at === 0 ? rows : `,${rows}`;
  }
  yield "]}\n";
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
