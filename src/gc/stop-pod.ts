/** Stops a container as its pod specifies: grace period, and the pre-stop handler that the kubelet recorded. */

import * as v from "valibot";

import { messageOf } from "../model/errors.ts";
import type {
  ContainerDetail,
  HookCaller,
  RuntimeReader,
  RuntimeWriter,
  Timer,
} from "../model/ports.ts";
import type { Container } from "../model/snapshot.ts";

/** A container always gets this long, whatever is recorded and however long the handler took. */
const GRACE_MIN_SECONDS = 2;
/** Longer grace periods are cut to this. */
const GRACE_MAX_SECONDS = 30;
const NS_PER_SECOND = 1_000_000_000n;

export interface StopPorts {
  readonly runtime: Pick<RuntimeReader, "sandboxDetail">;
  readonly writer: Pick<RuntimeWriter, "stopContainer" | "execSync">;
  readonly hooks: HookCaller;
  readonly timer: Timer;
  /** Cancels the handler and the stop. */
  readonly signal: AbortSignal;
}

/**
 * Runs the handler, then stops the container with the rest of its grace period. Resolves with the handler's error;
 * the container is stopped anyway. Throws if the stop fails.
 */
export async function stopGracefully(
  container: Container,
  detail: ContainerDetail,
  ports: StopPorts,
): Promise<string | null> {
  const graceSeconds = graceSecondsOf(detail.annotations);
  const startNs = ports.timer.monotonicNs();
  const handlerError =
    graceSeconds > 0 ? await runPreStop({ container, detail, graceSeconds }, ports) : null;
  ports.signal.throwIfAborted();
  const spentSeconds = Number((ports.timer.monotonicNs() - startNs) / NS_PER_SECOND);
  const leftSeconds = Math.max(GRACE_MIN_SECONDS, graceSeconds - spentSeconds);
  await ports.writer.stopContainer(container.id, leftSeconds, ports.signal);
  return handlerError;
}

export function graceSecondsOf(annotations: ContainerDetail["annotations"]): number {
  const recorded =
    wholeSeconds(annotations["io.kubernetes.pod.deletionGracePeriod"]) ??
    wholeSeconds(annotations["io.kubernetes.pod.terminationGracePeriod"]);
  return Math.min(recorded ?? GRACE_MIN_SECONDS, GRACE_MAX_SECONDS);
}

function wholeSeconds(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

interface PreStop {
  readonly container: Container;
  readonly detail: ContainerDetail;
  readonly graceSeconds: number;
}

/** Waits at most as long as the grace period. */
async function runPreStop(stop: PreStop, ports: StopPorts): Promise<string | null> {
  const recorded = stop.detail.annotations["io.kubernetes.container.preStopHandler"] ?? "";
  if (recorded === "") return null;
  const handler = readHandler(recorded);
  if (handler === null) {
    return "unknown kind of pre-stop handler, not run";
  }
  if (handler.kind === "sleep") {
    const seconds = Math.min(handler.seconds, stop.graceSeconds);
    await ports.timer.sleep(seconds * 1000, ports.signal);
    return null;
  }
  const expiry = new AbortController();
  const failure = run(handler, stop, ports).then(
    () => null,
    (thrown: unknown) => `the pre-stop handler failed: ${messageOf(thrown)}`,
  );
  const expired = ports.timer
    .sleep(stop.graceSeconds * 1000, expiry.signal)
    .then(() => `the pre-stop handler did not end within ${stop.graceSeconds} s`);
  const outcome = await Promise.race([failure, expired]);
  expiry.abort();
  return outcome;
}

async function run(
  handler: Exclude<Handler, { readonly kind: "sleep" }>,
  { container, detail, graceSeconds }: PreStop,
  ports: StopPorts,
): Promise<void> {
  const { signal } = ports;
  if (handler.kind === "exec") {
    const command = { words: handler.command, timeoutSeconds: graceSeconds };
    const code = await ports.writer.execSync(container.id, command, signal);
    if (code !== 0) throw new Error(`its command exited with code ${code}`);
    return;
  }
  const host =
    handler.host !== ""
      ? handler.host
      : ((await ports.runtime.sandboxDetail(container.sandboxId, signal))?.address ?? "");
  if (host === "") throw new Error("the pod has no address");
  const port = handlerPort(handler.port, detail.annotations);
  if (port === null) throw new Error(`the container has no port ${handler.port}`);
  const { scheme, path, headers } = handler;
  const timeoutMs = graceSeconds * 1000;
  await ports.hooks.get({ scheme, host, port, path, headers, timeoutMs }, signal);
}

const TEXT = v.nullish(v.string(), "");

const HTTP_GET = v.object({
  /** A number, or the name of a port of the container. */
  port: v.union([v.number(), v.string()]),
  scheme: v.pipe(
    TEXT,
    v.transform((scheme) => (scheme.toUpperCase() === "HTTPS" ? "https" : "http")),
  ),
  /** "": the pod's own address. */
  host: TEXT,
  path: v.pipe(
    TEXT,
    v.transform((path) => (path.startsWith("/") ? path : `/${path}`)),
  ),
  httpHeaders: v.nullish(v.array(v.object({ name: v.string(), value: TEXT })), []),
});

/** Recorded in a container's annotations, which are not trusted. */
const HANDLER = v.pipe(
  v.string(),
  v.parseJson(),
  v.union([
    v.pipe(
      v.object({ exec: v.object({ command: v.pipe(v.array(v.string()), v.nonEmpty()) }) }),
      v.transform(({ exec }) => ({ kind: "exec" as const, ...exec })),
    ),
    v.pipe(
      v.object({ httpGet: HTTP_GET }),
      v.transform(({ httpGet: { httpHeaders, ...get } }) => {
        const headers = httpHeaders.filter(({ name }) => name !== "");
        return { kind: "http" as const, ...get, headers };
      }),
    ),
    v.pipe(
      v.object({ sleep: v.object({ seconds: v.pipe(v.number(), v.finite(), v.minValue(0)) }) }),
      v.transform(({ sleep }) => ({ kind: "sleep" as const, ...sleep })),
    ),
  ]),
);
export type Handler = v.InferOutput<typeof HANDLER>;

/** `null` if the text is not a handler. */
export function readHandler(text: string): Handler | null {
  const handler = v.safeParse(HANDLER, text);
  return handler.success ? handler.output : null;
}

const PORTS = v.pipe(
  v.string(),
  v.parseJson(),
  v.array(v.object({ name: TEXT, containerPort: v.number() })),
);

/** Looks up a named port in the ports recorded with the handler; `null` if it is not there. */
export function handlerPort(
  port: number | string,
  annotations: ContainerDetail["annotations"],
): number | null {
  if (typeof port === "number") return validPort(port);
  if (/^\d+$/.test(port)) return validPort(Number(port));
  const ports = v.safeParse(PORTS, annotations["io.kubernetes.container.ports"] ?? "");
  const named = ports.success ? ports.output.find(({ name }) => name === port) : undefined;
  return named === undefined ? null : validPort(named.containerPort);
}

const validPort = (port: number): number | null =>
  Number.isInteger(port) && port > 0 && port <= 65_535 ? port : null;
