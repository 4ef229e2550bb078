/** Calls on one Unix socket with `@grpc/grpc-js`. Requests and responses are bytes. */

import { Client, connectivityState, credentials, Metadata, status } from "@grpc/grpc-js";

import { assert } from "../model/errors.ts";
import type { CallRecord } from "../model/ports.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { cutEntries, decodeAnswer, encodeRequest, isStream, pathOf } from "./codec.ts";
import { codeName, toRuntimeError } from "./errors.ts";
import type { Answer, ListMethod, Method, Request, UnaryMethod } from "./messages.ts";

export interface Call {
  /** `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  readonly request: Buffer;
  /** The response is any number of messages, not exactly one. */
  readonly isStream: boolean;
  /** `null` for no timeout. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export interface Connection {
  /** Resolves when the call ends with status OK; if `onMessage` throws, it is cancelled and rejects with that. */
  exchange(call: Call, onMessage: (bytes: Buffer) => void): Promise<void>;
  /** Calls in flight continue. */
  close(): void;
}

/** Far more than any runtime sends (containerd's own limit is 16 MiB, CRI-O's 80); the library's default is 4 MiB. */
const MESSAGE_LIMIT_BYTES = 256 * 1024 * 1024;

/** With the usual 64 KiB, the runtime waits for crigc hundreds of times while it sends the lists of a large node. */
const WINDOW_BYTES = 1024 * 1024;

const OPTIONS = {
  "grpc.max_receive_message_length": MESSAGE_LIMIT_BYTES,
  "grpc-node.flow_control_window": WINDOW_BYTES,
  // Servers written in Go reject the path of a socket as authority.
  "grpc.default_authority": "localhost",
  "grpc.primary_user_agent": "crigc",
  "grpc.enable_http_proxy": 0,
  "grpc.enable_retries": 0,
  "grpc.enable_channelz": 0,
  "grpc.service_config_disable_resolution": 1,
  // Another client must not wait in the back-off of this one.
  "grpc.use_local_subchannel_pool": 1,
};

/** One client per socket, so that whatever uses a socket after a probe finds it connected. */
const sockets = new Map<string, Socket>();

/** `endpoint`: `unix:///…`. Connects with the first call, and again with the next call after the connection broke. */
export function openConnection(endpoint: string): Connection {
  const socket = sockets.get(endpoint) ?? new Socket(endpoint);
  sockets.set(endpoint, socket);
  socket.users += 1;
  let isOpen = true;
  return {
    exchange: async (call, onMessage) =>
      (call.isStream ? stream : unary)(socket.client(), call, onMessage),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      socket.users -= 1;
      if (socket.users > 0 || socket.isConnecting) return;
      sockets.delete(endpoint);
      socket.close();
    },
  };
}

class Socket {
  readonly #endpoint: string;
  #client: Client | null = null;
  users = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** The library cannot abandon a connection whose peer says nothing: it is kept for the next user of the socket. */
  get isConnecting(): boolean {
    return this.#state === connectivityState.CONNECTING;
  }

  /** After a failed attempt a client rejects calls for up to two minutes; a new one connects at once. */
  client(): Client {
    if (this.#state === connectivityState.TRANSIENT_FAILURE) this.close();
    this.#client ??= new Client(this.#endpoint, credentials.createInsecure(), OPTIONS);
    return this.#client;
  }

  close(): void {
    this.#client?.close();
    this.#client = null;
  }

  get #state(): connectivityState | undefined {
    return this.#client?.getChannel().getConnectivityState(false);
  }
}

const identity = (bytes: Buffer): Buffer => bytes;

async function unary(
  client: Client,
  call: Call,
  onMessage: (bytes: Buffer) => void,
): Promise<void> {
  let message: Buffer | null = null;
  await stream(client, call, (bytes) => {
    if (message !== null) throw invalid("Too many messages received");
    message = bytes;
  });
  if (message === null) throw invalid("No message received");
  onMessage(message);
}

const invalid = (details: string): Error =>
  Object.assign(new Error(details), { code: status.INTERNAL, details });

async function stream(
  client: Client,
  { path, request, timeoutMs, signal }: Call,
  onMessage: (bytes: Buffer) => void,
): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // The library throws at timeouts that gRPC has no digits for, and no timer counts further than this.
  const deadline = Date.now() + Math.min(timeoutMs, TIMER_MS_MAX);
  const calling = client.makeServerStreamRequest(
    path,
    identity,
    identity,
    request,
    new Metadata(),
    { deadline },
  );
  calling.on("data", (bytes: Buffer) => {
    try {
      onMessage(bytes);
    } catch (thrown) {
      reject(thrown);
      calling.cancel();
    }
  });
  calling.on("error", reject);
  calling.on("end", resolve);
  const cancel = (): void => calling.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    await promise;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  if (!isBetweenMessages(calling)) throw invalid("The response ends within a message");
}

/** How the library's calls hold one another; the innermost one splits what it receives into messages. */
interface LibraryCall {
  readonly call?: LibraryCall;
  readonly child?: LibraryCall;
  readonly underlyingCalls?: readonly { readonly call: LibraryCall }[];
  readonly decoder?: { readonly readState: number };
}

/** The library ignores an incomplete message at the end: a list that is cut off there would look complete. */
function isBetweenMessages(calling: object): boolean {
  let at: LibraryCall | undefined = calling;
  while (at !== undefined && at.decoder === undefined)
    at = at.call ?? at.child ?? at.underlyingCalls?.at(-1)?.call;
  return at?.decoder?.readState === 0;
}

interface ChannelOptions {
  /** `unix:///…`. */
  readonly endpoint: string;
  /** Default timeout of a call. */
  readonly requestTimeoutMs: number;
  readonly onCall: (call: CallRecord) => void;
}

export interface CallOptions {
  /** What the call is about, for messages. */
  readonly about?: string;
  readonly signal?: AbortSignal;
  /** Added to the timeout. */
  readonly extraMs?: number;
  /** The timeout is no longer than this. */
  readonly mostMs?: number;
}

export interface Channel {
  /** `decode` checks and translates the response; if it throws, the response is malformed. */
  call<M extends UnaryMethod, Result>(
    method: M,
    request: Request<M>,
    options: CallOptions & { readonly decode: (answer: Answer<M>) => Result },
  ): Promise<Result>;
  /**
   * Entries arrive undecoded, because most are known already: as lists of one entry alone, valid until `onEntry` returns.
   * They count only once the promise resolves: a list is complete or an error.
   */
  list<M extends ListMethod>(
    method: M,
    request: Request<M>,
    options: { readonly onEntry: (list: Buffer) => void; readonly signal: AbortSignal },
  ): Promise<void>;
  close(): void;
}

export function openChannel(options: ChannelOptions): Channel {
  const { endpoint, requestTimeoutMs, onCall } = options;
  const connection = openConnection(endpoint);

  /** Passes on each message of the response; records the call, and translates its failure. */
  async function exchange<M extends Method>(
    method: M,
    request: Request<M>,
    { about = "", timeoutMs, signal, onMessage }: Exchange,
  ): Promise<void> {
    const record = (code: string): void => onCall({ method, code });
    try {
      const bytes = encodeRequest(method, request);
      const call = { path: pathOf(method), request: bytes, isStream: isStream(method) };
      await connection.exchange({ ...call, timeoutMs, signal }, onMessage);
      record("OK");
    } catch (thrown) {
      const aborted = signal?.aborted ?? false;
      record(aborted ? "CANCELLED" : codeName(thrown));
      throw toRuntimeError(thrown, { method, about, endpoint, timeoutMs, aborted });
    }
  }

  return {
    call: async (method, request, { decode, extraMs = 0, mostMs = Infinity, ...given }) => {
      const timeoutMs = Math.min(requestTimeoutMs + extraMs, mostMs);
      let result: { readonly value: ReturnType<typeof decode> } | undefined;
      const onMessage = (bytes: Buffer): void => {
        result = { value: decode(decodeAnswer(method, bytes)) };
      };
      await exchange(method, request, { ...given, timeoutMs, onMessage });
      assert(result !== undefined, "a unary call has one response");
      return result.value;
    },
    list: async (method, request, { onEntry, signal }) => {
      const onMessage = (bytes: Buffer): void => {
        cutEntries(bytes, onEntry);
        // Megabytes, which would otherwise last until the next collection; smaller buffers may share their memory.
        if (bytes.buffer instanceof ArrayBuffer && bytes.byteLength > Buffer.poolSize)
          bytes.buffer.transfer(0);
      };
      await exchange(method, request, { timeoutMs: requestTimeoutMs, signal, onMessage });
    },
    close: () => connection.close(),
  };
}

interface Exchange {
  readonly about?: string | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onMessage: (bytes: Buffer) => void;
}
