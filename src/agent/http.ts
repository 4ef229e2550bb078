/** HTTP on the control socket and the metrics address, within limits. Nothing else in crigc listens. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect, type Socket } from "node:net";

import { HostError, messageOf } from "../model/errors.ts";
import { timer } from "../node/clock.ts";
import { codeOf, socketFiles } from "../node/files.ts";
import type { Log } from "./log.ts";
import { type Answer, type HttpRequest, plain } from "./routes.ts";

export interface HttpAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

export interface HttpServer {
  /** The actual port, if 0 was requested. */
  readonly port: number | null;
  /** Whether clients still reach it: its file may have been deleted or replaced. */
  isReachable(): boolean;
  /** Closes all connections and removes the socket's file. */
  close(): Promise<void>;
}

export interface HttpOptions {
  /** Must not wait: only slow clients hold a connection. */
  readonly answer: (request: HttpRequest) => Answer;
  readonly onError: (message: string) => void;
}

/** Throws `HostError` of kind `http` if another program uses the path, or it is not a socket. */
export async function serveSocket(path: string, options: HttpOptions): Promise<HttpServer> {
  await removeStaleSocket(path);
  const what = `the control socket ${path}`;
  const { server, connections } = await listening(what, options, (it) => it.listen(path));
  try {
    socketFiles.restrict(path);
  } catch (error) {
    server.close();
    throw new HostError(
      "http",
      `cannot restrict ${what} to its owner: ${messageOf(error)}; set another --run-dir`,
      { cause: error },
    );
  }
  const ours = socketFiles.identityOf(path);
  return {
    port: null,
    isReachable: () => socketFiles.identityOf(path) === ours,
    close: async () => {
      const found = socketFiles.identityOf(path);
      // Closing it would make Bun delete the file that replaced this socket.
      if (found !== null && found !== ours) server.unref();
      else await closed(server, connections);
    },
  };
}

/** Throws `HostError` of kind `http` if the address cannot be used. */
export async function serveAddress(
  { host, port }: HttpAddress,
  options: HttpOptions,
): Promise<HttpServer> {
  const { server, connections } = await listening(
    `the metrics address ${host}:${port}`,
    options,
    (it) => it.listen(port, host),
  );
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? null) : null,
    isReachable: () => true,
    close: () => closed(server, connections),
  };
}

/** Limit of a head; a scraper sends some 300 bytes. */
const HEAD_BYTES_MAX = 8 * 1024;
/** Maximum lifetime of a connection, whatever it sends or reads. */
const CONNECTION_MS = 10_000;
/** Per listener. A scraper uses one, for milliseconds; collection needs the other descriptors. */
const CONNECTIONS_MAX = 16;
const PROBE_MS = 1000;

/** One request per connection. If too many are open, the oldest is closed for the new one. */
async function listening(
  what: string,
  options: HttpOptions,
  listen: (server: Server) => unknown,
): Promise<{ readonly server: Server; readonly connections: ReadonlySet<Socket> }> {
  const connections = new Set<Socket>();
  const server = createServer({ maxHeaderSize: HEAD_BYTES_MAX }, (request, response) => {
    const { status, headers, body } = answerTo(request, options);
    const length = Buffer.byteLength(body);
    response.writeHead(status, { ...headers, "content-length": length, connection: "close" });
    response.end(request.method === "HEAD" ? "" : body);
  });
  server.on("connection", (socket) => {
    const expiry = setTimeout(() => socket.destroy(), CONNECTION_MS);
    socket.once("close", () => {
      clearTimeout(expiry);
      connections.delete(socket);
    });
    const [oldest] = connections;
    connections.add(socket);
    if (connections.size <= CONNECTIONS_MAX || oldest === undefined) return;
    connections.delete(oldest);
    oldest.destroy();
  });
  try {
    listen(server);
    await once(server, "listening");
  } catch (error) {
    throw new HostError(
      "http",
      `cannot listen on ${what}: ${messageOf(error)}; use a free address that this user may open`,
      { cause: error },
    );
  }
  return { server, connections };
}

/** RFC 3986: a name or an address, and a port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w\-.~%!$&'()*+,;=]*)(?::\d{0,5})?$/;

function answerTo(request: IncomingMessage, options: HttpOptions): Answer {
  const { method = "", url = "", rawHeaders } = request;
  const hosts = rawHeaders.filter(
    (_, at) => rawHeaders[at - 1]?.toLowerCase() === "host" && at % 2 === 1,
  );
  if (hosts.length > 1 || !HOST.test(hosts[0] ?? "")) return plain(400, "invalid Host header\n");
  const target = targetOf(url);
  if (target === null) return plain(400, "invalid request target\n");
  try {
    return options.answer({ method, url: target });
  } catch (error) {
    options.onError(`cannot answer a request: ${messageOf(error)}`);
    return plain(500, "internal error; see the agent's log\n");
  }
}

/** The host does not matter, only path and query. */
function targetOf(text: string): URL | null {
  const absolute = text.startsWith("/") ? `http://crigc${text}` : text;
  return URL.canParse(absolute) ? new URL(absolute) : null;
}

async function closed(server: Server, connections: ReadonlySet<Socket>): Promise<void> {
  for (const socket of connections) socket.destroy();
  if (!server.listening) return;
  server.close();
  await once(server, "close");
}

/** A socket without a listener was left by a killed agent; anything else is left alone. */
async function removeStaleSocket(path: string): Promise<void> {
  try {
    const kind = socketFiles.kindOf(path);
    if (kind === "absent") return;
    if (kind === "other") throw taken(path, "it is not a socket; remove it");
    if (await hasListener(path))
      throw taken(path, "another program listens on it; stop that program");
    socketFiles.remove(path);
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw new HostError(
      "http",
      `cannot check the control socket ${path}: ${messageOf(error)}; set another --run-dir`,
      { cause: error },
    );
  }
}

const taken = (path: string, why: string): HostError =>
  new HostError("http", `cannot open the control socket ${path}: ${why}, or set another --run-dir`);

/** Assumes a listener unless the connection is refused. */
async function hasListener(path: string): Promise<boolean> {
  const socket = connect(path);
  socket.on("error", () => undefined);
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(PROBE_MS) });
    return true;
  } catch (thrown) {
    return codeOf(thrown) !== "ECONNREFUSED";
  } finally {
    socket.destroy();
  }
}

/** Until then an agent whose run directory was emptied is unreachable; a check costs one lstat. */
const LOOK_MS = 5_000;

export interface Place {
  /** Such as `control socket`. */
  readonly name: string;
  readonly open: () => Promise<HttpServer>;
  readonly log: () => Log;
}

/** Opens it now, and again while that fails or whenever its socket was deleted. Logs what fails; resolves to `close`. */
export async function keepOpen({ name, open, log }: Place): Promise<() => Promise<void>> {
  let server: HttpServer | null = null;
  const reopen = async (): Promise<void> => {
    try {
      if (server?.isReachable() === true) return;
      if (server !== null) {
        log().warning(`the ${name} was deleted; crigc opens it again`);
        await server.close();
        server = null;
      }
      server = await open();
      log().success(`listen ${name}`, `Opening the ${name}`);
    } catch (thrown) {
      const message = `${messageOf(thrown)}; the agent continues without it and keeps trying`;
      log().failure(`listen ${name}`, message);
    }
  };
  await reopen();
  const stop = new AbortController();
  const looking = (async () => {
    for (;;) {
      await timer.sleep(LOOK_MS, stop.signal);
      if (stop.signal.aborted) return;
      await reopen();
    }
  })();
  return async () => {
    stop.abort();
    await looking;
    await server?.close();
  };
}
