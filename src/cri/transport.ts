/** gRPC over HTTP/2 on one Unix socket: as much of it as CRI needs, and nothing of CRI. */
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";

import { messageOf } from "../model/errors.ts";
import { CallError } from "./errors.ts";
import { type Call, Exchange } from "./exchange.ts";

/** The connection to one socket: made by the first call, and again by the next one after it broke. */
export interface Line {
  /** Resolves once the answer is whole and its status is OK; else rejects. Nothing is tried twice. */
  call(call: Call): Promise<void>;
  /** Calls under way go on. */
  close(): void;
}

/** With the usual 64 KiB the runtime waits for us three hundred times in one set of lists of a large node. */
const WINDOW_BYTES = 1024 * 1024;

/** One connection for each socket: whoever probed it leaves it to whoever uses it. */
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
  /** Calls under way: without any, the connection keeps no process alive. */
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
    const abort = (): void => exchange.fail(new CallError("CANCELLED", "given up"));
    const { deadlineMs, signal } = call;
    signal?.addEventListener("abort", abort, { once: true });
    const timer =
      deadlineMs === null
        ? undefined
        : setTimeout(() => {
            exchange.fail(new CallError("DEADLINE_EXCEEDED", `no answer in ${deadlineMs} ms`));
          }, deadlineMs);
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

  /** A connection that is over, or that the runtime is about to end, takes no more calls. */
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

/** Once the other end has said that it speaks HTTP/2. `over`: it takes no more calls, or it never did. `closing`: nobody wants it any more. */
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
  // An error may come right behind the end that it explains.
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
