/** Runs the command lines that arrive on the control socket, and sends back what they print, one JSON object a line. */

import type { IncomingMessage, ServerResponse } from "node:http";

import * as v from "valibot";

import { VERSION_HEADER } from "../engine/client.ts";
import type { CommandRequest, Owner, RunCommand } from "../engine/owner.ts";
import { messageOf } from "../model/errors.ts";
import { timer } from "../node/clock.ts";
import { boundedBytes } from "../node/files.ts";
import { type HealthCheck, plain, respond } from "./http.ts";

const BODY_BYTES_MAX = 64 * 1024;
/** At once; one of them a pass. */
const COMMANDS_MAX = 8;
/** Between two signs of life for the client. */
const BEAT_MS = 5_000;
/** Output that a client has not read: more than the largest report. */
const HELD_BYTES_MAX = 64 << 20;
/** How long a client may take to read the rest after the command has ended. */
const REST_MS = 30_000;

const Body = v.object({
  id: v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/)),
  argv: v.array(v.string()),
  width: v.optional(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)))),
  colour: v.optional(v.boolean(), false),
  unicode: v.optional(v.boolean(), false),
  user: v.optional(v.pipe(v.string(), v.maxLength(64)), "unknown"),
});
type CommandBody = v.InferOutput<typeof Body>;

export interface CommandServerOptions {
  readonly version: string;
  readonly run: RunCommand;
  /** Throws what the command then ends with. `progressed` is called for each step and removal. */
  readonly owner: (progressed: () => void) => Owner;
  /** Aborts when the agent stops. */
  readonly stop: AbortSignal;
  readonly onError: (message: string) => void;
}

interface RunningCommand {
  readonly name: string;
  readonly abort: () => void;
  readonly done: Promise<void>;
  /** When it last printed, ended a step or removed something. */
  progressNs: bigint;
}

export class CommandServer {
  readonly #options: CommandServerOptions;
  readonly #running = new Map<string, RunningCommand>();

  constructor(options: CommandServerOptions) {
    this.#options = options;
  }

  /** `POST /commands` begins a command, `DELETE /commands/ID` ends it. */
  async answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const [, id] = /^\/commands\/([\w-]+)$/.exec(path) ?? [];
    if (request.method === "DELETE" && id !== undefined) {
      const running = this.#running.get(id);
      running?.abort();
      return reject(
        response,
        running === undefined ? 404 : 200,
        running === undefined ? "unknown command\n" : "ending\n",
      );
    }
    if (request.method !== "POST" || path !== "/commands")
      return reject(
        response,
        405,
        "unsupported method; use POST /commands or DELETE /commands/ID\n",
      );
    const body = await bodyOf(request);
    if (body === null)
      return reject(response, 400, "invalid request: expected id and argv as JSON\n");
    const { version, stop } = this.#options;
    const theirs = request.headers[VERSION_HEADER] ?? version;
    if (theirs !== version)
      return reject(response, 409, `the running agent is ${version}; restart it\n`);
    if (stop.aborted) return reject(response, 503, "the agent is stopping\n");
    if (this.#running.size >= COMMANDS_MAX || this.#running.has(body.id))
      return reject(
        response,
        503,
        `the agent already runs ${this.#running.size} commands; try again\n`,
      );
    this.#begin(body, response);
  }

  /** Commands without a sign of progress for `patienceMs`. */
  health(patienceMs: number): readonly HealthCheck[] {
    return Array.from(this.#running.values(), ({ name, progressNs }) => {
      const forMs = Number((timer.monotonicNs() - progressNs) / 1_000_000n);
      const problem = forMs <= patienceMs ? null : `no progress for ${Math.round(forMs / 1000)} s`;
      return { name: `command ${name}`, problem };
    });
  }

  /** After the agent was told to stop: each command ends with its report. */
  async ended(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ done }) => done));
  }

  #begin(body: CommandBody, response: ServerResponse): void {
    const { id, argv, width = null, colour, unicode, user } = body;
    const gone = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const running: RunningCommand = {
      name: argv[0] ?? "",
      abort: () => gone.abort(),
      done,
      progressNs: timer.monotonicNs(),
    };
    this.#running.set(id, running);
    const progressed = (): void => void (running.progressNs = timer.monotonicNs());
    const stream = new LineStream(response, () => gone.abort());
    const say = (line: object): void => {
      progressed();
      stream.write(line);
    };
    const beat = setInterval(() => stream.write({}), BEAT_MS);
    void this.#run({
      argv,
      screen: { width, colour, unicode },
      user,
      signal: AbortSignal.any([gone.signal, this.#options.stop]),
      stdout: (text) => say({ out: text }),
      stderr: (text) => say({ err: text }),
      owner: () => this.#options.owner(progressed),
    })
      .then((code) => {
        clearInterval(beat);
        this.#running.delete(id);
        return stream.end({ exit: code });
      })
      .finally(resolve);
  }

  async #run(request: CommandRequest): Promise<number> {
    try {
      return await this.#options.run(request);
    } catch (thrown) {
      this.#options.onError(`a command failed: ${messageOf(thrown)}`);
      request.stderr(`crigc: internal error: ${messageOf(thrown)}\n`);
      return 1;
    }
  }
}

/** `lost` is called once if the client goes away, or does not read. */
class LineStream {
  readonly #response: ServerResponse;
  readonly #lost: () => void;
  #isOver = false;

  constructor(response: ServerResponse, lost: () => void) {
    this.#response = response;
    this.#lost = lost;
    response.writeHead(200, { "content-type": "application/x-ndjson", connection: "close" });
    response.on("close", () => this.#close());
    // The client waits for a sign that it was accepted.
    this.write({});
  }

  write(line: object): void {
    if (this.#isOver) return;
    this.#response.write(`${JSON.stringify(line)}\n`);
    if (this.#response.writableLength > HELD_BYTES_MAX) this.#response.destroy();
  }

  /** Resolves once the client has read it, or has had time to. */
  async end(line: object): Promise<void> {
    if (this.#isOver) return;
    this.write(line);
    const read = Promise.withResolvers<void>();
    this.#response.on("close", () => read.resolve());
    this.#response.end();
    const patience = setTimeout(() => this.#response.destroy(), REST_MS);
    await read.promise;
    clearTimeout(patience);
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#lost();
  }
}

/** `null`: invalid or too long. */
async function bodyOf(request: IncomingMessage): Promise<CommandBody | null> {
  try {
    const text = (await boundedBytes(request, BODY_BYTES_MAX)).toString("utf8");
    const parsed = v.safeParse(Body, JSON.parse(text));
    return parsed.success ? parsed.output : null;
  } catch {
    return null;
  }
}

const reject = (response: ServerResponse, status: number, body: string): void =>
  respond(response, plain(status, body));
