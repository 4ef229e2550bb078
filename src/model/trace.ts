/** When images were on a node and in use, as JSON lines: docs/trace.md describes the format. */

import {
  branded,
  byKind,
  bytes,
  count,
  FieldError,
  list,
  nullable,
  type Of,
  oneOf,
  record,
  text,
  texts,
} from "./codec.ts";
import { exactJson, parseExactJson } from "./exact-json.ts";
import { type ChainId, type ImageId, imageId } from "./ids.ts";
import type { Image } from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

/** Milliseconds since the epoch by the wall clock. */
const ms = count;

const head = {
  apiVersion: oneOf("crigc/v1"),
  node: text,
  fromMs: ms,
  untilMs: ms,
  /** The detection period: intervals are exact to it. */
  precisionMs: ms,
  /** Of the image filesystem when the trace was written. */
  capacityBytes: nullable(bytes),
  /** What anything but images used there. */
  otherBytes: nullable(bytes),
};

const image = {
  image: branded(imageId),
  /** Tags and digests. */
  names: texts,
  /** As the runtime reports it. */
  sizeBytes: bytes,
  /** From the first to the last, by chain ID; `null`: unknown. */
  layers: nullable(list(record({ id: text, sizeBytes: bytes }))),
};

const interval = {
  image: branded(imageId),
  fromMs: ms,
  /** `null`: it had not ended. */
  untilMs: nullable(ms),
};

const line = byKind({
  Trace: head,
  Image: image,
  Present: interval,
  /** In use by containers; `name` is the one that they asked for. */
  Use: { ...interval, name: nullable(text) },
});
type TraceLine = Of<typeof line>;
type TraceHead = Extract<TraceLine, { kind: "Trace" }>;
export type TraceImage = Extract<TraceLine, { kind: "Image" }>;
export type TracePresent = Extract<TraceLine, { kind: "Present" }>;
export type TraceUse = Extract<TraceLine, { kind: "Use" }>;

const KINDS: ReadonlySet<unknown> = new Set<TraceLine["kind"]>([
  "Trace",
  "Image",
  "Present",
  "Use",
]);
/** A converter need not write them. */
const MAY_LACK = { capacityBytes: null, otherBytes: null, layers: null, name: null };

/** An image with a thousand layers takes a tenth of it. */
export const TRACE_LINE_MAX = 1024 * 1024;
/** Ten times what a node keeps. */
export const TRACE_LINES_MAX = 2_000_000;

/** The records of one node. */
export interface NodeTrace extends Omit<TraceHead, "kind" | "apiVersion"> {
  readonly images: readonly TraceImage[];
  readonly present: readonly TracePresent[];
  readonly uses: readonly TraceUse[];
}

/** Each with its line end, the head first. */
export function* traceLines({ images, present, uses, ...node }: NodeTrace): Iterable<string> {
  yield jsonLine({ kind: "Trace", apiVersion: "crigc/v1", ...node });
  for (const records of [images, present, uses]) for (const one of records) yield jsonLine(one);
}

/** Throws `FieldError` for an invalid trace, the number of a line first in the path. */
export function readTrace(whole: string): NodeTrace {
  let first: TraceHead | null = null;
  const images: TraceImage[] = [];
  const present: TracePresent[] = [];
  const uses: TraceUse[] = [];
  let number = 0;
  for (const written of linesOf(whole)) {
    number += 1;
    if (number > TRACE_LINES_MAX) throw new FieldError(`it has more than ${TRACE_LINES_MAX} lines`);
    const read = at(`line ${number}`, () => readLine(written, first !== null));
    if (read?.kind === "Trace") first = read;
    else if (read?.kind === "Image") images.push(read);
    else if (read?.kind === "Present") present.push(read);
    else if (read !== null) uses.push(read);
  }
  if (first === null) throw new FieldError("it has no line of kind Trace");
  const known = new Set(images.map((one) => one.image));
  const unknown = [...present, ...uses].find((one) => !known.has(one.image));
  if (unknown !== undefined)
    throw new FieldError(`it has no line of kind Image for ${JSON.stringify(unknown.image)}`);
  const { kind: _, apiVersion: __, ...rest } = first;
  return { ...rest, images, present, uses };
}

/** Adds the step to the path of an error. */
function at<Value>(step: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) throw new FieldError(error.message, [step, ...error.path]);
    throw error;
  }
}

/** One at a time: all of them would take as much memory again as the text. */
function* linesOf(whole: string): Iterable<string> {
  for (let from = 0; from < whole.length;) {
    const end = whole.indexOf("\n", from);
    yield whole.slice(from, end < 0 ? undefined : end);
    from = end < 0 ? whole.length : end + 1;
  }
}

const jsonLine = (one: TraceLine): string => `${exactJson(line.write(one))}\n`;

/** `null`: a blank line, or one of a kind that a later version added. */
function readLine(written: string, hasHead: boolean): TraceLine | null {
  if (written.length > TRACE_LINE_MAX)
    throw new FieldError(`expected at most ${TRACE_LINE_MAX} characters`);
  if (written.trim() === "") return null;
  let document: unknown;
  try {
    document = parseExactJson(written);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new FieldError(`expected JSON: ${error.message}`);
  }
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new FieldError("expected a record");
  const { kind } = Object(document);
  if (typeof kind !== "string") throw new FieldError("expected a string", ["kind"]);
  if (!KINDS.has(kind)) return null;
  const read = line.read({ ...MAY_LACK, ...document });
  if ((read.kind === "Trace") === hasHead)
    throw new FieldError("expected one line of kind Trace, before all others", ["kind"]);
  if (read.kind !== "Image" && read.untilMs !== null && read.untilMs < read.fromMs)
    throw new FieldError("expected a time that is not before fromMs", ["untilMs"]);
  return read;
}

/** Of an image that is there, its ID; of one in use, also the name that containers asked for, which may be "". */
export type TraceKey = string;
export const useKey = (id: ImageId, name: string): TraceKey => `${id}\n${name}`;

/** Images and their uses; the same object while nothing changed. */
export interface TracedNode {
  /** What is there and in use. */
  readonly keys: ReadonlySet<TraceKey>;
  readonly images: readonly Image[];
  /** `null`: not read yet. */
  readonly chainOf: (id: ImageId) => readonly ChainId[] | null;
}

/** What one detection saw. */
export interface TraceSeen {
  readonly at: Instant;
  /** The detection period. */
  readonly precision: Duration;
  readonly node: TracedNode;
  /** Whether all uses are known. */
  readonly isComplete: boolean;
}
