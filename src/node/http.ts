/** One bounded HTTP request, to the node's own kubelet or to a pod; and the check of an address to listen on. */

import type { checkServerIdentity } from "node:tls";

import { HostError } from "../model/errors.ts";
import type { HookRequest } from "../model/ports.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { boundedBytes, reasonOf } from "./files.ts";

export interface GetRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** For `https:` only. */
  readonly tls: Pick<Bun.TLSOptions, "ca" | "cert" | "key"> & {
    readonly checkServerIdentity?: typeof checkServerIdentity;
    /** False only if the other side is a pod. */
    readonly rejectUnauthorized: boolean;
  };
  readonly timeoutMs: number;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

interface GetAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One GET, with a deadline for the whole exchange and without redirects. Throws `HostError` `http`. Ignores the proxy
 * variables of the environment: a request to the node itself, with a credential in it, must not go through a proxy. No
 * connection is kept: there is one exchange per pass, and an old connection would keep an old identity.
 */
export async function httpGet(get: GetRequest): Promise<GetAnswer> {
  const { url, headers, tls, timeoutMs, bytesMax } = get;
  const deadline = AbortSignal.timeout(Math.min(timeoutMs, TIMER_MS_MAX));
  const signal = AbortSignal.any([get.signal, deadline]);
  try {
    const options = { tls, signal, redirect: "manual", proxy: false, keepalive: false } as const;
    // Not decompressed: a few bytes from a pod could fill the memory.
    const plain = { "accept-encoding": "identity", ...headers };
    const response = await fetch(url, { ...options, headers: plain, decompress: false });
    const body = await boundedBytes(response.body ?? [], bytesMax);
    return { status: response.status, body: body.toString() };
  } catch (error) {
    const late = `no complete response within ${timeoutMs} ms`;
    const why = deadline.aborted ? late : reasonOf(error);
    throw new HostError("http", `GET ${url} failed: ${why}`, { cause: error });
  }
}

/** The response of a hook is not read; this limits one that never ends. */
const HOOK_BYTES_MAX = 64 * 1024;

/** Sends the request of a pod's recorded pre-stop handler; resolves with the status, whatever it is. Throws `HostError` `http`. */
export async function sendHook(hook: HookRequest, signal: AbortSignal): Promise<number> {
  const host = hook.host.includes(":") && !hook.host.startsWith("[") ? `[${hook.host}]` : hook.host;
  const answer = await httpGet({
    url: `${hook.scheme}://${host}:${hook.port}${hook.path}`,
    headers: Object.fromEntries(hook.headers.map(({ name, value }) => [name, value])),
    tls: { rejectUnauthorized: false },
    timeoutMs: hook.timeoutMs,
    bytesMax: HOOK_BYTES_MAX,
    signal,
  });
  return answer.status;
}
