// Bounded HTTP requests to the node's own kubelet and pods, and the check of an address to listen on.

import { request as requestHttp } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import { createServer } from "node:net";

import { HostError } from "../model/errors.ts";
import type { HookRequest } from "../model/ports.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { hostAndPort } from "../model/values.ts";
import { codeOf, reasonOf } from "./files.ts";

export interface GetRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** For `https:` only. */
  readonly tls: Pick<RequestOptions, "ca" | "cert" | "key" | "checkServerIdentity"> & {
    /** False only if the other side is a pod. */
    readonly rejectUnauthorized: boolean;
  };
  readonly timeoutMs: number;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export interface GetAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One GET, with a deadline for the whole exchange and without redirects. Throws `HostError` `http`. Uses node:http, not
 * fetch, which obeys proxy variables of the environment: a request to the node itself, with a credential in it, must
 * not go through a proxy.
 */
export async function httpGet(get: GetRequest): Promise<GetAnswer> {
  const deadline = AbortSignal.timeout(Math.min(get.timeoutMs, TIMER_MS_MAX));
  const signal = AbortSignal.any([get.signal, deadline]);
  try {
    return await exchange(get, signal);
  } catch (error) {
    const reason = reasonOf(error);
    const code = codeOf(error);
    const coded = code === "" || reason.includes(code) ? reason : `${reason} (${code})`;
    const why = deadline.aborted ? `no complete response within ${get.timeoutMs} ms` : coded;
    throw new HostError("http", `GET ${get.url.href} failed: ${why}`, { cause: error });
  }
}

function exchange(get: GetRequest, signal: AbortSignal): Promise<GetAnswer> {
  const abortReason = (): Error =>
    signal.reason instanceof Error ? signal.reason : new Error("it was cancelled");
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortReason());
    const call = (get.url.protocol === "https:" ? requestHttps : requestHttp)(
      get.url,
      // No connection is kept: there is one exchange per pass, and an old connection would keep an old identity.
      { method: "GET", headers: get.headers, agent: false, ...get.tls },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          chunks.push(chunk);
          if (bytes > get.bytesMax) fail(`the response exceeds ${get.bytesMax} bytes`);
        });
        response.on("error", reject);
        response.on("aborted", () => fail("the response was truncated"));
        response.on("end", () => {
          if (!response.complete) return fail("the response was truncated");
          const body = Buffer.concat(chunks).toString("utf8");
          resolve({ status: response.statusCode ?? 0, body });
        });
      },
    );
    const end = (error: Error): void => {
      reject(error);
      call.destroy();
    };
    const fail = (why: string): void => end(new Error(why));
    const abort = (): void => end(abortReason());
    signal.addEventListener("abort", abort, { once: true });
    call.on("close", () => signal.removeEventListener("abort", abort));
    call.on("error", reject);
    call.end();
  });
}

/** The response of a hook is not read; this limits one that never ends. */
const HOOK_BYTES_MAX = 64 * 1024;

/** Sends the request of a pod's recorded pre-stop handler; resolves with the status, whatever it is. Throws `HostError` `http`. */
export async function sendHook(hook: HookRequest, signal: AbortSignal): Promise<number> {
  const host = hook.host.includes(":") && !hook.host.startsWith("[") ? `[${hook.host}]` : hook.host;
  const text = `${hook.scheme}://${host}:${hook.port}${hook.path}`;
  if (!URL.canParse(text))
    throw new HostError(
      "http",
      `the recorded pre-stop handler has an invalid URL: ${JSON.stringify(text)}`,
    );
  const answer = await httpGet({
    url: new URL(text),
    headers: Object.fromEntries(hook.headers.map(({ name, value }) => [name, value])),
    tls: { rejectUnauthorized: false },
    timeoutMs: hook.timeoutMs,
    bytesMax: HOOK_BYTES_MAX,
    signal,
  });
  return answer.status;
}

/** Listens on `HOST:PORT` for a moment; `null`: it is free. */
export function addressFault(address: string): Promise<string | null> {
  const server = createServer();
  const { host, port } = hostAndPort(address);
  return new Promise((resolve) => {
    server.once("error", (error) =>
      resolve(codeOf(error) === "EADDRINUSE" ? "it is in use" : reasonOf(error)),
    );
    server.listen({ port, ...(host === "*" ? {} : { host }) }, () =>
      server.close(() => resolve(null)),
    );
  });
}
