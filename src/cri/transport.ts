/** Calls on Unix sockets with `@grpc/grpc-js`. Requests and responses are bytes. */

import { Client, connectivityState, credentials, Metadata, status } from "@grpc/grpc-js";

import { assert } from "../model/errors.ts";
import type { CallRecord } from "../model/ports.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { cutEntries } from "./codec.ts";
import { codeName, toRuntimeError } from "./errors.ts";
import type { AnyMethod, Method } from "./messages.ts";

interface Call {
  readonly request: Buffer;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onMessage: (bytes: Buffer) => void;
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

/** By socket: whatever uses a socket after a probe finds it connected. */
const clients = new Map<string, Client>();

const stateOf = (client: Client): connectivityState =>
  client.getChannel().getConnectivityState(false);

/** After a failed attempt a client rejects calls for up to two minutes; a new one connects at once. */
function clientOf(endpoint: string): Client {
  const there = clients.get(endpoint);
  if (there !== undefined && stateOf(there) !== connectivityState.TRANSIENT_FAILURE) return there;
  there?.close();
  const client = new Client(endpoint, credentials.createInsecure(), OPTIONS);
  clients.set(endpoint, client);
  return client;
}

/**
 * Calls in flight continue. The library cannot abandon a connection whose peer says nothing: it is kept for the next user of
 * the socket.
 */
export function disconnect(endpoint: string): void {
  const client = clients.get(endpoint);
  if (client === undefined || stateOf(client) === connectivityState.CONNECTING) return;
  clients.delete(endpoint);
  client.close();
}

const identity = (bytes: Buffer): Buffer => bytes;

const invalid = (details: string): Error =>
  Object.assign(new Error(details), { code: status.INTERNAL, details });

/**
 * Connects if need be. Resolves when the call ends with status OK and the right number of messages; if `onMessage` throws, it
 * is cancelled and rejects with that.
 */
export async function exchange(
  endpoint: string,
  { path, isStream }: Pick<AnyMethod, "path" | "isStream">,
  { request, timeoutMs, signal, onMessage }: Call,
): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // The library throws at timeouts that gRPC has no digits for, and no timer counts further than this.
  const deadline = Date.now() + Math.min(timeoutMs, TIMER_MS_MAX);
  const calling = clientOf(endpoint).makeServerStreamRequest(
    path,
    identity,
    identity,
    request,
    new Metadata(),
    { deadline },
  );
  let messages = 0;
  calling.on("data", (bytes: Buffer) => {
    messages += 1;
    try {
      if (messages > 1 && !isStream) throw invalid("Too many messages received");
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
  if (messages === 0 && !isStream) throw invalid("No message received");
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
}

export interface Channel {
  readonly endpoint: string;
  /** `decode` translates the response; if it throws, the response is malformed. */
  call<Request extends object, Answer, Result>(
    method: Method<Request, Answer>,
    request: Request,
    options: CallOptions & { readonly decode: (answer: Answer) => Result },
  ): Promise<Result>;
  /**
   * Entries arrive undecoded, because most are known already, and are valid until `onEntry` returns. They count only once
   * the promise resolves: a list is complete or an error.
   */
  list<Request extends object>(
    method: Method<Request, unknown>,
    request: Request,
    options: { readonly onEntry: (entry: Buffer) => void; readonly signal: AbortSignal },
  ): Promise<void>;
  close(): void;
}

export function openChannel(options: ChannelOptions): Channel {
  const { endpoint, requestTimeoutMs, onCall } = options;

  /** Records the call, and translates its failure. */
  async function called(method: AnyMethod, about: string, call: Call): Promise<void> {
    const { timeoutMs, signal } = call;
    try {
      await exchange(endpoint, method, call);
      onCall({ method: method.name, code: "OK" });
    } catch (thrown) {
      const aborted = signal?.aborted ?? false;
      onCall({ method: method.name, code: aborted ? "CANCELLED" : codeName(thrown) });
      throw toRuntimeError(thrown, { method, about, endpoint, timeoutMs, aborted });
    }
  }

  return {
    endpoint,
    call: async (method, given, { decode, about = "", signal, extraMs = 0 }) => {
      const timeoutMs = requestTimeoutMs + extraMs;
      const request = method.encode(given);
      let result: { readonly value: ReturnType<typeof decode> } | undefined;
      const onMessage = (bytes: Buffer): void => {
        result = { value: decode(method.answer.decode(bytes)) };
      };
      await called(method, about, { request, timeoutMs, signal, onMessage });
      assert(result !== undefined, "a unary call has one response");
      return result.value;
    },
    list: async (method, given, { onEntry, signal }) => {
      const request = method.encode(given);
      const onMessage = (bytes: Buffer): void => {
        cutEntries(bytes, onEntry);
        // Megabytes, which would otherwise last until the next collection; smaller buffers may share their memory.
        if (bytes.buffer instanceof ArrayBuffer && bytes.byteLength > Buffer.poolSize)
          bytes.buffer.transfer(0);
      };
      await called(method, "", { request, timeoutMs: requestTimeoutMs, signal, onMessage });
    },
    close: () => disconnect(endpoint),
  };
}
