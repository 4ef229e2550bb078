/** The methods of CRI on one socket. Every call has a timeout, can be cancelled, is recorded, and fails with RuntimeError. */
import { assert } from "../model/errors.ts";
import type { CallRecord } from "../model/ports.ts";
import { cutEntries, decodeAnswer, encodeRequest, isStream, pathOf } from "./codec.ts";
import { codeName, toRuntimeError } from "./errors.ts";
import {
  type Answer,
  type ListMethod,
  type Method,
  type Request,
  type UnaryMethod,
} from "./messages.ts";
import { openConnection } from "./transport.ts";

export interface ChannelOptions {
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
  /** Without a timeout; resolves when the runtime ends the stream. */
  watchEvents(
    onEvent: (event: Answer<"GetContainerEvents">) => void,
    signal: AbortSignal,
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
    const startedAt = performance.now();
    const record = (code: string): void =>
      onCall({ method, code, tookMs: performance.now() - startedAt });
    try {
      const bytes = encodeRequest(method, request);
      const call = { path: pathOf(method), request: bytes, isStream: isStream(method) };
      await connection.exchange({ ...call, timeoutMs, signal }, onMessage);
      record("OK");
    } catch (thrown) {
      const aborted = signal?.aborted ?? false;
      // Only crigc ends a stream without a timeout.
      const aborting = timeoutMs === null ? "OK" : "CANCELLED";
      record(aborted ? aborting : codeName(thrown));
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
    watchEvents: async (onEvent, signal) => {
      const onMessage = (bytes: Buffer): void => onEvent(decodeAnswer("GetContainerEvents", bytes));
      await exchange("GetContainerEvents", {}, { timeoutMs: null, signal, onMessage });
    },
    close: () => connection.close(),
  };
}

interface Exchange {
  readonly about?: string | undefined;
  readonly timeoutMs: number | null;
  readonly signal?: AbortSignal | undefined;
  readonly onMessage: (bytes: Buffer) => void;
}
