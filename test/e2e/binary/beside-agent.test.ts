// Commands beside a running agent: it runs them, and none ever decides by a configuration of its own.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import {
  type Json,
  numberedImages,
  onAnyDisk,
  removable,
  startNode,
  type TestNode,
} from "./node.ts";

const KEPT = "r.example/i0:1";
const aNode = (images = 4): Promise<TestNode> =>
  startNode({ node: { images: numberedImages(images) }, flags: removable });

/** All unused images, by the configuration of the caller. */
const GC = ["gc", "--all-unused"] as const;

/** An agent whose own flag keeps the first image. */
async function anAgent(it: TestNode, ...words: readonly string[]) {
  const agent = it.start("run", `--keep=${KEPT}`, ...words);
  await it.firstPass();
  return agent;
}

test("gc beside an agent keeps what the agent's own flags keep, and is in its history, status and metrics", async () => {
  await using it = await aNode();
  await using agent = await anAgent(it);
  expect((await it.crigc(...GC)).exitCode).toBe(0);
  expect(it.removedImages()).toHaveLength(3);
  const status = await it.status();
  expect(status.lastPasses.map((pass: Json) => pass.passKind)).toContain("gc");
  expect(await (await it.ask("/metrics")).text()).toContain(
    'crigc_passes_total{kind="gc",outcome="done"} 1',
  );
  const { passes, removals } = await it.json(["history"]);
  expect(passes.map((pass: Json) => pass.passKind)).toContain("gc");
  expect(removals).toHaveLength(3);
  expect(agent.said()).toContain("r.example/i1:1: removed");
});

test.each([
  ["stopped", async (_: TestNode, stop: () => void) => stop(), "the agent hangs"],
  ["with its socket deleted", async (it: TestNode) => rmSync(it.socket), "none answers for it"],
  [
    "with its run directory moved",
    async (it: TestNode) => renameSync(it.runDir, `${it.runDir}-moved`),
    "none answers for it",
  ],
] as const)("beside an agent %s, commands exit 6 and nothing is removed", async (_, harm, said) => {
  await using it = await aNode();
  await using agent = await anAgent(it);
  const harmed = async (): Promise<void> => harm(it, () => agent.signal("SIGSTOP"));
  await harmed();
  try {
    for (const words of [GC, ["rm", KEPT], ["plan"], ["hold", "1h"]] as const) {
      if (!existsSync(it.socket) || words === GC) await harmed().catch(() => undefined);
      const { exitCode, stderr, stdout, tookMs } = await it.crigc(...words);
      expect({ exitCode, stdout }).toEqual({ exitCode: 6, stdout: "" });
      expect(stderr).toContain(said);
      expect(tookMs).toBeLessThan(13_000);
      if (said === "the agent hangs") break;
      expect(stderr).toContain(`crigc run, process ${agent.pid}`);
    }
  } finally {
    agent.signal("SIGCONT");
  }
  expect(it.removedImages()).toEqual([]);
  expect(existsSync(join(it.stateDir, "hold.json"))).toBe(false);
});

test("a command whose caller has given up on a stopped agent has no effect once the agent continues", async () => {
  await using it = await aNode();
  await using agent = await anAgent(it);
  agent.signal("SIGSTOP");
  const asked = await Promise.all([it.crigc("hold", "1h"), it.crigc("hold", "2h")]);
  agent.signal("SIGCONT");
  expect(asked.map(({ exitCode }) => exitCode)).toEqual([6, 6]);
  await it.status();
  await Bun.sleep(1_000);
  expect(existsSync(join(it.stateDir, "hold.json"))).toBe(false);
});

test("a client that was stopped longer than an agent may be silent takes that for no silence", async () => {
  await using it = await aNode();
  await using agent = await anAgent(it);
  agent.signal("SIGSTOP");
  await using client = it.start("plan");
  await Bun.sleep(1_000);
  client.signal("SIGSTOP");
  agent.signal("SIGCONT");
  await Bun.sleep(11_000);
  client.signal("SIGCONT");
  expect([await client.exited, client.said()]).toEqual([0, ""]);
});

test.each([
  ["another run directory", (it: TestNode) => [`--run-dir=${it.home}/r`]],
  ["other directories", (it: TestNode) => [`--run-dir=${it.home}/r`, `--state-dir=${it.home}/s`]],
])("a caller with %s exits 6 with the agent's PID, and nothing is removed", async (_, flags) => {
  await using it = await aNode();
  await using agent = await anAgent(it);
  for (const words of [GC, ["plan"], ["hold", "1h"]] as const) {
    const { exitCode, stderr } = await it.crigc(...words, ...flags(it));
    expect(exitCode).toBe(6);
    expect(stderr).toContain(`process ${agent.pid}`);
    expect(stderr).toContain("name its --run-dir");
  }
  expect(it.removedImages()).toEqual([]);
  expect(existsSync(join(it.home, "s"))).toBe(false);
});

test("a dry run beside an agent removes nothing, also if its flags are valid with the agent's only", async () => {
  await using it = await aNode();
  await using agent = await anAgent(it, "--kubelet-client-cert=/c", "--kubelet-client-key=/k");
  const { exitCode, stdout } = await it.crigc(...GC, "--dry-run", "--kubelet-client-cert=/c");
  expect([exitCode, it.removedImages()]).toEqual([0, []]);
  expect(stdout).toContain("ry run");
  expect(agent.exitCode()).toBeNull();
});

test("gc beside an agent that has just started never falls back to a configuration of its own", async () => {
  await using it = await aNode();
  await using agent = it.start("run", `--keep=${KEPT}`);
  const codes: number[] = [];
  while (!codes.includes(0)) {
    const { exitCode } = await it.crigc(...GC, `--keep=r.example/*`, "--dry-run");
    if (existsSync(it.socket)) codes.push((await it.crigc(...GC)).exitCode);
    else expect([0, 6]).toContain(exitCode);
  }
  expect(codes.filter((code) => code !== 0 && code !== 3 && code !== 6)).toEqual([]);
  expect(it.runtime.node.images).toHaveLength(1);
  expect(agent.exitCode()).toBeNull();
});

test("a second agent exits 6, also for another runtime with the same state directory", async () => {
  await using it = await aNode();
  await using other = await aNode();
  await using agent = await anAgent(it);
  const ran = await other.crigc("run", `--state-dir=${it.stateDir}`);
  expect(ran.exitCode).toBe(6);
  expect(ran.stderr).toContain(`crigc run, process ${agent.pid}`);
  const gc = await other.crigc(...GC, `--state-dir=${it.stateDir}`);
  expect(gc.exitCode).toBe(6);
  expect(other.removedImages()).toEqual([]);
});

test("beside a dry-run agent, gc takes the locks itself and removes", async () => {
  await using it = await aNode();
  await using agent = await anAgent(it, "--dry-run");
  expect((await it.crigc(...GC)).exitCode).toBe(0);
  expect(it.removedImages()).toHaveLength(4);
  expect(agent.exitCode()).toBeNull();
});

test("while the agent waits for its runtime, commands exit 3, with other directories 6, and read no configuration of their own", async () => {
  await using it = await aNode();
  await it.runtime.crash();
  await using agent = it.start("run");
  await agent.untilSaid("trying again");
  for (const words of [GC, ["plan"]] as const) {
    const { exitCode, stderr } = await it.crigc(...words);
    expect(exitCode).toBe(3);
    expect(stderr).toContain("the agent waits for the runtime");
  }
  const elsewhere = [`--run-dir=${it.home}/r`, `--state-dir=${it.home}/s`];
  const { exitCode, stderr } = await it.crigc(...GC, ...elsewhere);
  expect(exitCode).toBe(6);
  expect(stderr).toContain(`crigc run, process ${agent.pid}`);
});

test.each([
  ["--state-dir=/elsewhere", "running agent has"],
  ["--keep-dir=/elsewhere", "running agent has"],
  ["--image-gc-period=7m", "the running agent has 5m"],
])("gc with %s beside an agent with another value exits 2", async (flag, said) => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  const { exitCode, stderr } = await it.crigc(...GC, flag);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(said);
  expect(it.removedImages()).toEqual([]);
});

test("a flag about decisions holds for the command and not for the agent", async () => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  expect((await it.crigc(...GC, "--keep=r.example/i1")).exitCode).toBe(0);
  expect(it.runtime.node.images).toHaveLength(2);
  expect((await it.status()).values.keep.value).toEqual([KEPT]);
});

test("a dry run that the caller's environment asks for removes nothing in the agent", async () => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  const ran = await it.within({ env: { CRIGC_DRY_RUN: "true" } }, ...GC);
  expect(ran.exitCode).toBe(0);
  expect(it.removedImages()).toEqual([]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s ends a gc in the agent after its removal in flight, with its report and exit 4",
  async (signal) => {
    await using it = await aNode(8);
    await using agent = await anAgent(it);
    it.runtime.fail("RemoveImage", { kind: "delay", ms: 200 });
    await using gc = it.start(...GC, "-o", "json");
    await it.untilRemoved(2);
    gc.signal(signal);
    expect(await gc.exited).toBe(4);
    const report: Json = JSON.parse(gc.answered());
    expect(report.images.end).toBe("stopped");
    expect(it.removedImages().length).toBeWithin(2, 4);
    expect(agent.exitCode()).toBeNull();
  },
);

test("a caller that is killed ends its gc after the removal in flight", async () => {
  await using it = await aNode(8);
  await using _ = await anAgent(it);
  it.runtime.fail("RemoveImage", { kind: "delay", ms: 200 });
  await using gc = it.start(...GC);
  await it.untilRemoved(2);
  gc.signal("SIGKILL");
  const status = await it.status("the pass has ended", ({ lastPasses }) =>
    lastPasses.some((pass: Json) => pass.passKind === "gc"),
  );
  expect(status.lastPasses).toContainEqual(expect.objectContaining({ passKind: "gc" }));
  expect(it.removedImages().length).toBeWithin(2, 4);
});

test("a gc beside an agent whose output cannot be written exits 1, and its pass goes on", async () => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  const within = ["sh", "-c", 'exec "$@" >/dev/full', "sh"];
  const { exitCode, stderr } = await it.within({ within }, ...GC);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("cannot write to standard output");
  expect(it.removedImages()).toHaveLength(3);
});

test("report --html beside an agent is written by the caller, also to a relative path", async () => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  const cwd = join(it.home, "work");
  mkdirSync(cwd);
  const ran = await it.within({ cwd }, "report", "--html", "page.html");
  expect(ran).toMatchObject({ exitCode: 0, stdout: "Report written to page.html.\n" });
  expect(readFileSync(join(cwd, "page.html"), "utf8")).toContain("<!doctype html>");
});

test("hold and release reach the agent whatever state directory the caller's environment names", async () => {
  await using it = await aNode();
  await using _ = await anAgent(it);
  const env = { CRIGC_STATE_DIR: join(it.home, "elsewhere") };
  const flags = it.flags.filter((flag) => /^--(?:run-dir|container-runtime|config)/.test(flag));
  expect((await it.within({ env }, "hold", "1h", ...flags)).exitCode).toBe(0);
  expect(existsSync(join(it.stateDir, "hold.json"))).toBe(true);
  expect((await it.crigc(...GC)).exitCode).toBe(7);
  expect((await it.within({ env }, "release", ...flags)).exitCode).toBe(0);
  expect((await it.crigc(...GC)).exitCode).toBe(0);
});

test("an agent that starts during a gc waits for it, says so, and begins when it has ended", async () => {
  await using it = await startNode({ node: { images: numberedImages(6) }, flags: removable });
  it.runtime.fail("RemoveImage", { kind: "delay", ms: 500 });
  await using gc = it.start(...GC);
  await it.untilRemoved(1);
  await using agent = it.start("run");
  await agent.untilSaid(`the agent waits for crigc gc, process ${gc.pid}`);
  expect((await it.ask("/healthz")).status).toBe(200);
  const readiness = await it.ask("/readyz");
  expect(readiness.status).toBe(503);
  expect(await readiness.text()).toContain(`crigc gc, process ${gc.pid}`);
  expect((await it.crigc("plan")).exitCode).toBe(6);
  expect(await gc.exited).toBe(0);
  await it.firstPass();
  expect((await it.ask("/readyz")).status).toBe(200);
});

test("two commands and an agent at once, a hundred times: one pass at a time, each removal once in history and runtime", async () => {
  const rounds = 100;
  await using it = await startNode({
    node: { images: [] },
    flags: [...removable, ...onAnyDisk, "--image-gc-period=150ms", "--image-cache-period=150ms"],
  });
  await using agent = it.start("run");
  await it.firstPass();
  for (let round = 0; round < rounds; round += 1) {
    for (const image of numberedImages(3)) it.runtime.node.addImage({ ...image });
    const two = await Promise.all([it.crigc(...GC), it.crigc(...GC)]);
    for (const { exitCode, stderr } of two)
      if (exitCode !== 0) throw new Error(`round ${round}: exit ${exitCode}: ${stderr}`);
    expect(it.runtime.node.images).toEqual([]);
  }
  expect(await agent.stop()).toBe(0);
  const calls = it.runtime.callsOf("RemoveImage");
  expect(calls).toHaveLength(3 * rounds);
  const { removals } = await it.json(["history", "--kind=image", "-n", "1000"]);
  expect(removals).toHaveLength(3 * rounds);
}, 300_000);
