/** One connection to one socket: every call has a deadline, can be given up, is recorded, and fails as RuntimeError. */
import type { CallRecord } from "../model/ports.ts";
import { type Attempt, CallError, codeName, toRuntimeError } from "./errors.ts";
import type { Call } from "./exchange.ts";
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
import type { Line } from "./transport.ts";

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

export function openChannel(options: ChannelOptions): Channel {
  let line: Promise<Line> | undefined;
  const connected = (): Promise<Line> => (line ??= connect(options.endpoint));
  const callRaw = async <M extends UnaryMethod, Result>(
    method: M,
    request: object,
    { decode, about = "", signal, extraMs = 0 }: UnaryOptions<RawAnswer<M>, Result>,
  ): Promise<Result> => {
    const deadlineMs = options.requestTimeoutMs + extraMs;
    return guarded({ method, about, deadlineMs, signal, options }, async () => {
      const bytes = encodeRequest(method, request);
      const call = { path: pathOf(method), request: bytes, deadlineMs, signal };
      return decode({ method, bytes: await unary(await connected(), call) });
    });
  };
  const streamRaw = async <M extends StreamMethod>(
    method: M,
    { onItem, signal, endless = false }: StreamOptions<RawAnswer<M>>,
  ): Promise<void> => {
    const deadlineMs = endless ? null : options.requestTimeoutMs;
    return guarded({ method, about: "", deadlineMs, signal, options }, async () => {
      const request = encodeRequest(method, {});
      const onMessage = (bytes: Buffer): void => onItem({ method, bytes });
      const connection = await connected();
      await connection.call({ path: pathOf(method), request, deadlineMs, signal, onMessage });
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
        (it) => it.close(),
        () => undefined,
      );
    },
  };
}

/** The transport is loaded by the first call: commands that make none do not pay for it. */
async function connect(endpoint: string): Promise<Line> {
  const { openLine } = await import("./transport.ts");
  return openLine(endpoint);
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

async function unary(line: Line, call: Omit<Call, "onMessage">): Promise<Buffer> {
  let answer: Buffer | null = null;
  await line.call({
    ...call,
    onMessage: (bytes) => {
      if (answer !== null) throw new CallError("INTERNAL", "it sent more than one answer");
      answer = bytes;
    },
  });
  if (answer === null) throw new CallError("INTERNAL", "it sent no answer");
  return answer;
}
