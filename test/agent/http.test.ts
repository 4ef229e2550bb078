// The control socket and the metrics address, over real sockets.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

import {
  type HttpOptions,
  type HttpProviders,
  type HttpServer,
  serve,
} from "../../src/agent/http.ts";
import { askAgent, screenQuery } from "../../src/engine/client.ts";
import { HostError } from "../../src/model/errors.ts";
import { socketFiles as files } from "../../src/node/files.ts";
import { status, terminal } from "../report/build.ts";
import { until } from "../support/containerd/until.ts";
import { failureOf as thrownBy } from "../support/failure.ts";
import { scratch } from "../support/scratch.ts";

const providers = (differences: Partial<HttpProviders> = {}): HttpProviders => ({
  metrics: () => "crigc_hold 0\n",
  health: () => [{ name: "image-gc", problem: null }],
  readiness: () => [{ name: "runtime", problem: null }],
  status: () => status(),
  ...differences,
});

let directory = "";
let path = "";
const errors: string[] = [];
const closers: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  directory = scratch();
  path = join(directory, "crigc.sock");
  errors.length = 0;
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function served(
  differences: Partial<HttpProviders> = {},
  surface: HttpOptions["surface"] = "control",
): Promise<HttpServer> {
  const onError = (message: string): void => void errors.push(message);
  const server = await serve({ path }, { surface, from: providers(differences), onError });
  closers.push(async () => server.close());
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

async function failureOf(promise: Promise<unknown>): Promise<string> {
  const thrown = await thrownBy(promise);
  return thrown instanceof HostError ? thrown.message : `no HostError: ${String(thrown)}`;
}

const asked = (what: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://crigc${what}`, { unix: path, ...init });

describe("the control socket", () => {
  test("the control socket is accessible only to its owner, and removed when closed beside an open client", async () => {
    const server = await served();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await (await asked("/metrics")).text();
    server.close();
    expect(existsSync(path)).toBe(false);
  });

  test("serves metrics, health and status", async () => {
    await served();
    const metrics = await asked("/metrics");
    expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await metrics.text()).toBe("crigc_hold 0\n");
    expect(await (await asked("/healthz")).text()).toBe("ok      image-gc\npassed\n");
    expect(await (await asked("/status")).json()).toMatchObject({ kind: "Status" });
  });

  test("prints tables for the client's terminal, and plain ones for an invalid width", async () => {
    await served();
    const asking = (what: string) => askAgent(directory, what);
    const text = await asking(`/status.txt?${screenQuery({ ...terminal, colour: true })}`);
    expect(text).toContain("\u001b[31m  low 80%, high 85%");
    const plain = await asking("/status.txt?width=x");
    expect(plain).toContain("low 80%, high 85%");
    expect(plain).not.toContain("\u001b");
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
});

describe("a path in use", () => {
  test("by a live program is refused, and the program keeps it", async () => {
    await listening((socket) => socket.end("mine"));
    expect(await failureOf(served())).toContain(
      `cannot listen on ${path}: it is in use; remove the file or stop what listens there, or set another --run-dir`,
    );
    expect(files.isThere(path)).toBe(true);
  });

  test("by a killed agent is taken over", async () => {
    const script = `Bun.serve({ unix: ${JSON.stringify(path)}, fetch: () => new Response() }); console.log("up");`;
    const killed = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    await killed.stdout.getReader().read();
    killed.kill("SIGKILL");
    await killed.exited;
    expect(files.isThere(path)).toBe(true);
    await served();
    expect((await asked("/metrics")).status).toBe(200);
  });

  test("by a file or a link is refused, and what is there is kept", async () => {
    writeFileSync(path, "mine");
    expect(await failureOf(served())).toContain("it is in use; remove the file");
    expect(statSync(path).size).toBe(4);
    rmSync(path);
    symlinkSync(join(directory, "elsewhere"), path);
    expect(await failureOf(served())).toContain("it is in use; remove the file");
    expect(files.isThere(path)).toBe(false);
  });

  test("is reported with the path, as is one in a missing directory", async () => {
    path = join(directory, "none", "control.sock");
    expect(await failureOf(served())).toContain(`cannot listen on ${path}: it does not exist`);
  });
});

/** What a client receives that sends these texts, one after the other, until the connection closes. */
async function exchange(texts: Iterable<string>, lateMs = 0): Promise<string> {
  const client = connect(path);
  const chunks: Buffer[] = [];
  client.on("data", (chunk) => {
    chunks.push(Buffer.from(chunk));
    if (lateMs === 0) return;
    client.pause();
    setTimeout(() => client.resume(), lateMs);
  });
  const closed = new Promise<void>((resolve) => void client.on("close", () => resolve()));
  for (const text of texts) {
    client.write(text);
    await Bun.sleep(0);
  }
  await closed;
  return Buffer.concat(chunks).toString();
}

test("the metrics address serves metrics and health, and says nothing of images or configuration", async () => {
  await served({}, "metrics");
  const paths = ["/metrics", "/readyz", "/status", "/commands"];
  const statuses = paths.map(async (it) => (await asked(it)).status);
  expect(await Promise.all(statuses)).toEqual([200, 200, 404, 404]);
});

test("too many connections close the oldest, and a new client is still answered", async () => {
  await served();
  let open = 0;
  for (let at = 0; at < 100; at += 1) {
    const client = connect(path, () => client.write("GET /metrics HTTP/1.1\r\n"));
    open += 1;
    client.on("close", () => (open -= 1)).on("error", () => undefined);
    closers.push(async () => client.destroy());
  }
  await until("the oldest connections were closed", 5_000, () => open <= 16);
  expect((await asked("/metrics")).status).toBe(200);
});

test("a connection ends within ten seconds, though its request still arrives byte by byte", async () => {
  await served();
  let drops = 0;
  const client = connect(path, () => client.write("GET /metrics HTTP/1.1\r\n"));
  const dripping = setInterval(() => client.write(`X: ${(drops += 1)}\r\n`), 200);
  await new Promise((resolve) => client.on("error", () => undefined).on("close", resolve));
  clearInterval(dripping);
  // Bun's own timeout, of coarser ticks, may come before ours. On a busy machine there are fewer drops, not more.
  expect(drops).toBeWithin(1, 60);
}, 60_000);

test("a request that arrives byte by byte is answered, and so is a client that reads late", async () => {
  const body = "# a comment\n".repeat(1_000_000);
  await served({ metrics: () => body });
  const answer = await exchange("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 1);
  expect(answer.startsWith("HTTP/1.1 200 OK\r\n")).toBe(true);
  expect(answer.endsWith(body)).toBe(true);
});

test.each([
  ["version 1.0", "GET /metrics HTTP/1.0\r\n\r\n", 200],
  ["an absolute target", "GET http://node:1/metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200],
  ["another one behind it", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2), 200],
  ["two slashes", "GET //metrics HTTP/1.1\r\nHost: a\r\n\r\n", 404],
  ["a body", "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\nx", 405],
  ["no valid target", "GET http://[/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["9 kB of header", `GET /metrics HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(9e3)}\r\n\r\n`, 431],
])("a request with %s has one answer, and the connection ends", async (_, request, expected) => {
  await served();
  const answer = await exchange([request]);
  expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual([`HTTP/1.1 ${expected}`]);
  expect(answer.toLowerCase()).toContain("connection: close\r\n");
});

describe("a request to the agent", () => {
  const other = (onConnection: (socket: Socket) => void) => () => listening(onConnection);
  const failures: readonly (readonly [string, () => unknown, string])[] = [
    [
      "that no agent is running",
      () => undefined,
      " not found; start it (crigc install --start, or crigc run), or set its --run-dir",
    ],
    ["that the agent was killed", () => writeFileSync(path, ""), "connection refused"],
    [
      "that another program closed the connection",
      other((socket) => socket.end()),
      ": it closed the connection without an answer; is it crigc that listens there?",
    ],
    [
      "the answer of another program",
      other((socket) => socket.end("HTTP/1.0 418 x\r\n\r\nteapot")),
      "answers 418: teapot",
    ],
  ];
  test.each(failures)("reports %s", async (_, prepare, expected) => {
    await prepare();
    expect(await failureOf(askAgent(directory, "/status"))).toContain(expected);
  });

  test.skipIf(process.getuid?.() === 0)("reports missing permission", async () => {
    await served();
    chmodSync(path, 0);
    expect(await failureOf(askAgent(directory, "/status"))).toContain("permission denied");
  });
});
