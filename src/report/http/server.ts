/** Serves the control socket and the metrics address: the only place that listens. */

import { HostError, messageOf } from "../../model/errors.ts";
import { answered, type HttpProviders, type Surface } from "./routes.ts";

export interface HttpAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** The socket's file, given in by the host. */
export interface SocketFiles {
  /** What stands at the path, links not followed. */
  kindOf(path: string): "absent" | "socket" | "other";
  remove(path: string): void;
  /** Leaves the socket to its owner: mode 0600. */
  restrict(path: string): void;
}

export interface HttpServer {
  /** The port that was taken, for port 0. */
  readonly port: number | null;
  /** Answers what is under way, for at most a second, and takes the socket's file away. */
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly providers: HttpProviders;
  /** Told of a request that could not be answered. */
  readonly onError: (message: string) => void;
}

/** Throws `HostError` of kind `http` where another program has the path, or what stands there is no socket. */
export async function serveSocket(
  path: string,
  files: SocketFiles,
  options: HttpOptions,
): Promise<HttpServer> {
  await makeWay(path, files);
  const server = listen(`the control socket ${path}`, () =>
    Bun.serve({ ...common("control", options), unix: path }),
  );
  try {
    files.restrict(path);
  } catch (error) {
    await server.stop(true);
    throw new HostError(
      "http",
      `restricting the control socket ${path} to its owner failed: ${messageOf(error)}; name another --run-dir`,
      { cause: error },
    );
  }
  return running(server);
}

/** Metrics and health alone; throws `HostError` of kind `http` where the address cannot be had. */
export function serveAddress(address: HttpAddress, options: HttpOptions): HttpServer {
  const server = listen(`the metrics address ${address.host}:${address.port}`, () =>
    Bun.serve({
      ...common("metrics", options),
      hostname: address.host,
      port: address.port,
      idleTimeout: IDLE_SECONDS,
      reusePort: false,
    }),
  );
  return running(server);
}

const IDLE_SECONDS = 10;
const CLOSE_MS = 1000;
const PROBE_MS = 1000;

// Requests have no body that is read, an idle connection is closed, and each answer is made at once from what is
// in memory: nothing waits, so nothing piles up.
const common = (surface: Surface, options: HttpOptions) => ({
  maxRequestBodySize: 1,
  development: false as const,
  fetch: (request: Request): Response => answered(request, surface, options.providers),
  error: (error: Error): Response => {
    options.onError(`answering a request failed: ${error.message}`);
    return new Response("the answer could not be made; the agent's log says more\n", {
      status: 500,
    });
  },
});

type Listener = ReturnType<typeof Bun.serve>;

function listen(what: string, start: () => Listener): Listener {
  try {
    return start();
  } catch (error) {
    throw new HostError(
      "http",
      `listening on ${what} failed: ${messageOf(error)}; name a free one that this user may use`,
      { cause: error },
    );
  }
}

function running(server: Listener): HttpServer {
  return {
    port: server.port ?? null,
    close: async () => {
      const patience = setTimeout(() => void server.stop(true), CLOSE_MS);
      await server.stop(false);
      clearTimeout(patience);
    },
  };
}

/** A socket that nobody listens on was left by an agent that was killed; anything else is left alone. */
async function makeWay(path: string, files: SocketFiles): Promise<void> {
  try {
    const kind = files.kindOf(path);
    if (kind === "absent") return;
    if (kind === "other") throw taken(path, "what stands there is no socket");
    if (await somebodyListens(path)) throw taken(path, "another program listens there");
    files.remove(path);
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw new HostError(
      "http",
      `looking at the control socket ${path} failed: ${messageOf(error)}; name another --run-dir`,
      { cause: error },
    );
  }
}

const taken = (path: string, why: string): HostError =>
  new HostError(
    "http",
    `opening the control socket ${path} was refused: ${why}; stop it, or name another --run-dir`,
  );

/** In doubt somebody does: only a refused connection shows that nobody is there. */
async function somebodyListens(path: string): Promise<boolean> {
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
