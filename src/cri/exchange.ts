/** One call of gRPC on an HTTP/2 connection. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";

import { messageOf } from "../model/errors.ts";
import { CallError, type Code } from "./errors.ts";
import { framed, Frames, type OnPiece } from "./frames.ts";

export interface Call {
  /** `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  readonly request: Buffer;
  readonly deadlineMs: number | null;
  readonly signal: AbortSignal | undefined;
  /** Receives the response's messages; if it throws, the call ends. */
  readonly onPiece: OnPiece;
}

/** A call in flight: a request, messages, and the status that comes last. */
export class Exchange {
  readonly #call: Call;
  readonly #settled: (error: unknown) => void;
  readonly #frames: Frames;
  #stream: ClientHttp2Stream | null = null;
  #session: ClientHttp2Session | null = null;
  #ended: () => void = () => undefined;
  #httpStatus = 0;
  #status: CallError | "OK" | null = null;
  /** The status came with the headers, so there are no messages. */
  #isOverBefore = false;
  /** The stream was read to its end. */
  #isRead = false;
  #streamError: unknown = null;
  isOver = false;

  constructor(call: Call, settled: (error: unknown) => void) {
    this.#call = call;
    this.#settled = settled;
    this.#frames = new Frames(call.onPiece);
  }

  begin(session: ClientHttp2Session, ended: () => void): void {
    this.#session = session;
    this.#ended = ended;
    const { path, request, deadlineMs } = this.#call;
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      ":authority": "localhost",
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": "crigc",
      ...(deadlineMs === null ? {} : { "grpc-timeout": timeoutOf(deadlineMs) }),
    });
    this.#stream = stream;
    stream.on("response", (headers) => {
      this.#httpStatus = headers[":status"] ?? 0;
      this.#noteStatus(headers);
      this.#isOverBefore = this.#status === "OK";
    });
    stream.on("trailers", (headers: IncomingHttpHeaders) => {
      this.#noteStatus(headers);
      this.#endIfWhole();
    });
    stream.on("data", (bytes: Buffer) => this.#read(bytes));
    stream.on("end", () => {
      this.#isRead = true;
      this.#endIfWhole();
    });
    stream.on("error", (error) => (this.#streamError = error));
    stream.on("close", () => this.#closed());
    stream.end(framed(request));
  }

  /** `null` for success. Only the first call counts. */
  fail(error: unknown): void {
    if (this.isOver) return;
    this.#settle(error);
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  #read(bytes: Buffer): void {
    // Without gRPC, the HTTP status explains the failure.
    if (this.isOver || this.#httpStatus !== constants.HTTP_STATUS_OK) return;
    try {
      if (this.#isOverBefore) throw new CallError("INTERNAL", "it sent messages after its status");
      this.#frames.push(bytes);
      release(bytes);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  #noteStatus(headers: IncomingHttpHeaders): void {
    const status = headers["grpc-status"];
    if (typeof status !== "string") return;
    const message = headers["grpc-message"];
    this.#status =
      status === "0"
        ? "OK"
        : new CallError(Number(status), typeof message === "string" ? unescaped(message) : "");
  }

  #endIfWhole(): void {
    if (this.#isRead && this.#status !== null) this.#closed();
  }

  #closed(): void {
    if (!this.isOver) this.#settle(this.#outcome());
  }

  #outcome(): CallError | null {
    if (this.#status !== null && this.#status !== "OK") return this.#status;
    if (this.#status === null || this.#httpStatus !== constants.HTTP_STATUS_OK)
      return this.#withoutStatus();
    const isWhole = this.#isRead && this.#frames.isEmpty;
    return isWhole ? null : new CallError("INTERNAL", "the response was truncated");
  }

  /** The code that gRPC defines for responses from intermediaries and for reset streams. */
  #withoutStatus(): CallError {
    const http = this.#httpStatus;
    if (http !== 0 && http !== constants.HTTP_STATUS_OK)
      return new CallError(httpCodes[http] ?? "UNKNOWN", `it answered with HTTP status ${http}`);
    if (this.#session?.destroyed === true || this.#session?.closed === true)
      return new CallError("UNAVAILABLE", "the connection was closed");
    const reset = this.#stream?.rstCode ?? 0;
    const why = this.#streamError === null ? "" : `: ${messageOf(this.#streamError)}`;
    return new CallError(
      resetCodes[reset] ?? "INTERNAL",
      `the call ended without a status, with code ${reset}${why}`,
    );
  }

  #settle(error: unknown): void {
    this.isOver = true;
    this.#ended();
    this.#settled(error);
  }
}

/** Smaller ones are not worth the call. */
const RELEASED_BYTES = 4096;

/** Gives memory back at once that would else wait for a collection: a list comes in more than a thousand pieces. */
function release({ buffer, byteLength }: Buffer): void {
  if (byteLength < RELEASED_BYTES || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const httpCodes: Readonly<Record<number, Code>> = {
  [constants.HTTP_STATUS_BAD_REQUEST]: "INTERNAL",
  [constants.HTTP_STATUS_UNAUTHORIZED]: "UNAUTHENTICATED",
  [constants.HTTP_STATUS_FORBIDDEN]: "PERMISSION_DENIED",
  [constants.HTTP_STATUS_NOT_FOUND]: "UNIMPLEMENTED",
  [constants.HTTP_STATUS_TOO_MANY_REQUESTS]: "UNAVAILABLE",
  [constants.HTTP_STATUS_BAD_GATEWAY]: "UNAVAILABLE",
  [constants.HTTP_STATUS_SERVICE_UNAVAILABLE]: "UNAVAILABLE",
  [constants.HTTP_STATUS_GATEWAY_TIMEOUT]: "UNAVAILABLE",
};

const resetCodes: Readonly<Record<number, Code>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: "UNAVAILABLE",
  [constants.NGHTTP2_CANCEL]: "CANCELLED",
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: "RESOURCE_EXHAUSTED",
  [constants.NGHTTP2_INADEQUATE_SECURITY]: "PERMISSION_DENIED",
};

const TIMEOUT_DIGITS_MAX = 8;

/** Three years serve where more seconds are wanted than gRPC has digits for. */
const timeoutOf = (ms: number): string => {
  const most = 10 ** TIMEOUT_DIGITS_MAX - 1;
  return ms <= most ? `${Math.max(1, Math.ceil(ms))}m` : `${Math.min(most, Math.ceil(ms / 1000))}S`;
};

/** Percent-decodes; invalid escapes stay as they are. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
