// One bounded GET: a deadline for the whole exchange, a limit of bytes, no redirect, and no proxy.

import { request as requestHttp } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";

import { HostError } from "../model/errors.ts";
import type { HookRequest } from "../model/ports.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
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
 * Throws `HostError` `http`. Uses node:http, not fetch, which obeys proxy variables of the environment: a request to
 * the node itself, with a credential in it, must not go through a proxy.
 */
export async function httpGet(get: GetRequest): Promise<GetAnswer> {
  const deadline = AbortSignal.timeout(Math.min(get.timeoutMs, TIMER_MS_MAX));
  const signal = AbortSignal.any([get.signal, deadline]);
  try {
    return await exchange(get, signal);
  } catch (error) {
    if (error instanceof HostError) throw error;
    const why = deadline.aborted ? `no complete response within ${get.timeoutMs} ms` : said(error);
    throw new HostError("http", `GET ${get.url.href} failed: ${why}`, { cause: error });
  }
}

function said(error: unknown): string {
  const code = codeOf(error);
  const reason = reasonOf(error);
  return code === "" || reason.includes(code) ? reason : `${reason} (${code})`;
}

function exchange(get: GetRequest, signal: AbortSignal): Promise<GetAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortError(signal));
    const call = (get.url.protocol === "https:" ? requestHttps : requestHttp)(
      get.url,
      // No connection is kept: there is one exchange per pass, and an old connection would keep an old identity.
      { method: "GET", headers: get.headers, agent: false, ...get.tls },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > get.bytesMax) {
            reject(tooLarge(get));
            call.destroy();
            return;
          }
          chunks.push(chunk);
        });
        response.on("error", reject);
        response.on("aborted", () => reject(new Error("the response was truncated")));
        response.on("end", () => {
          if (!response.complete) return reject(new Error("the response was truncated"));
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString("utf8"),
          });
        });
      },
    );
    const abort = (): void => {
      reject(abortError(signal));
      call.destroy();
    };
    signal.addEventListener("abort", abort, { once: true });
    call.on("close", () => signal.removeEventListener("abort", abort));
    call.on("error", reject);
    call.end();
  });
}

function tooLarge({ url, bytesMax }: GetRequest): HostError {
  return new HostError("http", `GET ${url.href} failed: the response exceeds ${bytesMax} bytes`);
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("it was cancelled");
}

/** The response is not read; this limits one that never ends. */
const BYTES_MAX = 64 * 1024;

/** Resolves with the status, whatever it is. Throws `HostError` `http`. */
export async function sendHook(hook: HookRequest, signal: AbortSignal): Promise<number> {
  const host = hook.host.includes(":") && !hook.host.startsWith("[") ? `[${hook.host}]` : hook.host;
  const text = `${hook.scheme}://${host}:${hook.port}${hook.path}`;
  if (!URL.canParse(text)) {
    throw new HostError(
      "http",
      `the recorded pre-stop handler has an invalid URL: ${JSON.stringify(text)}`,
    );
  }
  const answer = await httpGet({
    url: new URL(text),
    headers: Object.fromEntries(hook.headers.map(({ name, value }) => [name, value])),
    tls: { rejectUnauthorized: false },
    timeoutMs: hook.timeoutMs,
    bytesMax: BYTES_MAX,
    signal,
  });
  return answer.status;
}
