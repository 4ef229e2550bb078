/** Runs the command lines that arrive on the control socket, and sends back what they print, one JSON object a line. */

import type { IncomingMessage, ServerResponse } from "node:http";

import * as v from "valibot";

import { VERSION_HEADER } from "../engine/client.ts";
import type { Owner, RunCommand } from "../engine/owner.ts";
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

/** What the client sends. */
const Body = v.object({
  id: v.pipe(v.string(), v.regex(/^[\w-]+$/)),
  /** The runtime that the caller names; `null`: any. */
  endpoint: v.nullable(v.string()),
  argv: v.array(v.string()),
  width: v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1))),
  colour: v.optional(v.boolean(), false),
  user: v.string(),
  /** When its caller gives up, by the wall clock. */
  untilMs: v.number(),
});
type CommandBody = v.InferOutput<typeof Body>;

export interface CommandServerOptions {
  readonly version: string;
  /** Must not reject. */
  readonly run: RunCommand;
  /** Whether the agent holds, or is about to hold, the runtime that a caller names; `null`: any. */
  readonly holds: (endpoint: string | null) => boolean;
  /** Throws what the command then ends with. `progressed` is called for each step and removal. */
  readonly owner: (progressed: () => void) => Owner;
  /** Aborts when the agent stops. */
  readonly stop: AbortSignal;
}

interface RunningCommand {
  readonly name: string;
  /** Ends the command after its removal in flight. */
  readonly end: AbortController;
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
    const refuse = (status: number, why: string): void => respond(response, plain(status, why));
    const [, id] = /^\/commands\/([\w-]+)$/.exec(path) ?? [];
    if (request.method === "DELETE" && id !== undefined) {
      this.#running.get(id)?.end.abort();
      return respond(response, plain(200, "ending\n"));
    }
    if (request.method !== "POST" || path !== "/commands")
      return refuse(405, "unsupported method; use POST /commands or DELETE /commands/ID\n");
    const body = await bodyOf(request);
    const { version, stop, holds } = this.#options;
    const { [VERSION_HEADER]: theirs = "unknown" } = request.headers;
    if (theirs !== version)
      return refuse(
        409,
        `the running agent is ${version}, this is ${String(theirs)}; restart the agent\n`,
      );
    if (body === null)
      return refuse(400, "invalid request: expected JSON of a command line, 64 KiB at most\n");
    // This process was stopped meanwhile: a hold that its caller takes for refused must not begin now.
    if (Date.now() >= body.untilMs) return refuse(503, "the request came too late; try again\n");
    if (!holds(body.endpoint)) return respond(response, plain(200, '{"exit":null}\n'));
    if (stop.aborted) return refuse(503, "the agent is stopping\n");
    if (this.#running.size >= COMMANDS_MAX || this.#running.has(body.id))
      return refuse(503, `the agent already runs ${this.#running.size} commands; try again\n`);
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

  #begin({ id, argv, user, width, colour }: CommandBody, response: ServerResponse): void {
    const end = new AbortController();
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const running: RunningCommand = {
      name: argv[0] ?? "",
      end,
      done,
      progressNs: timer.monotonicNs(),
    };
    this.#running.set(id, running);
    const progressed = (): void => void (running.progressNs = timer.monotonicNs());
    const send = (line: object): void => {
      if (gone.signal.aborted) return;
      response.write(`${JSON.stringify(line)}\n`);
      if (response.writableLength > HELD_BYTES_MAX) response.destroy();
    };
    const say = (line: object): void => {
      progressed();
      send(line);
    };
    response.writeHead(200, { "content-type": "application/x-ndjson", connection: "close" });
    // The client waits for a sign that it was accepted.
    send({});
    const beat = setInterval(() => send({}), BEAT_MS);
    void this.#options
      .run({
        argv,
        screen: { width, colour },
        user,
        signal: AbortSignal.any([end.signal, gone.signal, this.#options.stop]),
        stdout: (text) => say({ out: text }),
        stderr: (text) => say({ err: text }),
        owner: () => this.#options.owner(progressed),
      })
      .then(async (exit) => {
        clearInterval(beat);
        say({ exit });
        response.end();
        await timer.sleep(REST_MS, gone.signal);
        response.destroy();
        this.#running.delete(id);
        resolve();
      });
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
