// The HTTP request of a pod's pre-stop handler.

import { expect, test } from "bun:test";

import type { HookRequest } from "../../src/model/ports.ts";
import { sendHook } from "../../src/node/http.ts";
import { makeCertificate } from "../support/certificate.ts";
import { failureOf } from "../support/failure.ts";

type Answer = (request: Request) => Response | Promise<Response>;

async function send(
  answer: Answer,
  change: Partial<HookRequest> = {},
  signal = new AbortController().signal,
): Promise<number> {
  const { certificate: cert, key } = makeCertificate({ name: "pod" });
  const tls = change.scheme === "https" ? { tls: { cert, key } } : {};
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer, ...tls });
  const hook: HookRequest = {
    scheme: "http",
    host: "127.0.0.1",
    port: server.port ?? 0,
    path: "/drain?now=1",
    headers: [{ name: "X-Reason", value: "gc" }],
    timeoutMs: 2000,
    ...change,
  };
  return await sendHook(hook, signal);
}

const never: Answer = () => new Promise(() => {});

test("a hook's request has its path, query and headers, and any status is an answer", async () => {
  let seen = "";
  const status = await send(({ method, url, headers }) => {
    const { pathname, search } = new URL(url);
    seen = `${method} ${pathname}${search} ${headers.get("x-reason")}`;
    return new Response("no", { status: 503 });
  });
  expect([status, seen]).toEqual([503, "GET /drain?now=1 gc"]);
});

test("a hook's request does not verify the certificate of a pod, which nobody signs", async () => {
  expect(await send(() => new Response("ok"), { scheme: "https" })).toBe(200);
});

test("a hook's request follows no redirect", async () => {
  let requests = 0;
  const status = await send(() => {
    requests += 1;
    return Response.redirect("/elsewhere", 302);
  });
  expect([status, requests]).toEqual([302, 1]);
});

test.each<[string, Partial<HookRequest>, string]>([
  ["ends with its deadline", { timeoutMs: 100 }, "no complete response within 100 ms"],
  ["ends when it is cancelled", { timeoutMs: 60_000 }, ""],
  ["to an invalid host is an error", { host: "a b" }, ""],
])("a hook's request %s", async (what, change, message) => {
  const { signal } = what.includes("cancelled")
    ? { signal: AbortSignal.timeout(50) }
    : new AbortController();
  expect(await failureOf(send(never, change, signal))).toMatchObject({
    name: "HostError",
    message: expect.stringContaining(message),
  });
});

test("a hook's response is not decompressed: a few bytes could fill the memory", async () => {
  let accepted = "";
  const status = await send(({ headers }) => {
    accepted = headers.get("accept-encoding") ?? "";
    // Longer than a response may be, once it is decompressed.
    const body = Bun.gzipSync(new Uint8Array(1 << 20));
    return new Response(body, { headers: { "content-encoding": "gzip" } });
  });
  expect([status, accepted]).toEqual([200, "identity"]);
});
