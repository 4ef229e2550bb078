import { describe, expect, test } from "bun:test";

import type { HookRequest } from "../../src/model/ports.ts";
import { sendHook as sendHookUntil } from "../../src/node/http.ts";
import { makeCertificate } from "../support/certificate.ts";
import { failureOf } from "../support/failure.ts";

const sendHook = (hook: HookRequest, signal = new AbortController().signal): Promise<number> =>
  sendHookUntil(hook, signal);

const hookOf = (port: number | undefined, change: Partial<HookRequest> = {}): HookRequest => ({
  scheme: "http",
  host: "127.0.0.1",
  port: port ?? 0,
  path: "/drain?now=1",
  headers: [{ name: "X-Reason", value: "gc" }],
  timeoutMs: 2000,
  ...change,
});

describe("the request of a pre-stop handler", () => {
  test("reaches the pod with its path, query and headers, and any status is an answer", async () => {
    const seen: string[] = [];
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        const url = new URL(request.url);
        seen.push(
          `${request.method} ${url.pathname}${url.search} ${request.headers.get("x-reason")}`,
        );
        return new Response("no", { status: 503 });
      },
    });
    expect(await sendHook(hookOf(server.port))).toBe(503);
    expect(seen).toEqual(["GET /drain?now=1 gc"]);
  });

  test("does not verify the certificate of a pod, which nobody signs", async () => {
    const { certificate, key } = makeCertificate({ name: "pod" });
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { cert: certificate, key },
      fetch: () => new Response("ok"),
    });
    expect(await sendHook(hookOf(server.port, { scheme: "https" }))).toBe(200);
  });

  test("does not follow a redirect", async () => {
    let requests = 0;
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch() {
        requests += 1;
        return Response.redirect("/elsewhere", 302);
      },
    });
    expect(await sendHook(hookOf(server.port))).toBe(302);
    expect(requests).toBe(1);
  });

  test("ends with its deadline", async () => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Promise(() => {}),
    });
    expect(await failureOf(sendHook(hookOf(server.port, { timeoutMs: 100 })))).toMatchObject({
      message: expect.stringContaining("no complete response within 100 ms"),
    });
  });

  test("with a deadline beyond what timers count waits for its answer", async () => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async () => {
        await Bun.sleep(20);
        return new Response("");
      },
    });
    expect(await sendHook(hookOf(server.port, { timeoutMs: 2 ** 31 }))).toBe(200);
  });

  test("ends when it is cancelled", async () => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Promise(() => {}),
    });
    const hook = hookOf(server.port, { timeoutMs: 60_000 });
    expect(await failureOf(sendHook(hook, AbortSignal.timeout(50)))).toMatchObject({
      name: "HostError",
    });
  });

  test("to an invalid host is an error", async () => {
    expect(await failureOf(sendHook(hookOf(80, { host: "a b" })))).toMatchObject({
      name: "HostError",
      kind: "http",
    });
  });
});
