/** Turns every failure of a call into a RuntimeError; the only place that words one. */
import { status } from "@grpc/grpc-js";

import { messageOf, RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import { MalformedError } from "./codec.ts";
import type { AnyMethod } from "./messages.ts";

export interface Attempt {
  readonly method: Pick<AnyMethod, "name" | "doing">;
  /** What the call was about; "" for calls about the whole node. */
  readonly about: string;
  readonly endpoint: string;
  readonly timeoutMs: number;
  /** crigc cancelled the call itself. */
  readonly aborted: boolean;
}

export function toRuntimeError(thrown: unknown, attempt: Attempt): RuntimeError {
  const kind = kindOf(thrown, attempt);
  const about = attempt.about === "" ? "" : ` ${attempt.about}`;
  const message = `cannot ${attempt.method.doing}${about}: ${reasonOf(kind, thrown, attempt)}`;
  return new RuntimeError(kind, message, { cause: thrown });
}

/** The name of a call's gRPC code, as `onCall` reports it. */
export const codeName = (thrown: unknown): string => status[statusOf(thrown).code] ?? "UNKNOWN";

/** What the runtime or the system said, without the code that the library puts before it. */
export const detailsOf = (thrown: unknown): string => statusOf(thrown).details;

interface CallStatus {
  readonly code: number;
  readonly details: string;
}

/** Where the library's status is misleading, a better one. */
function statusOf(thrown: unknown): CallStatus {
  if (!(thrown instanceof Error && "details" in thrown && "code" in thrown)) {
    const code = thrown instanceof MalformedError ? status.INTERNAL : status.UNKNOWN;
    return { code, details: messageOf(thrown) };
  }
  const { code, details } = thrown;
  if (typeof details !== "string")
    return { code: status.INTERNAL, details: "a message cannot be read; it may be compressed" };
  // How Bun reports a peer that ends the HTTP/2 session, and the library one that does so because of too many calls.
  if (/^(?:Received RST_STREAM with code 0|Bandwidth exhausted) /.test(details))
    return { code: status.UNAVAILABLE, details: "the call ended without a status" };
  const reason = /^No connection established\. Last error: (?:Error: )?(.+?)\.? Resolution note: /;
  return { code: Number(code), details: reason.exec(details)?.[1] ?? details };
}

function kindOf(thrown: unknown, attempt: Attempt): RuntimeErrorKind {
  if (attempt.aborted) return "cancelled";
  if (thrown instanceof MalformedError) return "malformed";
  if (dockerLacks(thrown, attempt.about)) return "not-found";
  const name = codeName(thrown);
  if (name === "UNAVAILABLE") return connectionKind(detailsOf(thrown));
  const isBusy = /^(?:Remove|Stop)/.test(attempt.method.name) && BUSY.test(detailsOf(thrown));
  return KINDS[name] ?? (isBusy ? "busy" : "failed");
}

const KINDS: Readonly<Record<string, RuntimeErrorKind>> = {
  DEADLINE_EXCEEDED: "deadline",
  NOT_FOUND: "not-found",
  RESOURCE_EXHAUSTED: "too-large",
  UNIMPLEMENTED: "unimplemented",
};

/** CRI has no code for it. containerd: "is already in removing state"; Docker: "removal of … is already in progress". */
const BUSY =
  /already in removing state|(?:already|is) being (?:removed|deleted)|removal .*\bin progress|marked for removal/i;

/** cri-dockerd has no code for NotFound: it returns Docker's text, which ends with the full ID. */
const dockerLacks = (thrown: unknown, id: string): boolean =>
  id !== "" &&
  codeName(thrown) === "UNKNOWN" &&
  detailsOf(thrown).endsWith(`No such container: ${id}`);

/** The transport reports the system's error only as text. */
function connectionKind(details: string): RuntimeErrorKind {
  if (/\bENOENT\b/.test(details)) return "absent";
  if (/\b(?:EACCES|EPERM)\b/.test(details)) return "permission";
  if (/\bProtocol error\b/i.test(details)) return "not-cri";
  return "unreachable";
}

function reasonOf(kind: RuntimeErrorKind, thrown: unknown, attempt: Attempt): string {
  const { endpoint, method } = attempt;
  const details = detailsOf(thrown);
  switch (kind) {
    case "absent":
      return `${endpoint}: socket not found; start the runtime, or set --container-runtime-endpoint`;
    case "permission":
      return `${endpoint}: permission denied; run as root (sudo crigc …)`;
    case "unreachable":
      return `${endpoint} does not answer (${details}); check that the runtime is running`;
    case "not-cri":
      return `${endpoint} does not speak gRPC; set --container-runtime-endpoint to the runtime's socket`;
    case "deadline":
      return `${endpoint} did not answer within ${attempt.timeoutMs / 1000} s; check what keeps the runtime busy, or raise --runtime-request-timeout`;
    case "cancelled":
      return `the call to ${endpoint} was cancelled`;
    case "not-found":
      return `${endpoint}: not found (${details})`;
    case "unimplemented":
      return `${endpoint} does not implement ${method.name} (${details}); use a runtime that speaks runtime.v1`;
    case "too-large":
      return `the response of ${endpoint} exceeds the size limit of a message (${details}) and cannot be split further; remove some by hand, or use a runtime with streaming lists`;
    case "malformed":
      return `the response of ${endpoint} violates CRI (${details}), so crigc ignores it; report this with the runtime's version`;
    case "busy":
    case "failed":
    case "ambiguous":
      return `${endpoint} answered ${codeName(thrown)} (${details}); ${DAMAGED.test(details) ? DAMAGED_ADVICE : "see the runtime's log"}`;
  }
}

/** CRI-O lists no image at all while the record of one manifest, configuration or layer is missing. */
const DAMAGED =
  /layer not known|(?:locating|reading) (?:item|image|manifest|config)|unknown layer/i;
const DAMAGED_ADVICE =
  "the data of an image are damaged: find its name in the runtime's log and pull it again";
