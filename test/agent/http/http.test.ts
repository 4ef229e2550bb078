// The control socket and the metrics address, over real sockets.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { askAgent } from "../../../src/agent/http/client.ts";
import { type HttpProviders, screenQuery } from "../../../src/agent/http/routes.ts";
import { type HttpServer, serveAddress, serveSocket } from "../../../src/agent/http/server.ts";
import { HostError } from "../../../src/model/errors.ts";
import { socketFiles as files } from "../../../src/node/files.ts";
import { unjudged } from "../../../src/report/images.ts";
import { GIB, image, NOW, status, terminal } from "../../report/build.ts";
import { until } from "../../support/containerd/until.ts";

const providers = (differences: Partial<HttpProviders> = {}): HttpProviders => ({
  metrics: () => "crigc_hold 0\n",
  health: () => [{ name: "image-gc", problem: null }],
  readiness: () => [{ name: "runtime", problem: null }],
  status: () => status(),
  images: () => ({ observedAt: NOW, entries: unjudged([image(1)]) }),
  ...differences,
});

let directory = "";
let path = "";
const errors: string[] = [];
const closers: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "crigc-http-"));
  path = join(directory, "control.sock");
  errors.length = 0;
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  rmSync(directory, { recursive: true });
});

async function served(differences: Partial<HttpProviders> = {}): Promise<HttpServer> {
  const server = await serveSocket(path, files, {
    providers: providers(differences),
    onError: (message) => void errors.push(message),
  });
  closers.push(() => server.close());
  return server;
}

/** Another program on the socket's path. */
async function listening(onConnection: (socket: Socket) => void): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => void server.close(resolve));
  });
}

const failureOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "it went well",
    (error: unknown) =>
      error instanceof HostError ? error.message : `no HostError: ${String(error)}`,
  );

const asked = (what: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://crigc${what}`, { unix: path, ...init });

describe("the control socket", () => {
  test("is accessible only to its owner, and removed when closed", async () => {
    const server = await served();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await server.close();
    expect(existsSync(path)).toBe(false);
  });

  test("serves metrics, health, status and images", async () => {
    await served();
    const metrics = await asked("/metrics");
    expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await metrics.text()).toBe("crigc_hold 0\n");
    expect(await (await asked("/healthz")).text()).toBe("ok      image-gc\npassed\n");
    expect(await (await asked("/status")).json()).toMatchObject({ kind: "Status" });
    expect(await (await asked("/images")).json()).toMatchObject({ kind: "ImageList", count: 1 });
  });

  test("draws tables for the client's terminal", async () => {
    await served();
    const text = await askAgent({
      socketPath: path,
      path: `/status.txt?${screenQuery(terminal)}`,
      timeoutMs: 5000,
    });
    expect(text).toContain("low 80% ┘  └ high 85%");
    expect(
      await askAgent({ socketPath: path, path: "/status.txt?width=x", timeoutMs: 5000 }),
    ).toContain("imageGCHighThresholdPercent");
    expect(await askAgent({ socketPath: path, path: "/images.txt", timeoutMs: 5000 })).toContain(
      "app-1:1.1",
    );
  });

  test("answers 503 with each check if one failed", async () => {
    await served({
      readiness: () => [
        { name: "runtime", problem: "no socket\u001b[2J" },
        { name: "ledger", problem: null },
      ],
    });
    const answer = await asked("/readyz");
    expect(answer.status).toBe(503);
    expect(await answer.text()).toBe("failed  runtime: no socket[2J\nok      ledger\nfailed\n");
  });

  test("refuses any other path and method", async () => {
    await served();
    expect((await asked("/")).status).toBe(404);
    expect((await asked("/status", { method: "POST" })).status).toBe(405);
    expect((await asked("/metrics", { method: "HEAD" })).status).toBe(200);
  });

  test("answers 500 if a request fails, logs the reason, and continues", async () => {
    await served({
      status: () => {
        throw new Error("no status");
      },
    });
    expect((await asked("/status")).status).toBe(500);
    expect(errors).toEqual(["cannot answer a request: no status"]);
    expect((await asked("/metrics")).status).toBe(200);
  });

  test("closes although a client keeps its connection open", async () => {
    const server = await served();
    await (await asked("/metrics")).text();
    await server.close();
    expect(existsSync(path)).toBe(false);
  });
});

describe("a path in use", () => {
  test("by a live program is refused, and the program keeps it", async () => {
    await listening((socket) => socket.end("mine"));
    expect(await failureOf(served())).toContain(
      `cannot open the control socket ${path}: another program listens on it; stop that program, or set another --run-dir`,
    );
    expect(files.kindOf(path)).toBe("socket");
  });

  test("by a killed agent is taken over", async () => {
    const script = `Bun.serve({ unix: ${JSON.stringify(path)}, fetch: () => new Response() }); console.log("up");`;
    const killed = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    await killed.stdout.getReader().read();
    killed.kill("SIGKILL");
    await killed.exited;
    expect(files.kindOf(path)).toBe("socket");
    await served();
    expect((await asked("/metrics")).status).toBe(200);
  });

  test("by a file is refused, and the file is kept", async () => {
    writeFileSync(path, "mine");
    expect(await failureOf(served())).toContain("it is not a socket");
    expect(statSync(path).size).toBe(4);
  });

  test("by a link to a stale socket is refused, and the link is not followed", async () => {
    symlinkSync(join(directory, "elsewhere"), path);
    expect(await failureOf(served())).toContain("it is not a socket");
    expect(files.kindOf(path)).toBe("other");
  });

  test("is reported with the path, as is one in a missing directory", async () => {
    path = join(directory, "none", "control.sock");
    expect(await failureOf(served())).toContain(`cannot listen on the control socket ${path}`);
  });
});

describe("the metrics address", () => {
  const onError = (): undefined => undefined;

  test("serves metrics and health, and says nothing of images or configuration", async () => {
    const server = serveAddress(
      { host: "127.0.0.1", port: 0 },
      { providers: providers(), onError },
    );
    closers.push(() => server.close());
    const base = `http://127.0.0.1:${server.port}`;
    expect((await fetch(`${base}/metrics`)).status).toBe(200);
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    expect((await fetch(`${base}/status`)).status).toBe(404);
    expect((await fetch(`${base}/images.txt`)).status).toBe(404);
  });

  test("has a bounded number of connections, and still answers a new client", async () => {
    const server = serveAddress(
      { host: "127.0.0.1", port: 0 },
      { providers: providers(), onError },
    );
    closers.push(() => server.close());
    const idle = { open: 0 };
    const connecting = Array.from({ length: 100 }, () =>
      Bun.connect({
        hostname: "127.0.0.1",
        port: server.port ?? 0,
        socket: {
          data: () => undefined,
          open: () => void (idle.open += 1),
          close: () => void (idle.open -= 1),
        },
      }),
    );
    await Promise.all(connecting);
    expect((await fetch(`http://127.0.0.1:${server.port}/metrics`)).status).toBe(200);
    await until("the other connections were closed", 5_000, () => idle.open <= 16);
  });

  test("answers a request that arrives byte by byte, and a large answer to a client that reads late", async () => {
    const body = "# a comment\n".repeat(1_000_000);
    const server = serveAddress(
      { host: "127.0.0.1", port: 0 },
      { providers: providers({ metrics: () => body }), onError },
    );
    closers.push(() => server.close());
    const client = connect(server.port ?? 0, "127.0.0.1");
    for (const byte of "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n") {
      client.write(byte);
      await Bun.sleep(0);
    }
    const answer = await new Promise<string>((resolve) => {
      const chunks: Buffer[] = [];
      client.on("data", (chunk) => {
        chunks.push(Buffer.from(chunk));
        client.pause();
        setTimeout(() => client.resume(), 1);
      });
      client.on("close", () => resolve(Buffer.concat(chunks).toString()));
    });
    expect(answer.startsWith("HTTP/1.1 200 OK\r\n")).toBe(true);
    expect(answer.endsWith(body)).toBe(true);
  });

  test("in use is an error with the address", async () => {
    const server = serveAddress(
      { host: "127.0.0.1", port: 0 },
      { providers: providers(), onError },
    );
    closers.push(() => server.close());
    const address = { host: "127.0.0.1", port: server.port ?? 0 };
    expect(() => serveAddress(address, { providers: providers(), onError })).toThrow(
      `cannot listen on the metrics address 127.0.0.1:${server.port}`,
    );
  });
});

describe("a request to the agent", () => {
  const request = (timeoutMs = 5000) => ({ socketPath: path, path: "/status", timeoutMs });

  test("reports that no agent is running", async () => {
    expect(await failureOf(askAgent(request()))).toContain(
      `no agent is running: ${path} not found; start it (crigc install --start, or crigc run), or set its --run-dir`,
    );
  });

  test("reports that the agent was killed", async () => {
    writeFileSync(path, "");
    expect(await failureOf(askAgent(request()))).toContain("connection refused");
  });

  test("ends at the deadline if the agent hangs", async () => {
    await listening(() => undefined);
    expect(await failureOf(askAgent(request(100)))).toContain("no answer within 100 ms");
  });

  test("reports that another program closed the connection", async () => {
    await listening((socket) => socket.end());
    expect(await failureOf(askAgent(request()))).toBe(
      `cannot reach the agent at ${path}: it closed the connection without an answer; is it crigc that listens there?`,
    );
  });

  test("reports the answer of another program", async () => {
    await listening((socket) => socket.end("HTTP/1.0 418 x\r\n\r\nteapot"));
    expect(await failureOf(askAgent(request()))).toContain("with status 418: teapot");
  });

  test.skipIf(process.getuid?.() === 0)("reports missing permission", async () => {
    await served();
    chmodSync(path, 0);
    expect(await failureOf(askAgent(request()))).toContain("permission denied");
  });

  test("reads a status whose figures exceed 2^53 unchanged", async () => {
    await served({
      status: () => status({ images: { count: 1, sizeBytes: (1n << 60n) * 8n + GIB } }),
    });
    expect(await askAgent(request())).toContain(`"sizeBytes": ${(1n << 60n) * 8n + GIB}`);
  });
});
