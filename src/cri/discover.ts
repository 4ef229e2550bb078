/** Probes sockets for a CRI runtime, and finds the one that answers. */
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import { decodeVersion } from "./decode.ts";
import { detailsOf } from "./errors.ts";
import { methods } from "./messages.ts";
import { knownSockets, supportedVersions } from "./runtimes.ts";
import { openChannel } from "./transport.ts";

export interface Answering {
  /** `unix:///…`. */
  readonly endpoint: string;
  readonly name: string;
  readonly version: string;
}

/** A runtime that takes longer to report its version is not used. On a node that is short of something it takes seconds. */
const probeTimeoutMs = 5000;

/**
 * Throws `RuntimeError`: `absent`, `permission`, `unreachable` (no answer in time) or `not-cri` (an answer, but no
 * `runtime.v1`).
 */
export async function probeEndpoint(
  endpoint: string,
  timeoutMs: number = probeTimeoutMs,
): Promise<Answering> {
  const channel = openChannel({ endpoint, requestTimeoutMs: timeoutMs, onCall: () => undefined });
  try {
    const { name, version } = await channel.call(methods.Version, {}, { decode: decodeVersion });
    // Not closed: whatever uses the socket next finds it connected.
    return { endpoint, name, version };
  } catch (thrown) {
    channel.close();
    throw thrown instanceof RuntimeError
      ? refined(thrown, { endpoint, timeoutMs, role: "container runtime" })
      : thrown;
  }
}

/**
 * The same for an image service on its own socket. It need not report a version, so the probe asks for an image that
 * nobody has; any answer of the service will do.
 */
export async function probeImageEndpoint(endpoint: string): Promise<void> {
  const timeoutMs = probeTimeoutMs;
  const channel = openChannel({ endpoint, requestTimeoutMs: timeoutMs, onCall: () => undefined });
  const request = { image: { image: "crigc.invalid/probe:none" }, verbose: false };
  try {
    await channel.call(methods.ImageStatus, request, { decode: () => null });
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    if (thrown.kind === "failed" || thrown.kind === "not-found") return;
    throw refined(thrown, { endpoint, timeoutMs, role: "image service" });
  } finally {
    channel.close();
  }
}

interface ProbeTarget {
  readonly endpoint: string;
  readonly timeoutMs: number;
  readonly role: "container runtime" | "image service";
}

/** Distinguishes no answer from the wrong kind of answer. */
function refined(error: RuntimeError, target: ProbeTarget): RuntimeError {
  const { endpoint, timeoutMs, role } = target;
  const failed = (kind: RuntimeErrorKind, reason: string): RuntimeError =>
    new RuntimeError(kind, `cannot use ${endpoint} as ${role}: ${reason}`, {
      cause: error.cause,
    });
  if (role === "image service" && error.kind === "absent")
    return failed("absent", "socket not found; set --image-service-endpoint");
  if (error.kind === "deadline")
    return failed(
      "unreachable",
      `it accepts connections but did not answer within ${timeoutMs / 1000} s; check whether the runtime hangs`,
    );
  if (error.kind === "unimplemented" || error.kind === "malformed")
    return failed(
      "not-cri",
      `it answers, but not runtime.v1 (${detailsOf(error.cause)}); enable its CRI plugin, or use ${supportedVersions} or later`,
    );
  return error;
}

/**
 * The only socket that answers `runtime.v1`. `realPath` resolves links, so that one socket under two names counts once; it
 * rejects if there is none. Throws `RuntimeError` `ambiguous` if several answer, because a wrong guess would remove
 * images.
 */
export async function discoverEndpoint(
  realPath: (path: string) => Promise<string>,
  candidates: readonly string[] = knownSockets,
  timeoutMs: number = probeTimeoutMs,
): Promise<Answering> {
  const real = await Promise.all(candidates.map((path) => realPath(path).catch(() => path)));
  const paths = candidates.filter((_, index) => real.indexOf(real[index] ?? "") === index);
  const probes = await Promise.all(
    paths.map((path) =>
      probeEndpoint(`unix://${path}`, timeoutMs).catch((error: unknown): Failure => {
        if (error instanceof RuntimeError) return { path, error };
        throw error;
      }),
    ),
  );
  const answering = probes.filter((it) => "endpoint" in it);
  const [only, ...others] = answering;
  if (only === undefined) throw noneAnswers(probes.filter((it) => "error" in it));
  if (others.length === 0) return only;
  const named = answering.map((it) => `${it.endpoint} (${it.name} ${it.version})`);
  throw new RuntimeError(
    "ambiguous",
    `cannot choose a container runtime: ${named.join(" and ")} answer; choose one with --container-runtime-endpoint`,
  );
}

interface Failure {
  readonly path: string;
  readonly error: RuntimeError;
}

/** Most telling first. */
const tellingKinds: readonly RuntimeErrorKind[] = [
  "permission",
  "not-cri",
  "unreachable",
  "failed",
];

const NAME_ONE = "start the runtime, or set --container-runtime-endpoint";

/** Reports sockets that exist; lists absent ones only if none exists. */
function noneAnswers(failures: readonly Failure[]): RuntimeError {
  const existing = failures.filter(({ error }) => error.kind !== "absent");
  const kind = tellingKinds.find((it) => existing.some(({ error }) => error.kind === it));
  const reasons = existing.map(({ path, error }) => `${path}: ${shortReason(error)}`);
  const paths = failures.map(({ path }) => path).join(", ");
  const why =
    existing.length === 0
      ? `none of the known sockets exists (${paths}); ${NAME_ONE}`
      : `${reasons.join("; ")}; ${kind === "permission" ? "run as root (sudo crigc …)" : NAME_ONE}`;
  return new RuntimeError(kind ?? "absent", `no container runtime found: ${why}`, {
    cause: failures.map(({ error }) => error),
  });
}

function shortReason({ kind, cause }: RuntimeError): string {
  if (kind === "permission") return "permission denied";
  const what: Partial<Record<RuntimeErrorKind, string>> = {
    "not-cri": "answers, but not runtime.v1",
    failed: "answers with an error",
  };
  // Without the library's account of where the time went.
  const details = detailsOf(cause).replace(/^(Deadline exceeded[^,]*),.*/s, "$1");
  return `${what[kind] ?? "does not answer"}: ${details}`;
}
