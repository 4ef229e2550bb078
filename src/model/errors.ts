/**
 * Errors: one class per border of the program, whose kind tells callers what to do and whose `cause` is the original error;
 * and assertions, whose failure is a bug in crigc.
 */

/** The end of an exhausted union, which the compiler proves unreachable. */
export function assertNever(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value) ?? String(value)}`);
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export type RuntimeErrorKind =
  | "absent"
  /** The socket exists, but permission is denied. */
  | "permission"
  /** Nothing answers on the socket, or the connection broke. */
  | "unreachable"
  /** Something answers, but does not speak `runtime.v1`. */
  | "not-cri"
  | "deadline"
  /** crigc cancelled the call itself. */
  | "cancelled"
  | "not-found"
  | "unimplemented"
  /** The response exceeds the largest accepted message. */
  | "too-large"
  /** The response violates the wire contract (a missing ID, an unknown state). */
  | "malformed"
  /** Another removal of the same object is in progress. */
  | "busy"
  /** The runtime returned any other error. */
  | "failed"
  /** Several runtimes answer and none was specified. */
  | "ambiguous";

abstract class KindError<Kind extends string> extends Error {
  readonly kind: Kind;
  constructor(kind: Kind, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}

/** The container runtime or its socket. */
export class RuntimeError extends KindError<RuntimeErrorKind> {
  override readonly name = "RuntimeError";
}

const UNANSWERED: readonly RuntimeErrorKind[] = ["deadline", "unreachable", "cancelled"];

/** Whether a call that failed so may still be in progress. */
export const isUnanswered = (code: string): boolean => UNANSWERED.some((kind) => kind === code);

export const wasUnanswered = (thrown: unknown): boolean =>
  thrown instanceof RuntimeError && isUnanswered(thrown.kind);

export type HostErrorKind =
  "stat" | "read" | "write" | "lock" | "stopped" | "refused" | "parse" | "http";

/** The machine: filesystems, directories, locks, a kubelet's endpoint. */
export class HostError extends KindError<HostErrorKind> {
  override readonly name = "HostError";
}

/** Why something outside failed, for a caller, a metric or a document; `failed` if no kind is more specific. */
export type FailureCode = RuntimeErrorKind | HostErrorKind;

export const failureCode = (thrown: unknown): FailureCode =>
  thrown instanceof RuntimeError || thrown instanceof HostError ? thrown.kind : "failed";

/** One error in the configuration. `source` is where it was written: a flag, a file with its line, a variable. */
export interface ConfigIssue {
  readonly source: string;
  /** The offending text as written. */
  readonly text: string;
  /** What is wrong and what was expected, in one sentence. */
  readonly message: string;
}

/** Usage, configuration files, environment, keep rules. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly issues: readonly ConfigIssue[];
  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map((issue) => `${issue.source}: ${issue.message}`).join("\n"));
    this.issues = issues;
  }
}

export const configIssue = (source: string, text: string, message: string): ConfigIssue => ({
  source,
  text,
  message,
});

export const usageError = (source: string, text: string, message: string): ConfigError =>
  new ConfigError([configIssue(source, text, message)]);

export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
