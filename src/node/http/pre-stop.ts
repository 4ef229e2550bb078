// Sends the HTTP request of a pod's recorded pre-stop handler.

import { HostError } from "../../model/errors.ts";
import type { HookRequest } from "../../model/ports.ts";
import { httpGet } from "./get.ts";

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
