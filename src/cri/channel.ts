/** One connection to one socket: every call has a deadline, can be given up, is recorded, and fails as RuntimeError. */
import type { Client, ClientReadableStream, ClientUnaryCall, ServiceError } from "@grpc/grpc-js";

import type { CallRecord } from "../model/ports.ts";
import { type Attempt, codeName, toRuntimeError } from "./errors.ts";
import {
  type Answers,
  decodeAnswer,
  encodeRequest,
  type ListMethod,
  pathOf,
  type StreamMethod,
  type StreamMethods,
  type UnaryMethod,
  type UnaryMethods,
} from "./messages.ts";

/** An answer, or one message of a stream, as it came. */
export interface RawAnswer<M extends keyof Answers> {
  readonly method: M;
  readonly bytes: Buffer;
}

export interface ChannelOptions {
  /** `unix:///…`. */
  readonly endpoint: string;
  /** Deadline of every call that names no other. */
  readonly requestTimeoutMs: number;
  readonly onCall: (call: CallRecord) => void;
}

export interface UnaryOptions<Answer, Result> {
  /** Judges and translates the answer; what it throws makes the answer malformed. */
  readonly decode: (answer: Answer) => Result;
  /** What the call is about, for messages. */
  readonly about?: string;
  readonly signal?: AbortSignal;
  /** Beyond the deadline of every call. */
  readonly extraMs?: number;
}

export interface StreamOptions<Item> {
  readonly onItem: (item: Item) => void;
  readonly signal: AbortSignal;
  /** For a stream that ends only when one side gives up. */
  readonly endless?: boolean;
}

export interface Channel {
  call<M extends UnaryMethod, Result>(
    method: M,
    request: UnaryMethods[M]["request"],
    options: UnaryOptions<UnaryMethods[M]["response"], Result>,
  ): Promise<Result>;
  /** For lists, of which most is known already: the answer is not decoded. */
  callRaw<M extends ListMethod & UnaryMethod, Result>(
    method: M,
    request: UnaryMethods[M]["request"],
    options: UnaryOptions<RawAnswer<M>, Result>,
  ): Promise<Result>;
  /** Resolves when the runtime ends the stream. */
  stream<M extends StreamMethod>(
    method: M,
    options: StreamOptions<StreamMethods[M]>,
  ): Promise<void>;
  streamRaw<M extends ListMethod & StreamMethod>(
    method: M,
    options: StreamOptions<RawAnswer<M>>,
  ): Promise<void>;
  close(): void;
}

/** What runtimes send at most; the transport's own limit is 4 MiB. */
export const messageLimitBytes = 16 * 1024 * 1024;

export function openChannel(options: ChannelOptions): Channel {
  let line: Promise<Client> | undefined;
  const connected = (): Promise<Client> => (line ??= connect(options.endpoint));
  const callRaw = async <M extends UnaryMethod, Result>(
    method: M,
    request: object,
    { decode, about = "", signal, extraMs = 0 }: UnaryOptions<RawAnswer<M>, Result>,
  ): Promise<Result> => {
    const deadlineMs = options.requestTimeoutMs + extraMs;
    return guarded({ method, about, deadlineMs, signal, options }, async () => {
      const call = { client: await connected(), method, request, deadlineMs, signal };
      return decode({ method, bytes: await unary(call) });
    });
  };
  const streamRaw = async <M extends StreamMethod>(
    method: M,
    { onItem, signal, endless = false }: StreamOptions<RawAnswer<M>>,
  ): Promise<void> => {
    const deadlineMs = endless ? null : options.requestTimeoutMs;
    return guarded({ method, about: "", deadlineMs, signal, options }, async () => {
      const call = { client: await connected(), method, request: {}, deadlineMs, signal };
      await streamed(call, (bytes) => onItem({ method, bytes }));
    });
  };
  return {
    callRaw,
    streamRaw,
    call: async (method, request, rest) =>
      callRaw(method, request, {
        ...rest,
        decode: ({ bytes }) => rest.decode(decodeAnswer(method, bytes)),
      }),
    stream: async (method, rest) =>
      streamRaw(method, {
        ...rest,
        onItem: ({ bytes }) => rest.onItem(decodeAnswer(method, bytes)),
      }),
    close: () => {
      // Where loading failed, each call has said so.
      void line?.then(
        (client) => client.close(),
        () => undefined,
      );
    },
  };
}

/** The transport is loaded by the first call: commands that make none do not pay for it. */
async function connect(endpoint: string): Promise<Client> {
  const { Client: GrpcClient, credentials } = await import("@grpc/grpc-js");
  return new GrpcClient(endpoint, credentials.createInsecure(), {
    "grpc.max_receive_message_length": messageLimitBytes,
    // With the usual 64 KiB the runtime waits for us three hundred times in one set of lists of a large node.
    "grpc-node.flow_control_window": 1024 * 1024,
    "grpc.default_authority": "localhost",
    // `http_proxy` of the environment is for other people's sockets.
    "grpc.enable_http_proxy": 0,
    // Who calls decides whether to call again.
    "grpc.enable_retries": 0,
    "grpc.enable_channelz": 0,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 3000,
  });
}

interface Guard {
  readonly method: UnaryMethod | StreamMethod;
  readonly about: string;
  readonly deadlineMs: number | null;
  readonly signal: AbortSignal | undefined;
  readonly options: ChannelOptions;
}

async function guarded<Result>(guard: Guard, run: () => Promise<Result>): Promise<Result> {
  const { method, about, deadlineMs, signal, options } = guard;
  const startedAt = performance.now();
  const record = (code: string): void =>
    options.onCall({ method, code, tookMs: performance.now() - startedAt });
  try {
    const result = await run();
    record("OK");
    return result;
  } catch (thrown) {
    const aborted = signal?.aborted ?? false;
    // A stream without an end of its own ends well when we have listened for long enough.
    const aborting = deadlineMs === null ? "OK" : "CANCELLED";
    record(aborted ? aborting : codeName(thrown));
    const attempt: Attempt = { method, about, endpoint: options.endpoint, deadlineMs, aborted };
    throw toRuntimeError(thrown, attempt);
  }
}

interface Call {
  readonly client: Client;
  readonly method: keyof Answers;
  readonly request: object;
  readonly deadlineMs: number | null;
  readonly signal: AbortSignal | undefined;
}

async function unary(call: Call): Promise<Buffer> {
  const { client, method, request, signal } = call;
  signal?.throwIfAborted();
  const result = Promise.withResolvers<Buffer>();
  const sent: ClientUnaryCall = client.makeUnaryRequest(
    pathOf(method),
    (fields: object) => encodeRequest(method, fields),
    asIs,
    request,
    deadlineOf(call),
    (error: ServiceError | null, answer?: Buffer) =>
      error === null ? result.resolve(answer ?? Buffer.alloc(0)) : result.reject(error),
  );
  return cancelledBy(signal, sent, result.promise);
}

async function streamed(call: Call, onBytes: (bytes: Buffer) => void): Promise<void> {
  const { client, method, request, signal } = call;
  signal?.throwIfAborted();
  const result = Promise.withResolvers<void>();
  const stream: ClientReadableStream<Buffer> = client.makeServerStreamRequest(
    pathOf(method),
    (fields: object) => encodeRequest(method, fields),
    asIs,
    request,
    deadlineOf(call),
  );
  stream.on("data", (bytes: Buffer) => {
    try {
      onBytes(bytes);
    } catch (thrown) {
      result.reject(thrown);
      stream.cancel();
    }
  });
  stream.on("error", (error) => result.reject(error));
  stream.on("end", () => result.resolve());
  return cancelledBy(signal, stream, result.promise);
}

/** Answers are decoded after the transport, so that a malformed one is told apart from a failed call. */
const asIs = (bytes: Buffer): Buffer => bytes;

const deadlineOf = ({ deadlineMs }: Call): { readonly deadline?: number } =>
  deadlineMs === null ? {} : { deadline: Date.now() + deadlineMs };

async function cancelledBy<Result>(
  signal: AbortSignal | undefined,
  call: { cancel(): void },
  result: Promise<Result>,
): Promise<Result> {
  const cancel = (): void => call.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await result;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}
