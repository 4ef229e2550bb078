/** The methods of CRI on one socket. Every call has a timeout, can be cancelled, is recorded, and fails with RuntimeError. */
import type { CallRecord } from "../model/ports.ts";
import { cutEntries, decodeAnswer, encodeRequest, isStream, pathOf } from "./codec.ts";
import { type Attempt, codeName, toRuntimeError } from "./errors.ts";
import type {
  ListMethod,
  StreamMethod,
  StreamMethods,
  UnaryMethod,
  UnaryMethods,
} from "./messages.ts";
import { openConnection } from "./transport.ts";

/** One entry of a list, with its bytes as a list of this entry alone, valid until the receiver returns. */
export type Entry<M extends ListMethod> = readonly [method: M, bytes: Buffer];

export type ListRequests = {
  readonly [M in ListMethod]: M extends UnaryMethod ? UnaryMethods[M]["request"] : Nothing;
};
type Nothing = Readonly<Record<never, never>>;

export interface ChannelOptions {
  /** `unix:///…`. */
  readonly endpoint: string;
  /** Default timeout of a call. */
  readonly requestTimeoutMs: number;
  readonly onCall: (call: CallRecord) => void;
  /** Called when a list has arrived, before it is read: the pieces in which it came are garbage. */
  readonly onList?: (() => void) | undefined;
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

export interface UnaryOptions<Answer, Result> extends CallOptions {
  /** Checks and translates the response; if it throws, the response is malformed. */
  readonly decode: (answer: Answer) => Result;
}

export interface StreamOptions<Item> {
  readonly onItem: (item: Item) => void;
  readonly signal: AbortSignal;
  /** A stream that ends only when one side closes it. */
  readonly endless?: boolean;
}

export interface Channel {
  call<M extends UnaryMethod, Result>(
    method: M,
    request: UnaryMethods[M]["request"],
    options: UnaryOptions<UnaryMethods[M]["response"], Result>,
  ): Promise<Result>;
  /**
   * Entries arrive undecoded, because most are known already. They count only once the promise resolves: a list is
   * complete or an error.
   */
  list<M extends ListMethod>(
    method: M,
    request: ListRequests[M],
    options: { readonly onEntry: (...entry: Entry<M>) => void; readonly signal: AbortSignal },
  ): Promise<void>;
  /** Resolves when the runtime ends the stream. */
  stream<M extends StreamMethod>(
    method: M,
    options: StreamOptions<StreamMethods[M]>,
  ): Promise<void>;
  close(): void;
}

export function openChannel(options: ChannelOptions): Channel {
  const connection = openConnection(options.endpoint);
  const callOf = ({ method, timeoutMs, signal }: Guard, request: object) => ({
    path: pathOf(method),
    request: encodeRequest(method, request),
    timeoutMs,
    signal,
  });
  const { requestTimeoutMs } = options;
  return {
    call: async (method, request, unary) => {
      const { decode, about = "", signal, extraMs = 0, mostMs = Infinity } = unary;
      const timeoutMs = Math.min(requestTimeoutMs + extraMs, mostMs);
      const guard = { method, about, timeoutMs, signal, options };
      return guarded(guard, async () =>
        decode(decodeAnswer(method, await connection.unary(callOf(guard, request)))),
      );
    },
    list: async (method, request, { onEntry, signal }) => {
      const guard = { method, about: "", timeoutMs: requestTimeoutMs, signal, options };
      const onMessage = (bytes: Buffer): void => {
        options.onList?.();
        cutEntries(bytes, (entry) => onEntry(method, entry));
      };
      return guarded(guard, async () => {
        const call = callOf(guard, request);
        if (isStream(method)) await connection.stream(call, onMessage);
        else onMessage(await connection.unary(call));
      });
    },
    stream: async (method, { onItem, signal, endless = false }) => {
      const timeoutMs = endless ? null : requestTimeoutMs;
      const guard = { method, about: "", timeoutMs, signal, options };
      const onMessage = (bytes: Buffer): void => onItem(decodeAnswer(method, bytes));
      return guarded(guard, async () => connection.stream(callOf(guard, {}), onMessage));
    },
    close: () => connection.close(),
  };
}

interface Guard {
  readonly method: UnaryMethod | StreamMethod;
  readonly about: string;
  readonly timeoutMs: number | null;
  readonly signal: AbortSignal | undefined;
  readonly options: ChannelOptions;
}

async function guarded<Result>(guard: Guard, run: () => Promise<Result>): Promise<Result> {
  const { method, about, timeoutMs, signal, options } = guard;
  const startedAt = performance.now();
  const record = (code: string): void =>
    options.onCall({ method, code, tookMs: performance.now() - startedAt });
  try {
    const result = await run();
    record("OK");
    return result;
  } catch (thrown) {
    const aborted = signal?.aborted ?? false;
    // Only crigc ends an endless stream.
    const aborting = timeoutMs === null ? "OK" : "CANCELLED";
    record(aborted ? aborting : codeName(thrown));
    const attempt: Attempt = { method, about, endpoint: options.endpoint, timeoutMs, aborted };
    throw toRuntimeError(thrown, attempt);
  }
}
