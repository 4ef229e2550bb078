// The agent over its life: reloads, a runtime that goes and comes back, being told to stop, what it shows of itself.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { type RunningProgram, startProgram } from "../../support/program.ts";
import { put } from "../../support/scratch.ts";
import { type Json, numberedImages, quickPasses, startNode, type TestNode } from "./node.ts";

const flags = quickPasses;
const images = numberedImages;
const status = (node: TestNode): Promise<Json> => node.json(["status"]);

describe("a configuration file that changes under a running agent", () => {
  const passes = (it: TestNode): number => it.runtime.callsOf("ListImages").length;
  const morePasses = (it: TestNode): Promise<unknown> => {
    const before = passes(it);
    return until("more passes ran", 5_000, () => passes(it) > before + 2);
  };

  test("takes effect on SIGHUP alone; until then status, plan and keep list say how it differs", async () => {
    await using it = await startNode({ node: { images: images(5) }, flags });
    it.configure({ maxImages: 4, keep: ["r.example/i0"] });
    await using agent = it.start("run");
    await until("one image went", 10_000, () => it.removedImages().length === 1);
    it.configure({ maxImages: 2 });
    await morePasses(it);
    expect(it.removedImages()).toHaveLength(1);
    const difference = "maxImages (--max-images) is 4 in force and 2 as written";
    expect((await status(it)).configurationError).toContain(difference);
    expect((await it.crigc("status")).stdout).toContain("differ from what is in force");
    for (const command of ["plan", "keep list"])
      expect((await it.crigc(...(command.split(" ") as [string]))).stderr).toContain(difference);
    expect((await it.json(["keep", "list"])).rules).toHaveLength(1);
    agent.signal("SIGHUP");
    await until("three images went", 10_000, () => it.removedImages().length === 3);
    expect((await status(it)).configurationError).toBeNull();
    expect((await it.crigc("plan")).stderr).not.toContain("in force");
  });

  test("and is invalid on SIGHUP is reported in the log and in status, and the old value stays in force", async () => {
    await using it = await startNode({ node: { images: images(5) }, flags });
    it.configure({ maxImages: 4 });
    await using agent = it.start("run");
    await until("one image went", 10_000, () => it.removedImages().length === 1);
    writeFileSync(
      it.configFile,
      "apiVersion: crigc/v1\nkind: CrigcConfiguration\nmaxImages: few\n",
    );
    agent.signal("SIGHUP");
    await agent.untilSaid("the last valid one stays in force");
    expect(agent.said()).toContain(`${it.configFile}:3`);
    const refused = await status(it);
    expect(refused.configurationError).toContain("few");
    expect(refused.values.maxImages).toMatchObject({ value: 4 });
    expect(await (await it.ask("/metrics")).text()).toContain("crigc_config_reload_success 0\n");
    await morePasses(it);
    expect(it.removedImages()).toHaveLength(1);
  });
});

describe("a socket corrected in the configuration file", () => {
  const away = "unix:///nowhere/cri.sock";
  /** An agent whose socket comes from the file alone. */
  const startedWith = (node: TestNode, fields: object): RunningProgram => {
    node.configure(fields);
    const endpoint = `--container-runtime-endpoint=${node.runtime.endpoint}`;
    return startProgram(["run", ...node.flags.filter((flag) => flag !== endpoint)]);
  };

  test("is tried at once during a pause while nothing is connected", async () => {
    await using it = await startNode({ node: { images: images(1) }, flags });
    await using agent = startedWith(it, { containerRuntimeEndpoint: away });
    await agent.untilSaid("trying again in 4 s");
    it.configure({ containerRuntimeEndpoint: it.runtime.endpoint });
    const startedAt = performance.now();
    agent.signal("SIGHUP");
    await agent.untilSaid(`connected to the runtime at ${it.runtime.endpoint}`);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(agent.said()).not.toContain("when the agent restarts");
    expect((await it.firstPass()).values.containerRuntimeEndpoint.value).toBe(it.runtime.endpoint);
  });
});

describe("a runtime that goes down", () => {
  test("is reported by readyz, metrics, status and log, and the agent recovers without a restart", async () => {
    await using it = await startNode({ node: { images: images(4) }, flags });
    await using agent = it.start("run");
    await it.firstPass();
    expect((await it.ask("/readyz")).status).toBe(200);
    await it.runtime.crash();
    await until("readyz says so", 5_000, async () => (await it.ask("/readyz")).status === 503);
    expect(await (await it.ask("/readyz")).text()).toContain(it.runtime.socket);
    expect((await it.ask("/healthz")).status).toBe(200);
    expect(await (await it.ask("/metrics")).text()).toMatch(/^crigc_runtime_up 0$/m);
    expect((await status(it)).runtimeError).toContain(it.runtime.socket);
    await until("two failures were counted", 5_000, async () =>
      (await status(it)).events.some((event: Json) => event.reason === "ImageGCFailed"),
    );
    it.configure({ maxImages: 3 });
    agent.signal("SIGHUP");
    await it.runtime.recover();
    await until("readyz is well", 10_000, async () => (await it.ask("/readyz")).status === 200);
    await until("an image went", 10_000, () => it.removedImages().length === 1);
    expect(await (await it.ask("/metrics")).text()).toMatch(/^crigc_runtime_up 1$/m);
    expect((await status(it)).runtimeError).toBeNull();
    await agent.untilSaid(/succeed/i);
  });
});

describe("an agent that is stopped", () => {
  test("during a removal finishes it, removes nothing more, and exits 0", async () => {
    await using it = await startNode({ node: { images: images(6) }, flags });
    it.runtime.fail("RemoveImage", { kind: "delay", ms: 1_200 });
    await using agent = it.start("run", "--max-images=1");
    await until("a removal is in flight", 10_000, () => it.removedImages().length === 1);
    expect(await agent.stop()).toBe(0);
    expect(it.removedImages()).toHaveLength(1);
    expect(it.runtime.node.images).toHaveLength(5);
    const { removals, passes } = await it.json(["history"]);
    expect(removals).toMatchObject([{ id: it.removedImages()[0], result: "removed" }]);
    expect(passes.at(-1).imagesEnd).toBe("stopped");
    expect(existsSync(it.socket)).toBe(false);
  });

  test("gc that SIGINT stops while it lists says so with exit 4, and not that a list failed", async () => {
    await using it = await startNode({ node: { images: images(6) }, flags });
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
    ["gc", "SIGTERM", ["gc", "--all-unused"]],
    ["rm, whose terminal closes,", "SIGHUP", ["rm", "r.example/i0:1", "r.example/i1:1"]],
  ] as const)(
    "%s by %s finishes its removal, records and reports it, and exits",
    async (_, signal, words) => {
      await using it = await startNode({ node: { images: images(6) }, flags });
      it.runtime.fail("RemoveImage", { kind: "delay", ms: 800 });
      const gc = it.start(...words, "-o", "json");
      await until("a removal is in flight", 10_000, () => it.removedImages().length === 1);
      gc.signal(signal);
      expect(await gc.exited).toBe(4);
      const report = JSON.parse(gc.answered());
      expect(report.images.end).toBe("stopped");
      expect(report.images.items.map((item: Json) => item.result.kind)).toEqual(["removed"]);
      expect(it.removedImages()).toHaveLength(1);
      const { removals } = await it.json(["history"]);
      expect(removals).toMatchObject([{ result: "removed" }]);
    },
  );
});

describe("hold", () => {
  test("pauses a running agent and is shown in status; release ends it", async () => {
    await using it = await startNode({ node: { images: images(4) }, flags });
    await it.crigc("hold", "1h", "--reason=inventory");
    await using agent = it.start("run", "--max-images=2");
    const document = await it.firstPass();
    expect(document.hold).toMatchObject({ reason: "inventory" });
    const lists = it.runtime.callsOf("ListImages").length;
    await until(
      "more passes ran",
      5_000,
      () => it.runtime.callsOf("ListImages").length > lists + 3,
    );
    expect(it.removedImages()).toEqual([]);
    await it.crigc("release");
    await until("two images went", 5_000, () => it.removedImages().length === 2);
    expect((await status(it)).hold).toBeNull();
    expect(agent.exitCode()).toBeNull();
  });
});

test("a metrics address without a host is every address, of IPv4 and of IPv6", async () => {
  await using it = await startNode({ node: { images: images(1) }, flags });
  const web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = web;
  await web.stop(true);
  await using agent = it.start("run", `--metrics-bind-address=:${port}`);
  await agent.untilSaid("connected to the runtime");
  for (const host of ["127.0.0.1", "[::1]"])
    expect((await fetch(`http://${host}:${port}/metrics`)).status).toBe(200);
});

describe("what an agent cannot open", () => {
  test("(a socket or an address in use) is opened once it is free", async () => {
    await using it = await startNode({ node: { images: images(1) }, flags });
    put(it.runDir, "note");
    const other = createServer((socket) => socket.on("error", () => undefined).end("mine\n"));
    await new Promise<void>((done) => other.listen(it.socket, done));
    const web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("mine") });
    const address = `127.0.0.1:${web.port}`;
    await using agent = it.start("run", `--metrics-bind-address=${address}`);
    await agent.untilSaid(new RegExp(`${address}.* continues without it`));
    other.close();
    await web.stop(true);
    await until("the agent answers", 15_000, async () => (await it.crigc("status")).exitCode === 0);
    await until("it serves metrics", 15_000, () =>
      fetch(`http://${address}/readyz`).then(
        ({ status: code }) => code === 200,
        () => false,
      ),
    );
    await agent.untilSaid("Opening the control socket succeeded");
  });

  test("(a state directory) is reported, and collection continues without it", async () => {
    await using it = await startNode({ node: { images: images(3) }, flags });
    await using agent = it.start("run", "--max-images=2", "--state-dir=/proc/none");
    await agent.untilSaid("/proc/none");
    await until("an image went", 10_000, () => it.removedImages().length === 1);
    expect((await status(it)).ledgerError).not.toBeNull();
  });
});

test("an agent whose lock file is deleted takes its lock again, so that a second agent still exits 6", async () => {
  await using it = await startNode({ node: { images: images(1) }, flags });
  await using agent = it.start("run");
  await it.firstPass();
  const [lock = ""] = it.lockFiles().filter((path) => path.includes("agent-"));
  rmSync(lock);
  await until("the lock file is there again", 15_000, () => existsSync(lock));
  const second = await it.crigc("run");
  expect(second.exitCode).toBe(6);
  expect(second.stderr).toContain(`process ${agent.pid}`);
  expect(await agent.stop()).toBe(0);
});

describe("a control socket that is deleted under the agent", () => {
  test("with its directory is opened again, and deleted when the agent stops", async () => {
    await using it = await startNode({ node: { images: images(1) }, flags });
    await using agent = it.start("run");
    await it.firstPass();
    rmSync(it.runDir, { recursive: true });
    await until("the agent answers", 15_000, async () => (await it.crigc("status")).exitCode === 0);
    expect(agent.said()).toContain("the control socket was deleted; crigc opens it again");
    expect(await agent.stop()).toBe(0);
    expect(existsSync(it.socket)).toBe(false);
  });
});

describe("the event hook", () => {
  test("gets each warning event as JSON on stdin", async () => {
    await using it = await startNode({ node: { images: images(2) }, flags });
    const file = join(it.home, "events");
    const hook = put(it.home, "hook", `#!/bin/sh\ncat >>${file}\n`, 0o755);
    writeFileSync(join(it.keepDir, "bad.list"), "not a pattern\n");
    await using agent = it.start("run", "--max-images=1", `--event-hook=${hook}`);
    await until(
      "the hook was called",
      10_000,
      () => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"),
    );
    const [event] = readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(event).toMatchObject({
      apiVersion: "crigc/v1",
      kind: "Event",
      reason: "KeepRulesInvalid",
    });
    expect(event.message).toContain("bad.list:1");
    expect(agent.exitCode()).toBeNull();
  });
});

test("gc next to a running agent waits its turn, and both are in the history", async () => {
  await using it = await startNode({ node: { images: images(6) }, flags });
  it.runtime.fail("RemoveImage", { kind: "delay", ms: 300 });
  await using agent = it.start("run", "--max-images=4");
  await until("the agent removes", 10_000, () => it.removedImages().length === 1);
  expect(await it.crigc("gc", "--max-images=2")).toMatchObject({ exitCode: 0 });
  expect(it.runtime.node.images).toHaveLength(2);
  const calls = it.runtime.callsOf("RemoveImage");
  for (const [index, call] of calls.slice(1).entries())
    expect(call.atMs - (calls[index]?.atMs ?? 0)).toBeGreaterThan(290);
  await agent.stop();
  const { passes } = await it.json(["history"]);
  const kinds = new Set(passes.map((pass: Json) => pass.passKind));
  expect(kinds).toContain("gc");
  expect(kinds).toContain("image-gc");
});

test("run --dry-run removes nothing and leaves no state, however long it runs", async () => {
  await using it = await startNode({ node: { images: images(6) }, flags });
  await using agent = it.start("run", "--dry-run", "--max-images=1");
  await it.firstPass();
  const lists = it.runtime.callsOf("ListImages").length;
  await until("more passes ran", 5_000, () => it.runtime.callsOf("ListImages").length > lists + 3);
  expect(it.changes()).toEqual([]);
  expect(await agent.stop()).toBe(0);
  expect(existsSync(it.stateDir)).toBe(false);
});
