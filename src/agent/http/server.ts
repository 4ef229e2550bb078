/** Serves the control socket and the metrics address. Nothing else in crigc listens. */

import { HostError, messageOf } from "../../model/errors.ts";
import type { SocketFiles } from "../../model/ports.ts";
import { answerText, readRequest } from "./message.ts";
import { answered, type HttpProviders, plain, type Surface } from "./routes.ts";

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
  readonly providers: HttpProviders;
  readonly onError: (message: string) => void;
}

/** Throws `HostError` of kind `http` if another program uses the path, or it is not a socket. */
export async function serveSocket(
  path: string,
  files: SocketFiles,
  options: HttpOptions,
): Promise<HttpServer> {
  await removeStaleSocket(path, files);
  const server = listen(`the control socket ${path}`, () =>
    Bun.listen({ ...answering("control", options), unix: path }),
  );
  try {
    files.restrict(path);
  } catch (error) {
    server.stop(true);
    throw new HostError(
      "http",
      `cannot restrict the control socket ${path} to its owner: ${messageOf(error)}; set another --run-dir`,
      { cause: error },
    );
  }
  const ours = files.identityOf(path);
  return running(server, () => {
    const there = files.identityOf(path);
    return there === null ? "absent" : there === ours ? "ours" : "other";
  });
}

/** Metrics and health only; throws `HostError` of kind `http` if the address cannot be used. */
export function serveAddress(address: HttpAddress, options: HttpOptions): HttpServer {
  const server = listen(`the metrics address ${address.host}:${address.port}`, () =>
    Bun.listen({
      ...answering("metrics", options),
      hostname: address.host,
      port: address.port,
    }),
  );
  return running(server);
}

/** Maximum lifetime of a connection, whatever it sends or reads. */
const CONNECTION_MS = 10_000;
/** Per listener. A scraper uses one, for milliseconds; collection needs the other descriptors. */
const CONNECTIONS_MAX = 16;
const PROBE_MS = 1000;

interface Connection {
  received: string;
  /** Bytes of the response not sent yet; `null` before the response. */
  unsent: Uint8Array | null;
  readonly expiry: ReturnType<typeof setTimeout>;
}

type Peer = Bun.Socket<Connection>;

/**
 * One request per connection. Responses come from memory at once, so only slow clients hold a connection:
 * if there are too many, the oldest is closed for the new one.
 */
function answering(surface: Surface, options: HttpOptions) {
  const open = new Set<Peer>();
  const leave = (peer: Peer): void => {
    clearTimeout(peer.data?.expiry);
    open.delete(peer);
  };
  return {
    socket: {
      open: (peer: Peer): void => {
        peer.data = {
          received: "",
          unsent: null,
          expiry: setTimeout(() => peer.terminate(), CONNECTION_MS),
        };
        open.add(peer);
        const [oldest] = open;
        if (open.size > CONNECTIONS_MAX) oldest?.terminate();
      },
      data: (peer: Peer, bytes: Buffer): void => {
        // Anything after the request is ignored.
        if (peer.data.unsent !== null) return;
        peer.data.received += bytes.toString("latin1");
        const answer = answerTo(peer.data.received, surface, options);
        if (answer === null) return;
        peer.data.unsent = Buffer.from(answer);
        send(peer);
      },
      drain: send,
      close: leave,
      error: leave,
    },
  };
}

/** `null`: incomplete. */
function answerTo(received: string, surface: Surface, options: HttpOptions): string | null {
  const request = readRequest(received);
  switch (request.kind) {
    case "incomplete":
      return null;
    case "invalid":
      return answerText(plain(request.status, `${request.why}\n`), "GET");
    case "request":
      try {
        return answerText(answered(request, surface, options.providers), request.method);
      } catch (error) {
        options.onError(`cannot answer a request: ${messageOf(error)}`);
        return answerText(plain(500, "internal error; see the agent's log\n"), request.method);
      }
  }
}

function send(peer: Peer): void {
  const { unsent } = peer.data;
  if (unsent === null) return;
  peer.data.unsent = unsent.subarray(peer.write(unsent));
  if (peer.data.unsent.length === 0) peer.end();
}

type Listener = Bun.SocketListener<Connection>;

function listen(what: string, start: () => Listener): Listener {
  try {
    return start();
  } catch (error) {
    throw new HostError(
      "http",
      `cannot listen on ${what}: ${messageOf(error)}; use a free address that this user may open`,
      { cause: error },
    );
  }
}

/** `fileNow`: identity of the file at the socket's path. */
function running(
  server: Listener,
  fileNow: () => "ours" | "other" | "absent" = () => "ours",
): HttpServer {
  return {
    port: "port" in server && typeof server.port === "number" ? server.port : null,
    isReachable: () => fileNow() === "ours",
    close: async () => {
      // Bun would delete whatever is at the path now; nobody can reach this socket any more.
      if (fileNow() === "other") server.unref();
      else server.stop(true);
    },
  };
}

/** A socket without a listener was left by a killed agent; anything else is left alone. */
async function removeStaleSocket(path: string, files: SocketFiles): Promise<void> {
  try {
    const kind = files.kindOf(path);
    if (kind === "absent") return;
    if (kind === "other") throw taken(path, "it is not a socket; remove it");
    if (await hasListener(path))
      throw taken(path, "another program listens on it; stop that program");
    files.remove(path);
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
  const ignore = (): undefined => undefined;
  const connecting = Bun.connect({
    unix: path,
    socket: { data: ignore, connectError: ignore },
  }).then(
    (socket) => {
      socket.end();
      return true;
    },
    (error: unknown) => !isRefused(error),
  );
  const patience = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => patience.resolve(true), PROBE_MS);
  const listens = await Promise.race([connecting, patience.promise]);
  clearTimeout(timer);
  return listens;
}

const isRefused = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
