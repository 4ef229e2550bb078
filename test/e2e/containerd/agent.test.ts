import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";

import { type RunningAgent, shortPeriods, startAgent } from "../../support/containerd/agent.ts";
// The agent beside real runtimes that crash, beside signals, beside another agent and a `crigc gc`.
import { library } from "../../support/containerd/archive.ts";
import { command, tryCommand } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { execInContainer, runPod, startContainer } from "../../support/containerd/pods.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

const unused = (number: number) => ({
  names: [library(`unused:${number}`)],
  layers: [{ seed: `unused-${number}`, sizeBytes: 8 * mebibyte }],
});

let node: ContainerdNode | undefined;
const agents: RunningAgent[] = [];

afterEach(async () => {
  for (const agent of agents.splice(0)) if (agent.exitCode() === null) await agent.stop();
  await node?.stop();
  node = undefined;
});

const agentOf = async (made: ContainerdNode, ...flags: readonly string[]) => {
  const agent = await startAgent(made, ...shortPeriods, ...noPressure, ...flags);
  agents.push(agent);
  return agent;
};

/** What happens is the doing of periodic collection alone. */
const noPressure = ["--eviction-hard=nodefs.available<0%"] as const;

describe("the agent of a node with containerd 2.1", () => {
  test("reports that the runtime is down, survives it, and collects when it is back", async () => {
    const made = await makeNode("2.1");
    const pod = await runPod(made, { name: "web" });
    const { id } = await startContainer(made, pod, { name: "app", image: library("app:1") });
    const agent = await agentOf(made, youngAge);
    await made.killRuntime();
    const gone = await until("it is said", 15_000, async () => {
      return (await agent.status()).runtimeError ?? undefined;
    });
    expect(gone).toContain(made.socket);
    expect(await statusCodeOf(made, "/readyz")).toBe(503);
    expect(await statusCodeOf(made, "/healthz")).toBe(200);
    await expectUnreachable(made);

    await made.startRuntime();
    await until("it is back", 15_000, async () => (await agent.status()).runtimeError === null);
    expect(await statusCodeOf(made, "/readyz")).toBe(200);
    await fillTo(made, 86);
    await until("it has collected", 30_000, () => readDisk(made.disk.path).usedPercent <= 80);
    expect(agent.exitCode()).toBeNull();
    expect(agent.said()).toMatch(/succeeded after \d+ failures?/);
    expect(await execInContainer(made, id, ["echo", "alive"])).toBe("alive\n");
    expect(await agent.stop()).toBe(0);
  });
});

describe("the agent of a node with containerd 1.7", () => {
  test("ends a pass during which the runtime dies, because the images in use are unknown", async () => {
    const made = await fullNode();
    const before = await imageTags(made);
    const pass = gc(made, youngAge, "--removal-interval=2s");
    await until("the first image is gone", 20_000, async () => {
      return (await imageTags(made)).length < before.length;
    });
    // In the pause before the next removal: killed during one, its answer would be lost.
    await Bun.sleep(700);
    await made.killRuntime();
    const { exitCode, report } = await pass;
    expect({ exitCode, end: report.images?.end }).toEqual({
      exitCode: 3,
      end: "observation-failed",
    });
    expect(removedImages(report)).toHaveLength(1);
    await made.startRuntime();
    expect(await imageTags(made)).toHaveLength(before.length - 1);
  });

  test("makes a second agent for the same runtime exit 6 and name the first, whatever its state directory", async () => {
    const made = await makeNode("1.7");
    const first = await agentOf(made);
    for (const more of [[], [`--state-dir=${made.directory}/s`, `--run-dir=${made.directory}/r`]]) {
      const second = await runProgram(made, "run", ...more);
      expect(second.exitCode).toBe(6);
      expect(second.stderr).toContain(`crigc run, process ${first.pid}`);
    }
    // The first one's socket still answers.
    expect((await first.status()).runtimeError).toBeNull();
  });
});

describe.each([...releases])("a full disk under containerd %s", (release) => {
  test("without a byte left is collected all the same", async () => {
    const made = await makeNode(release, 0);
    await fillTo(made, 88);
    await ripen(made);
    await takeAll(made);
    expect(readDisk(made.disk.path).availableBytes).toBeLessThan(65_536);
    const before = await imageTags(made);
    const { exitCode, report } = await gc(made, youngAge);
    expect({ exitCode, end: report.images?.end }).toEqual({ exitCode: 0, end: "target-reached" });
    expect(readDisk(made.disk.path).usedPercent).toBeLessThanOrEqual(80);
    expect(await imageTags(made)).toHaveLength(before.length - removedImages(report).length);
  });
});

async function makeNode(release: Release, reservedPercent = 5): Promise<ContainerdNode> {
  const disk = { sizeBytes: 256 * mebibyte, reservedPercent };
  node = await startNode(release, { disk });
  await loadImages(node, [{ names: [library("app:1")] }]);
  return node;
}

/** Over its threshold by four images or so, all of them old enough to go. */
async function fullNode(): Promise<ContainerdNode> {
  const made = await makeNode("1.7");
  await fillTo(made, 96);
  await ripen(made);
  return made;
}

async function fillTo(made: ContainerdNode, percent: number): Promise<void> {
  for (let i = 1; readDisk(made.disk.path).usedPercent < percent; i += 1)
    await loadImages(made, [unused(i)]);
}

/** Writes until the file system itself says that it is full. */
async function takeAll(made: ContainerdNode): Promise<void> {
  const result = await tryCommand(["dd", "if=/dev/zero", `of=${made.disk.path}/all`, "bs=4k"]);
  if (!result.stderr.includes("No space left")) throw new Error(`dd said: ${result.stderr}`);
  await command("sync", "-f", made.disk.path);
}

async function expectUnreachable(made: ContainerdNode): Promise<void> {
  for (const name of ["plan", "gc", "images", "snapshot"]) {
    const askedAt = performance.now();
    const { exitCode, stderr } = await runProgram(made, name);
    expect({ name, exitCode }).toEqual({ name, exitCode: 3 });
    expect(stderr).toContain(made.socket);
    expect(performance.now() - askedAt).toBeLessThan(2_000);
  }
}

/** Asks the control socket as any program could. */
async function statusCodeOf(made: ContainerdNode, path: string): Promise<number> {
  const unix = `${made.runDirectory}/crigc.sock`;
  const answer = await fetch(`http://localhost${path}`, { unix });
  return answer.status;
}
