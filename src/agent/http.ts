/** HTTP on the control socket and the metrics address, within limits: what the agent answers, by path. Nothing else in crigc listens. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";

import type { Journal } from "../gc/journal.ts";
import { messageOf } from "../model/errors.ts";
import { timer } from "../node/clock.ts";
import { codeOf, hostError, socketFiles } from "../node/files.ts";
import { printedJson } from "../report/document.ts";
import { statusDocument, type StatusReport, statusTable } from "../report/status.ts";
import { clean, type Screen } from "../report/terminal.ts";

export type HttpAddress =
  { readonly path: string } | { readonly host: string; readonly port: number };

export interface HttpServer {
  /** Whether clients still reach it: its file may have been deleted or replaced. */
  isReachable(): boolean;
  /** Closes all connections and removes the socket's file. */
  close(): void;
}

export interface HttpOptions {
  /** `metrics`: others can reach this address, so it reveals no image and no configuration. */
  readonly surface: "control" | "metrics";
  readonly from: HttpProviders;
  /** Takes requests for `/commands`, whose connections may stay open. */
  readonly commands?: {
    answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void>;
  };
  readonly onError: (message: string) => void;
}

/** Throws `HostError` of kind `http` if it cannot listen there, or another program does. */
export async function serve(address: HttpAddress, options: HttpOptions): Promise<HttpServer> {
  const path = "path" in address ? address.path : null;
  const server = limitedServer(options);
  const identity = (): string | null => (path === null ? null : socketFiles.identityOf(path));
  try {
    if (path !== null) await removeStaleSocket(path);
    server.listen(address);
    await once(server, "listening");
    if (path !== null) socketFiles.restrict(path);
  } catch (error) {
    if (server.listening) server.close();
    const [where, advice] =
      "path" in address
        ? [address.path, "remove the file or stop what listens there, or set another --run-dir"]
        : [`${address.host}:${address.port}`, "use a free address that this user may open"];
    throw hostError("http", error, `cannot listen on ${where}`, `; ${advice}`);
  }
  const ours = identity();
  return {
    isReachable: () => identity() === ours,
    close: () => {
      const found = identity();
      // Closing it would make Bun delete the file that replaced this socket.
      if (found !== null && found !== ours) return void server.unref();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Limit of a head; a scraper sends some 300 bytes. */
const HEAD_BYTES_MAX = 8 * 1024;
/** Maximum lifetime of a connection without a command, active or not. */
const CONNECTION_MS = 10_000;
/** Of these. A scraper uses one, for milliseconds; collection needs the other descriptors. */
const CONNECTIONS_MAX = 16;

/** One request per connection. If too many are open, the oldest is closed for the new one. */
function limitedServer(options: HttpOptions): Server {
  const limited = new Set<Socket>();
  const server = createServer({ maxHeaderSize: HEAD_BYTES_MAX }, (request, response) => {
    const path = (request.url ?? "").replace(/\?.*$/s, "");
    if (options.commands === undefined || !/^\/commands(?:\/|$)/.test(path))
      return respond(response, answerTo(request, options));
    // Until its body is here, it may be one that sends nothing.
    request.once("end", () => limited.delete(request.socket));
    options.commands.answer(request, response, path).catch((thrown: unknown) => {
      options.onError(`cannot answer a request: ${messageOf(thrown)}`);
      response.destroy();
    });
  });
  const drop = (socket: Socket): void => void (limited.delete(socket) && socket.destroy());
  return server.on("connection", (socket) => {
    limited.add(socket);
    const expiry = setTimeout(() => drop(socket), CONNECTION_MS);
    socket.once("close", () => {
      clearTimeout(expiry);
      limited.delete(socket);
    });
    const [oldest] = limited;
    if (limited.size > CONNECTIONS_MAX && oldest !== undefined) drop(oldest);
  });
}

export function respond(response: ServerResponse, { status, headers, body }: HttpResponse): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { ...headers, "content-length": length, connection: "close" });
  response.end(body);
}

function answerTo(
  { method = "", url: target = "" }: IncomingMessage,
  { surface, from, onError }: HttpOptions,
): HttpResponse {
  // A path, or a whole URL, whose scheme and host do not matter.
  const url = URL.parse(target.startsWith("/") ? `http://crigc${target}` : target);
  if (url === null) return plain(400, "invalid request target\n");
  const routes = ROUTES[surface];
  const route = routes.get(url.pathname);
  if (route === undefined)
    return plain(404, `unknown path; use ${[...routes.keys()].join(", ")}\n`);
  if (method !== "GET" && method !== "HEAD")
    return plain(405, "unsupported method; use GET or HEAD\n", { allow: "GET, HEAD" });
  try {
    return route(from, url);
  } catch (error) {
    onError(`cannot answer a request: ${messageOf(error)}`);
    return plain(500, "internal error; see the agent's log\n");
  }
}

const PROBE_MS = 1000;

/** A socket that refuses connections was left by a killed agent; anything else is left alone. */
async function removeStaleSocket(path: string): Promise<void> {
  if (!socketFiles.isThere(path)) return;
  const socket = connect(path);
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(PROBE_MS) });
  } catch (thrown) {
    if (codeOf(thrown) === "ECONNREFUSED") socketFiles.remove(path);
  } finally {
    socket.destroy();
  }
}

/** Until then an agent whose run directory was emptied is unreachable; a check costs one lstat. */
const LOOK_MS = 5_000;

export interface Listener {
  /** Such as `control socket`. */
  readonly name: string;
  readonly open: () => Promise<HttpServer>;
  readonly journal: Journal;
  readonly stop: AbortSignal;
}

/** Opens it, and again while that fails or once its socket was deleted, until `stop` aborts. Logs what fails. */
export async function keepOpen(listener: Listener): Promise<void> {
  let server: HttpServer | null = null;
  while (!listener.stop.aborted) {
    server = await reopened(server, listener);
    await timer.sleep(LOOK_MS, listener.stop);
  }
  server?.close();
}

async function reopened(server: HttpServer | null, { name, open, journal }: Listener) {
  try {
    if (server?.isReachable() === true) return server;
    if (server !== null) journal.say("warning", `the ${name} was deleted; crigc opens it again`);
    server?.close();
    const opened = await open();
    journal.ends(`listen/${name}`, `opening the ${name} succeeded`);
    return opened;
  } catch (thrown) {
    const message = `${messageOf(thrown)}; the agent continues without it and keeps trying`;
    journal.begins(`listen/${name}`, message);
    return null;
  }
}

export interface HealthCheck {
  readonly name: string;
  /** `null`: healthy. */
  readonly problem: string | null;
}

/** The status server. */
export interface HttpProviders {
  /** Current metrics as Prometheus text. */
  metrics(): string;
  health(): readonly HealthCheck[];
  /** Whether the runtime answers and the ledger is loaded. */
  readiness(): readonly HealthCheck[];
  status(): StatusReport;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Route = (from: HttpProviders, url: URL) => HttpResponse;

const OPEN_ROUTES: readonly (readonly [string, Route])[] = [
  ["/metrics", (from) => typed("text/plain; version=0.0.4; charset=utf-8", from.metrics())],
  ["/healthz", (from) => health(from.health())],
  ["/readyz", (from) => health(from.readiness())],
];

// The agent renders the tables, so that a client of another version need not understand its data,
// and figures stay exact.
const STATUS_ROUTES: readonly (readonly [string, Route])[] = [
  [
    "/status",
    (from) => typed("application/json; charset=utf-8", printedJson(statusDocument(from.status()))),
  ],
  [
    "/status.txt",
    (from, url) => plain(200, statusTable(statusDocument(from.status()), screenFrom(url))),
  ],
];

const ROUTES = {
  metrics: new Map(OPEN_ROUTES),
  control: new Map([...OPEN_ROUTES, ...STATUS_ROUTES]),
};

/** From `screenQuery` of the client. */
const screenFrom = ({ searchParams }: URL): Screen => ({
  width: Number(searchParams.get("width")) || null,
  colour: searchParams.get("colour") === "1",
});

function health(checks: readonly HealthCheck[]): HttpResponse {
  const ill = checks.some((check) => check.problem !== null);
  const lines = checks.map((check) =>
    check.problem === null
      ? `ok      ${check.name}`
      : `failed  ${check.name}: ${clean(check.problem)}`,
  );
  return plain(ill ? 503 : 200, `${[...lines, ill ? "failed" : "passed"].join("\n")}\n`);
}

const typed = (type: string, body: string): HttpResponse => ({
  status: 200,
  headers: { "content-type": type, ...SAFE },
  body,
});

export const plain = (
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8", ...SAFE, ...headers },
  body,
});

const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
