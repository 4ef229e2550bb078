/** gRPC over HTTP/2 on one Unix socket, as far as CRI needs it. Knows nothing of CRI. */
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";

import { messageOf } from "../model/errors.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { CallError } from "./errors.ts";
import { type Call, Exchange } from "./exchange.ts";

/** The connection to one socket. The first call opens it, and so does the next call after it broke. */
export interface Line {
  /** Resolves once the response is complete and its status OK; otherwise rejects. Never retries. */
  call(call: Call): Promise<void>;
  /** Calls in flight continue. */
  close(): void;
}

/** With the usual 64 KiB, the runtime waits for crigc three hundred times in one set of lists of a large node. */
const WINDOW_BYTES = 1024 * 1024;

/** One connection per socket, so that a probe leaves it to whatever uses the socket next. */
const lines = new Map<string, SocketLine>();

/** `endpoint`: `unix:///…`. */
export function openLine(endpoint: string): Line {
  const line = lines.get(endpoint) ?? new SocketLine(endpoint);
  lines.set(endpoint, line);
  line.users += 1;
  let isOpen = true;
  return {
    call: async (call) => line.call(call),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      line.users -= 1;
      if (line.users > 0) return;
      lines.delete(endpoint);
      line.close();
    },
  };
}

interface Connection {
  readonly socket: Socket;
  readonly session: ClientHttp2Session;
  /** Calls in flight; without any, the connection does not keep the process alive. */
  calls: number;
}

class SocketLine {
  readonly #path: string;
  readonly #closing = new AbortController();
  #connection: Promise<Connection> | null = null;
  users = 0;

  constructor(endpoint: string) {
    this.#path = endpoint.replace(/^unix:\/\//, "");
  }

  async call(call: Call): Promise<void> {
    call.signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const exchange = new Exchange(call, (error) => (error === null ? resolve() : reject(error)));
    const abort = (): void => exchange.fail(new CallError("CANCELLED", "cancelled"));
    const { deadlineMs, signal } = call;
    // A pod's grace period may make it longer than timers count.
    signal?.addEventListener("abort", abort, { once: true });
    const timer =
      deadlineMs === null
        ? undefined
        : setTimeout(
            () => {
              exchange.fail(
                new CallError("DEADLINE_EXCEEDED", `no answer within ${deadlineMs} ms`),
              );
            },
            Math.min(deadlineMs, TIMER_MS_MAX),
          );
    try {
      this.#begin(exchange).catch((thrown: unknown) => exchange.fail(thrown));
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  close(): void {
    this.#closing.abort();
  }

  async #begin(exchange: Exchange): Promise<void> {
    const connection = await this.#connected();
    if (exchange.isOver) return;
    connection.calls += 1;
    if (connection.calls === 1) connection.socket.ref();
    exchange.begin(connection.session, () => {
      connection.calls -= 1;
      if (connection.calls === 0) connection.socket.unref();
    });
  }

  /** A connection that is closed, or that the runtime is about to close, takes no more calls. */
  #connected(): Promise<Connection> {
    if (this.#connection !== null) return this.#connection;
    const over = (): void => {
      if (this.#connection === connecting) this.#connection = null;
    };
    const connecting = connected(this.#path, over, this.#closing.signal);
    this.#connection = connecting;
    return connecting;
  }
}

/**
 * Resolves once the peer has spoken HTTP/2. `over`: the connection takes no more calls, or never did. `closing`: it is
 * no longer needed.
 */
function connected(path: string, over: () => void, closing: AbortSignal): Promise<Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  const failed = (why: string): void => {
    over();
    reject(new CallError("UNAVAILABLE", why));
  };
  const socket = connectSocket({ path });
  let close = (): unknown => socket.destroy();
  closing.addEventListener("abort", () => close(), { once: true });
  socket.on("error", (error) => failed(messageOf(error)));
  // The error that explains the close may arrive right after it.
  socket.once("close", () => setImmediate(() => failed("the connection was closed")));
  socket.once("connect", () => {
    const session = connectHttp2("http://localhost", {
      createConnection: () => socket,
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
    });
    session.on("error", (error) => failed(messageOf(error)));
    session.once("close", () => setImmediate(() => failed("the connection was closed")));
    session.once("goaway", () => {
      over();
      session.close();
    });
    session.once("remoteSettings", () => {
      session.setLocalWindowSize(WINDOW_BYTES);
      socket.unref();
      close = () => session.close();
      resolve({ socket, session, calls: 0 });
    });
  });
  return promise;
}
