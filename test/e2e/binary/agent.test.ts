// The agent over its life: its configuration, a runtime that goes and comes back, being told to stop, what it shows of itself.
import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { createServer } from "node:net";

import { until } from "../../support/containerd/until.ts";
import { put } from "../../support/scratch.ts";
import { type Json, numberedImages, quickPasses, startNode, type TestNode } from "./node.ts";

const aNode = (images: number): Promise<TestNode> =>
  startNode({ node: { images: numberedImages(images) }, flags: quickPasses });

test("a configuration file that changes under a running agent takes effect after a restart, on SIGHUP it only ends", async () => {
  await using it = await aNode(5);
  it.configure({ imageStoreBudget: "4M", keep: ["r.example/i0"] });
  await using agent = it.start("run");
  await it.untilRemoved(1);
  it.configure({ imageStoreBudget: "2M" });
  await it.looksAgain();
  expect(it.removedImages()).toHaveLength(1);
  expect((await it.status()).values.imageStoreBudget).toMatchObject({ value: "4M" });
  agent.signal("SIGHUP");
  expect(await agent.exited).toBe(0);
  await using _ = it.start("run");
  await it.untilRemoved(3);
});

test("a runtime that goes down is reported by readyz, metrics, status and log, and the agent recovers without a restart", async () => {
  await using it = await aNode(4);
  await using agent = it.start("run");
  await it.firstPass();
  expect((await it.ask("/readyz")).status).toBe(200);
  await it.runtime.crash();
  await until("readyz says so", 5_000, async () => (await it.ask("/readyz")).status === 503);
  expect(await (await it.ask("/readyz")).text()).toContain(it.runtime.socket);
  expect((await it.ask("/healthz")).status).toBe(200);
  expect(await (await it.ask("/metrics")).text()).toMatch(/^crigc_runtime_up 0$/m);
  const failed = await it.status("two failures were counted", ({ events }) =>
    events.some((event: Json) => event.reason === "ImageGCFailed"),
  );
  expect(failed.runtimeError).toContain(it.runtime.socket);
  await it.runtime.recover();
  await until("readyz is well", 10_000, async () => (await it.ask("/readyz")).status === 200);
  expect(await (await it.ask("/metrics")).text()).toMatch(/^crigc_runtime_up 1$/m);
  expect((await it.status()).runtimeError).toBeNull();
  await agent.untilSaid(/succeed/i);
});

test("gc that SIGINT stops while it lists says so with exit 4, and not that a list failed", async () => {
  await using it = await aNode(6);
  it.runtime.fail("ListContainers", { kind: "hang" });
  const gc = it.start("gc", "--all-unused");
  const listing = () => it.runtime.callsOf("ListContainers").length === 1;
  await until("a list is in flight", 10_000, listing);
  gc.signal("SIGINT");
  expect(await gc.exited).toBe(4);
  expect(gc.answered()).toContain("stopped on request");
  expect(gc.answered()).not.toContain("Failed");
});

test.each([
  ["run", "SIGTERM", 0, ["run", "--image-store-budget=1900k"]],
  ["run", "SIGHUP", 0, ["run", "--image-store-budget=1900k"]],
  ["gc", "SIGTERM", 4, ["gc", "--all-unused", "-o=json"]],
  [
    "rm, whose terminal closes,",
    "SIGHUP",
    4,
    ["rm", "r.example/i0:1", "r.example/i1:1", "-o=json"],
  ],
] as const)(
  "%s by %s finishes its removal, removes nothing more, records it, and exits %d",
  async (_, signal, code, words) => {
    await using it = await aNode(6);
    it.runtime.fail("RemoveImage", { kind: "delay", ms: 1_000 });
    const program = it.start(...words);
    await it.untilRemoved(1);
    program.signal(signal);
    expect(await program.exited).toBe(code);
    expect(it.removedImages()).toHaveLength(1);
    expect(it.runtime.node.images).toHaveLength(5);
    if (code === 4) {
      const { images } = JSON.parse(program.answered());
      expect(images.end).toBe("stopped");
      expect(images.items.map((item: Json) => item.result.kind)).toEqual(["removed"]);
    }
    const { removals, passes } = await it.json(["history"]);
    expect(removals).toMatchObject([{ id: it.removedImages()[0], result: "removed" }]);
    expect(passes.at(-1).imagesEnd).toBe("stopped");
    expect(existsSync(it.socket)).toBe(false);
  },
);

test("a metrics address without a host is every address, of IPv4 and of IPv6", async () => {
  await using it = await aNode(1);
  const web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = web;
  await web.stop(true);
  await using agent = it.start("run", `--metrics-bind-address=:${port}`);
  await agent.untilSaid("connected to the runtime");
  for (const host of ["127.0.0.1", "[::1]"])
    expect((await fetch(`http://${host}:${port}/metrics`)).status).toBe(200);
});

test("what an agent cannot open (a socket or an address in use) is opened once it is free", async () => {
  await using it = await aNode(1);
  put(it.runDir, "note");
  const other = createServer((socket) => socket.on("error", () => undefined).end("mine\n"));
  await new Promise<void>((done) => other.listen(it.socket, done));
  const web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("mine") });
  const address = `127.0.0.1:${web.port}`;
  await using agent = it.start("run", `--metrics-bind-address=${address}`);
  for (const taken of [address, it.socket])
    await agent.untilSaid(new RegExp(`${taken}.* continues without it`));
  other.close();
  await web.stop(true);
  await it.status();
  await until("it serves metrics", 15_000, () =>
    fetch(`http://${address}/readyz`).then(
      ({ status: code }) => code === 200,
      () => false,
    ),
  );
  await agent.untilSaid("opening the control socket succeeded");
});

test("an agent opens its control socket again if it is deleted, and a second agent exits 6, whatever its directories", async () => {
  await using it = await aNode(1);
  await using agent = it.start("run");
  await it.firstPass();
  for (const own of [[], [`--state-dir=${it.home}/s`, `--run-dir=${it.home}/r`]]) {
    const second = await it.crigc("run", ...own);
    expect(second.exitCode).toBe(6);
    expect(second.stderr).toContain(`process ${agent.pid}`);
  }
  rmSync(it.runDir, { recursive: true });
  await it.status();
  expect(agent.said()).toContain("the control socket was deleted; crigc opens it again");
  expect(await agent.stop()).toBe(0);
  expect(existsSync(it.socket)).toBe(false);
});

test("run --dry-run removes nothing and leaves no state, however long it runs", async () => {
  await using it = await aNode(6);
  await using agent = it.start("run", "--dry-run", "--image-store-budget=1900k");
  await it.firstPass();
  await it.looksAgain();
  expect(it.changes()).toEqual([]);
  expect(await agent.stop()).toBe(0);
  expect(existsSync(it.stateDir)).toBe(false);
});
