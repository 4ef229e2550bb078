/** One connection to one socket. Every call has a deadline, can be cancelled, is recorded, and fails with RuntimeError. */
import type { CallRecord } from "../model/ports.ts";
import { type Attempt, CallError, codeName, toRuntimeError } from "./errors.ts";
import { type OnPiece, wholeMessages } from "./frames.ts";
import {
  decodeAnswer,
  encodeRequest,
  ENTRIES_FIELD,
  isStream,
  type ListMethod,
  pathOf,
  type StreamMethod,
  type StreamMethods,
  type UnaryMethod,
  type UnaryMethods,
} from "./messages.ts";
import type { Line } from "./transport.ts";
import { EntryCutter } from "./wire.ts";

/** One entry of a list, with its bytes as a list of this entry alone, valid until the receiver returns. */
export type Entry<M extends ListMethod> = readonly [method: M, bytes: Buffer];

export type ListRequests = {
  readonly [M in ListMethod]: M extends UnaryMethod ? UnaryMethods[M]["request"] : Nothing;
};
type Nothing = Readonly<Record<never, never>>;

export interface ChannelOptions {
  /** `unix:///…`. */
  readonly endpoint: string;
  /** Default deadline of a call. */
  readonly requestTimeoutMs: number;
  readonly onCall: (call: CallRecord) => void;
  /** Told of each piece of a list: a long one leaves much garbage before its call has ended. */
  readonly onPiece?: (() => void) | undefined;
}

export interface UnaryOptions<Answer, Result> {
  /** Checks and translates the response; if it throws, the response is malformed. */
  readonly decode: (answer: Answer) => Result;
  /** What the call is about, for messages. */
  readonly about?: string;
  readonly signal?: AbortSignal;
  /** Added to the deadline. */
  readonly extraMs?: number;
  /** The deadline is no longer than this. */
  readonly mostMs?: number;
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
  let line: Promise<Line> | undefined;
  const connected = (): Promise<Line> => (line ??= connect(options.endpoint));
  /** Once for a single response, any number of times for a stream. */
  const send = async (
    { method, deadlineMs, signal }: Guard,
    request: object,
    onPiece: OnPiece,
  ): Promise<void> => {
    const bytes = encodeRequest(method, request);
    const connection = await connected();
    await connection.call({ path: pathOf(method), request: bytes, deadlineMs, signal, onPiece });
  };
  const { requestTimeoutMs } = options;
  return {
    call: async (method, request, unary) => {
      const { decode, about = "", signal, extraMs = 0, mostMs = Infinity } = unary;
      const deadlineMs = Math.min(requestTimeoutMs + extraMs, mostMs);
      const guard = { method, about, deadlineMs, signal, options };
      return guarded(guard, async () => {
        const answers: Buffer[] = [];
        const onMessage = (bytes: Buffer): unknown => answers.push(bytes);
        await send(guard, request, wholeMessages(onMessage));
        return decode(decodeAnswer(method, only(answers)));
      });
    },
    list: async (method, request, { onEntry, signal }) => {
      const guard = { method, about: "", deadlineMs: requestTimeoutMs, signal, options };
      const onBytes = (bytes: Buffer): void => onEntry(method, bytes);
      const cutter = new EntryCutter(ENTRIES_FIELD, onBytes);
      return guarded(guard, async () => {
        const ends: true[] = [];
        await send(guard, request, (piece, isLast) => {
          cutter.push(piece, isLast);
          options.onPiece?.();
          if (isLast) ends.push(true);
        });
        if (!isStream(method)) only(ends);
      });
    },
    stream: async (method, { onItem, signal, endless = false }) => {
      const deadlineMs = endless ? null : requestTimeoutMs;
      const guard = { method, about: "", deadlineMs, signal, options };
      const onMessage = (bytes: Buffer): void => onItem(decodeAnswer(method, bytes));
      return guarded(guard, async () => send(guard, {}, wholeMessages(onMessage)));
    },
    close: () => {
      // If loading fails, each call reports it.
      void line?.then(
        (it) => it.close(),
        () => undefined,
      );
    },
  };
}

/** The first call loads the transport: commands without calls do not pay for it. */
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
    // For an endless stream, reaching the deadline is success.
    const aborting = deadlineMs === null ? "OK" : "CANCELLED";
    record(aborted ? aborting : codeName(thrown));
    const attempt: Attempt = { method, about, endpoint: options.endpoint, deadlineMs, aborted };
    throw toRuntimeError(thrown, attempt);
  }
}

/** For a call with a single response. */
function only<Answer>([answer, ...others]: readonly Answer[]): Answer {
  if (answer !== undefined && others.length === 0) return answer;
  throw new CallError(
    "INTERNAL",
    `it sent ${others.length + (answer === undefined ? 0 : 1)} answers instead of one`,
  );
}
