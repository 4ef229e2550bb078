/** Probes sockets for a CRI runtime, and finds the one that answers. */
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import { decodeVersion } from "./decode.ts";
import { detailsOf } from "./errors.ts";
import { methods } from "./messages.ts";
import { knownSockets, supportedVersions } from "./runtimes.ts";
import { type Channel, openChannel } from "./transport.ts";

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
export const probeEndpoint = (endpoint: string, timeoutMs = probeTimeoutMs): Promise<Answering> =>
  probed({ endpoint, timeoutMs, role: "container runtime" }, async (channel) => {
    const { name, version } = await channel.call(methods.Version, {}, { decode: decodeVersion });
    return { endpoint, name, version };
  });

/**
 * The same for an image service on its own socket. It need not report a version, so the probe asks for an image that
 * nobody has; any answer of the service will do.
 */
export const probeImageEndpoint = (endpoint: string): Promise<void> =>
  probed({ endpoint, timeoutMs: probeTimeoutMs, role: "image service" }, async (channel) => {
    const request = { image: { image: "crigc.invalid/probe:none" }, verbose: false };
    try {
      await channel.call(methods.ImageStatus, request, { decode: () => null });
    } catch (thrown) {
      const answers = ["failed", "not-found"];
      if (!(thrown instanceof RuntimeError && answers.includes(thrown.kind))) throw thrown;
    }
  });

interface Probe {
  readonly endpoint: string;
  readonly timeoutMs: number;
  readonly role: "container runtime" | "image service";
}

/** Leaves the socket connected, for whatever uses it next. */
async function probed<Result>(
  probe: Probe,
  ask: (channel: Channel) => Promise<Result>,
): Promise<Result> {
  const { endpoint, timeoutMs } = probe;
  const channel = openChannel({ endpoint, requestTimeoutMs: timeoutMs, onCall: () => undefined });
  try {
    return await ask(channel);
  } catch (thrown) {
    channel.close();
    throw thrown instanceof RuntimeError ? refined(thrown, probe) : thrown;
  }
}

/** Distinguishes no answer from the wrong kind of answer. */
function refined(error: RuntimeError, { endpoint, timeoutMs, role }: Probe): RuntimeError {
  const failed = (kind: RuntimeErrorKind, reason: string): RuntimeError =>
    new RuntimeError(kind, `cannot use the ${role}: ${endpoint} ${reason}`, {
      cause: error.cause,
    });
  if (role === "image service" && error.kind === "absent")
    return failed("absent", "was not found; set --image-service-endpoint");
  if (error.kind === "deadline")
    return failed(
      "unreachable",
      `accepts connections but did not answer within ${timeoutMs / 1000} s; check whether the runtime hangs`,
    );
  if (error.kind === "unimplemented" || error.kind === "malformed")
    return failed(
      "not-cri",
      `answers, but not runtime.v1 (${detailsOf(error.cause)}); enable its CRI plugin, or use ${supportedVersions} or later`,
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
      probeEndpoint(`unix://${path}`, timeoutMs).catch((thrown: unknown) => {
        if (thrown instanceof RuntimeError) return thrown;
        throw thrown;
      }),
    ),
  );
  const errors = probes.filter((it) => it instanceof RuntimeError);
  const answering = probes.filter((it) => "endpoint" in it);
  const [only, ...others] = answering;
  if (only === undefined) throw noneAnswers(errors, paths);
  if (others.length === 0) return only;
  const named = answering.map((it) => `${it.endpoint} (${it.name} ${it.version})`);
  throw new RuntimeError(
    "ambiguous",
    `cannot choose a container runtime: ${named.join(" and ")} answer; choose one with --container-runtime-endpoint`,
  );
}

/** Reports sockets that exist; lists absent ones only if none exists. */
function noneAnswers(errors: readonly RuntimeError[], paths: readonly string[]): RuntimeError {
  const existing = errors.filter(({ kind }) => kind !== "absent");
  const [first] = existing;
  const reasons = existing.map(({ message }) => message.slice(message.indexOf(": ") + 2));
  const none = `none of the known sockets exists (${paths.join(", ")}); start the runtime, or set --container-runtime-endpoint`;
  return new RuntimeError(
    first?.kind ?? "absent",
    `no container runtime found: ${first === undefined ? none : reasons.join(". ")}`,
    { cause: errors },
  );
}
