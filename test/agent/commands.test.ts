// Command lines over the control socket, from a client to the agent and back, over a real socket.

import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";

import { CommandServer } from "../../src/agent/commands.ts";
import { type HttpProviders, serve } from "../../src/agent/http.ts";
import { openCommand, VERSION_HEADER } from "../../src/engine/client.ts";
import type { CommandRequest, Owner, RunCommand } from "../../src/engine/owner.ts";
import { plainScreen } from "../report/build.ts";
import { until } from "../support/containerd/until.ts";
import { failureOf } from "../support/failure.ts";
import { scratch } from "../support/scratch.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const VERSION = "1.2.3";

const ENDPOINT = "unix:///run/x.sock";

async function agent(run: RunCommand) {
  const runDir = scratch();
  const stop = new AbortController();
  const commands = new CommandServer({
    version: VERSION,
    run,
    holds: (endpoint) => endpoint === null || endpoint === ENDPOINT,
    owner: (progressed) => ({ progressed }) as Owner,
    stop: stop.signal,
  });
  const server = await serve(
    { path: join(runDir, "crigc.sock") },
    { surface: "control", from: {} as HttpProviders, commands, onError: () => undefined },
  );
  closers.push(async () => server.close());
  return { runDir, commands, stop, close: () => server.close() };
}

interface Asked {
  readonly runDir: string;
  readonly argv?: readonly string[];
  readonly version?: string;
  readonly endpoint?: string;
  readonly signal?: AbortSignal;
  readonly out?: (text: string) => void;
  readonly err?: (text: string) => void;
}

const asked = ({ runDir, argv = ["gc"], version = VERSION, endpoint, signal, out, err }: Asked) =>
  openCommand({
    runDir,
    version,
    endpoint: endpoint ?? null,
    argv,
    screen: { ...plainScreen, width: 72, colour: true },
    user: "alice",
    signal: signal ?? new AbortController().signal,
    stdout: out ?? (() => undefined),
    stderr: err ?? (() => undefined),
  });

/** The same without a client that reads. */
function unread(runDir: string) {
  const client = connect(join(runDir, "crigc.sock"));
  const body = JSON.stringify({
    id: "a",
    endpoint: null,
    argv: ["gc"],
    width: null,
    user: "alice",
    untilMs: Date.now() + 60_000,
  });
  client.write(
    `POST /commands HTTP/1.1\r\nhost: x\r\n${VERSION_HEADER}: ${VERSION}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  closers.push(async () => client.destroy());
  return client;
}

/** A command that ends with 4 once it is stopped. */
const untilStopped: RunCommand = async ({ signal, stdout }) => {
  if (!signal.aborted)
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve());
    });
  stdout("the report\n");
  return 4;
};

test("a command gets the client's arguments and screen, and its output and exit code come back in order", async () => {
  const requests: CommandRequest[] = [];
  const { runDir } = await agent(async (request) => {
    requests.push(request);
    request.stderr("waiting\n");
    request.stdout("Ä\n");
    await Bun.sleep(5);
    request.stdout('{"b":1}\n');
    return 5;
  });
  const printed: string[] = [];
  const out = (text: string) => void printed.push(`out ${text}`);
  const err = (text: string) => void printed.push(`err ${text}`);
  expect(await asked({ runDir, argv: ["gc", "--all-unused"], out, err })).toBe(5);
  expect(printed).toEqual(["err waiting\n", "out Ä\n", 'out {"b":1}\n']);
  expect(requests).toMatchObject([
    {
      argv: ["gc", "--all-unused"],
      screen: { width: 72, colour: true },
      user: "alice",
    },
  ]);
});

test("a client that is interrupted stops the command, and still gets its report and exit code", async () => {
  const { runDir } = await agent(untilStopped);
  const interrupt = new AbortController();
  const printed: string[] = [];
  const code = asked({ runDir, signal: interrupt.signal, out: (text) => void printed.push(text) });
  setTimeout(() => interrupt.abort(), 50);
  expect(await code).toBe(4);
  expect(printed).toEqual(["the report\n"]);
});

test("a connection that is lost stops the command", async () => {
  let signal: AbortSignal | undefined;
  const { runDir } = await agent(async (request) => {
    ({ signal } = request);
    return untilStopped(request);
  });
  const client = unread(runDir);
  await until("the command runs", 5_000, () => signal !== undefined);
  expect(signal?.aborted).toBe(false);
  client.destroy();
  await until("the command is stopped", 5_000, () => signal?.aborted === true);
});

test("a client that reads nothing is disconnected once more than a report waits for it, and its command is stopped", async () => {
  const piece = "x".repeat(1 << 20);
  let written = 0;
  const { runDir, commands } = await agent(async (request) => {
    while (!request.signal.aborted && written < 200) {
      request.stdout(piece);
      written += 1;
      await Bun.sleep(1);
    }
    return 0;
  });
  unread(runDir).pause();
  await until("the command began", 5_000, () => written > 0);
  await until("it is over", 10_000, () => commands.health(0).length === 0);
  expect(written).toBeWithin(60, 100);
});

test("a client of another version gets no command run, and is told the agent's version", async () => {
  let runs = 0;
  const { runDir } = await agent(async () => (runs += 1));
  const failure = await failureOf(asked({ runDir, version: "1.2.4" }));
  expect(failure).toMatchObject({ kind: "lock" });
  expect(String(failure)).toContain("the running agent is 1.2.3, this is 1.2.4; restart the agent");
  expect(runs).toBe(0);
});

test.each([
  ["without a command line", JSON.stringify({ id: "a" })],
  ["longer than 64 KiB", JSON.stringify({ id: "a", argv: ["x".repeat(65_536)] })],
  ["that is not JSON", "gc"],
])("a request %s is rejected", async (_, body) => {
  const { runDir } = await agent(async () => 0);
  const unix = join(runDir, "crigc.sock");
  const headers = { [VERSION_HEADER]: VERSION };
  const response = await fetch("http://x/commands", { unix, method: "POST", headers, body });
  expect(response.status).toBe(400);
});

test("eight commands run at once, and a ninth is told to try again", async () => {
  const { runDir, stop, commands } = await agent(untilStopped);
  const codes = Array.from({ length: 8 }, () => asked({ runDir }));
  await until("they run", 5_000, () => commands.health(0).length === 8);
  const ninth = await failureOf(asked({ runDir }));
  expect(String(ninth)).toContain("already runs 8 commands");
  stop.abort();
  await commands.ended();
  expect(await Promise.all(codes)).toEqual(Array<number>(8).fill(4));
});

test("an agent that stops ends its commands with their report, and accepts no more", async () => {
  const { runDir, stop, commands } = await agent(untilStopped);
  const printed: string[] = [];
  const code = asked({ runDir, out: (text) => void printed.push(text) });
  await until("it runs", 5_000, () => commands.health(0).length === 1);
  stop.abort();
  await commands.ended();
  expect([await code, printed]).toEqual([4, ["the report\n"]]);
  expect(String(await failureOf(asked({ runDir })))).toContain("the agent is stopping");
});

test("an agent that ends during a command leaves its client exit 6 and the way to the history", async () => {
  const { runDir, close, commands } = await agent(() => new Promise<number>(() => undefined));
  const failing = failureOf(asked({ runDir }));
  await until("it runs", 5_000, () => commands.health(0).length === 1);
  close();
  const failure = await failing;
  expect(failure).toMatchObject({ kind: "lock" });
  expect(String(failure)).toContain("crigc history shows what was removed");
});

test("a command that makes no progress is unhealthy until it does", async () => {
  let report: (() => void) | undefined;
  const { runDir, commands, stop } = await agent(async (request) => {
    report = () => request.owner().progressed();
    return untilStopped(request);
  });
  const code = asked({ runDir, argv: ["gc", "--all-unused"] });
  await until("it runs", 5_000, () => commands.health(0).length === 1);
  await until("it is stalled", 5_000, () => commands.health(20)[0]?.problem !== null);
  expect(commands.health(60_000)).toEqual([{ name: "command gc", problem: null }]);
  report?.();
  expect(commands.health(20)).toEqual([{ name: "command gc", problem: null }]);
  stop.abort();
  expect(await code).toBe(4);
});

test("a caller runs a command itself if no agent listens, or the agent does not hold the runtime that it names", async () => {
  let runs = 0;
  const { runDir } = await agent(async () => (runs += 1));
  expect(await asked({ runDir: scratch() })).toBeNull();
  expect(await asked({ runDir, endpoint: "unix:///run/y.sock" })).toBeNull();
  expect(runs).toBe(0);
  expect(await asked({ runDir, endpoint: ENDPOINT })).toBe(1);
});

test.each([
  ["answers something else", () => new Response("hello\n"), "is not the socket of a crigc agent"],
  ["knows no commands", () => new Response("what?\n", { status: 404 }), "answers 404: what?"],
])("a caller does nothing beside a program that %s", async (_, answer, message) => {
  const runDir = scratch();
  const server = Bun.serve({ unix: join(runDir, "crigc.sock"), fetch: answer });
  closers.push(() => server.stop(true));
  const failure = await failureOf(asked({ runDir }));
  expect(failure).toMatchObject({ kind: "lock" });
  expect(String(failure)).toContain(message);
});
