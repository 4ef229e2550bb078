/** Probes sockets for a CRI runtime, and finds the one that answers. */
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import { openChannel } from "./channel.ts";
import { decodeVersion } from "./decode.ts";
import { wellKnownSockets } from "./endpoint.ts";
import { detailsOf } from "./errors.ts";

export interface Answering {
  /** `unix:///…`. */
  readonly endpoint: string;
  readonly name: string;
  readonly version: string;
}

/** A runtime that takes longer to report its version is not used. */
const probeTimeoutMs = 1000;

/** How long the connection of a successful probe is kept. */
const lingerMs = 1000;

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
    const { name, version } = await channel.call("Version", {}, { decode: decodeVersion });
    // Connections are shared per endpoint, so opening the runtime next reuses this one.
    setTimeout(() => channel.close(), lingerMs).unref();
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
export async function probeImageEndpoint(
  endpoint: string,
  timeoutMs: number = probeTimeoutMs,
): Promise<void> {
  const channel = openChannel({ endpoint, requestTimeoutMs: timeoutMs, onCall: () => undefined });
  const request = { image: { image: "crigc.invalid/probe:none" }, verbose: false };
  try {
    await channel.call("ImageStatus", request, { decode: () => null });
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
      `it answers, but not runtime.v1 (${detailsOf(error.cause)}); enable its CRI plugin, or use containerd 1.6, CRI-O 1.23, cri-dockerd 0.3 or later`,
    );
  return error;
}

export interface Discovery {
  /** Resolves links, so that one socket under two names counts once; throws if there is none. */
  readonly realPath: (path: string) => Promise<string>;
  /** Paths to probe instead of the well-known ones. */
  readonly candidates?: readonly string[];
  readonly timeoutMs?: number;
}

/**
 * The only socket that answers `runtime.v1`. Throws `RuntimeError` `ambiguous` if several do, because a wrong guess
 * would remove images.
 */
export async function discoverEndpoint(discovery: Discovery): Promise<Answering> {
  const { candidates = wellKnownSockets, timeoutMs = probeTimeoutMs } = discovery;
  const paths = await distinct(candidates, discovery.realPath);
  const probes = await Promise.all(paths.map(async (path) => probe(path, timeoutMs)));
  const answering = probes.flatMap(({ found }) => (found === null ? [] : [found]));
  const [only, ...others] = answering;
  if (only === undefined) throw noneAnswers(probes);
  if (others.length === 0) return only;
  const named = answering.map((it) => `${it.endpoint} (${it.name} ${it.version})`);
  throw new RuntimeError(
    "ambiguous",
    `cannot choose a container runtime: ${named.join(" and ")} answer; choose one with --container-runtime-endpoint`,
  );
}

/** The first name of each socket. */
async function distinct(
  candidates: readonly string[],
  realPath: Discovery["realPath"],
): Promise<readonly string[]> {
  const real = await Promise.all(candidates.map(async (path) => realPath(path).catch(() => path)));
  return candidates.filter((_, index) => real.indexOf(real[index] ?? "") === index);
}

interface Probe {
  readonly path: string;
  readonly found: Answering | null;
  readonly error: RuntimeError | null;
}

const probe = async (path: string, timeoutMs: number): Promise<Probe> =>
  probeEndpoint(`unix://${path}`, timeoutMs).then(
    (found) => ({ path, found, error: null }),
    (thrown: unknown) => {
      if (thrown instanceof RuntimeError) return { path, found: null, error: thrown };
      throw thrown;
    },
  );

/** Most telling first. */
const tellingKinds: readonly RuntimeErrorKind[] = [
  "permission",
  "not-cri",
  "unreachable",
  "failed",
];

function noneAnswers(probes: readonly Probe[]): RuntimeError {
  const kinds = probes.map(({ error }) => error?.kind ?? "failed");
  const kind = tellingKinds.find((it) => kinds.includes(it)) ?? "absent";
  return new RuntimeError(kind, `no container runtime found: ${whyNone(probes)}`, {
    cause: probes.map(({ error }) => error),
  });
}

const NAME_ONE = "start the runtime, or set --container-runtime-endpoint";

/** Reports sockets that exist; lists absent ones only if none exists. */
function whyNone(probes: readonly Probe[]): string {
  const existing = probes.filter(({ error }) => error?.kind !== "absent");
  if (existing.length === 0)
    return `none of the known sockets exists (${probes.map(({ path }) => path).join(", ")}); ${NAME_ONE}`;
  const denied = existing.some(({ error }) => error?.kind === "permission");
  const reasons = existing.map(({ path, error }) => `${path}: ${shortReason(error)}`);
  return `${reasons.join("; ")}; ${denied ? "run as root (sudo crigc …)" : NAME_ONE}`;
}

function shortReason(error: RuntimeError | null): string {
  const details = detailsOf(error?.cause);
  if (error?.kind === "permission") return "permission denied";
  if (error?.kind === "not-cri") return `answers, but not runtime.v1: ${details}`;
  return `does not answer: ${details}`;
}
