/** Calls on one Unix socket with `@grpc/grpc-js`. Requests and responses are bytes. */
import { Client, connectivityState, credentials, Metadata, status } from "@grpc/grpc-js";

import { TIMER_MS_MAX } from "../model/time.ts";

export interface Call {
  /** `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  readonly request: Buffer;
  /** The response is any number of messages, not exactly one. */
  readonly isStream: boolean;
  /** `null` for no timeout. */
  readonly timeoutMs: number | null;
  readonly signal: AbortSignal | undefined;
}

export interface Connection {
  /** Resolves when the call ends with status OK; if `onMessage` throws, it is cancelled and rejects with that. */
  exchange(call: Call, onMessage: (bytes: Buffer) => void): Promise<void>;
  /** Calls in flight continue. */
  close(): void;
}

/** The largest message that runtimes send; the library's default is 4 MiB. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;

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
  const deadline = timeoutMs === null ? Infinity : Date.now() + Math.min(timeoutMs, TIMER_MS_MAX);
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
