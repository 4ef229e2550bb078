// What a pass over containers asks of the runtime: its removals, and nothing that grows with the rest of the node.
import { expect, test } from "bun:test";
import { join } from "node:path";

import { type ContainerDescription, hexId } from "../../support/fake-runtime/describe.ts";
import { type Json, startNode } from "./node.ts";
import { passesApart } from "./watched.ts";

/** Pods with one running and one dead container of the same name; some pods are gone, each with two dead ones. */
async function callsOf(pods: number, gone: number): Promise<Readonly<Record<string, number>>> {
  await using node = await startNode({
    flags: ["--boot-grace=0s", "--dead-pod-ttl=0s", "--maximum-dead-containers-per-container=0"],
  });
  const logOf = (pod: number, name: string): string =>
    join(node.podLogsDir, `default_pod-${pod}_uid-${pod}`, "main", name);
  for (let pod = 0; pod < pods; pod += 1) {
    const isGone = pod < gone;
    const sandboxId = hexId(`sandbox ${pod}`);
    const state = isGone ? "not-ready" : "ready";
    node.runtime.node.addSandbox({ id: sandboxId, uid: `uid-${pod}`, name: `pod-${pod}`, state });
    const container = { sandboxId, image: "r.example/a:1", name: "main" };
    const add = (attempt: number, change: Partial<ContainerDescription>): void =>
      node.runtime.node.addContainer({
        ...container,
        id: hexId(`container ${pod}/${attempt}`),
        attempt,
        logPath: logOf(pod, `${attempt}.log`),
        ...change,
      });
    add(0, { state: "exited" });
    add(1, { state: isGone ? "exited" : "running" });
  }
  // Pods are gone only after two passes that saw them dead.
  await node.crigc("gc", "--containers", "--dry-run");
  await node.crigc("gc", "--containers", "--max-removals-per-pass=1");
  await passesApart(node.stateDir);
  const before = node.runtime.calls.length;
  await node.crigc("gc", "--containers");
  const calls: Record<string, number> = {};
  for (const { method } of node.runtime.calls.slice(before))
    calls[method] = (calls[method] ?? 0) + 1;
  return calls;
}

test("a container pass reads one status per removal and those of the same pods, however large the node", async () => {
  const calls = await callsOf(60, 20);
  // One of the 80 dead ones went in the pass before.
  expect(calls).toMatchObject({
    RemoveContainer: 79,
    StopPodSandbox: 20,
    RemovePodSandbox: 20,
    PodSandboxStatus: 20,
  });
  // Its own, and those of the others in its pod, each once: 40 that run and 39 or 40 that are dead.
  expect(calls["ContainerStatus"]).toBeLessThanOrEqual(79 + 120);
  // At the start, for each second that it took, and between containers and sandboxes.
  expect(calls["ListContainers"]).toBeLessThanOrEqual(2 + 10);
}, 60_000);

test.each(["none", "kubelet"])(
  "what the kubelet removes at the same moment counts as removed already, with compat %s",
  async (compat) => {
    const ofMode = compat === "none" ? [] : [`--compat=${compat}`];
    await using it = await startNode({ flags: ["--dead-pod-ttl=0s", ...ofMode] });
    const { node } = it.runtime;
    const sandboxId = hexId("sandbox");
    const id = hexId("container");
    node.addSandbox({ id: hexId("other"), uid: "uid-other", state: "not-ready" });
    node.addSandbox({ id: sandboxId, uid: "uid", state: "not-ready" });
    node.addContainer({ id, sandboxId, image: "r.example/a:1", state: "exited" });
    await it.crigc("gc", "--containers");
    await passesApart(it.stateDir);
    const alsoRemoved = (request: object): void => {
      for (const one of Object.values(request)) if (one !== sandboxId) node.beginRemoval(one, 600);
    };
    it.runtime.before("RemoveContainer", alsoRemoved);
    it.runtime.before("RemovePodSandbox", alsoRemoved);
    const { stdout, stderr, exitCode } = await it.crigc("gc", "--containers", "-o", "json");
    const { containers, sandboxes } = JSON.parse(stdout).containers;
    const results: readonly string[] = [...containers, ...sandboxes].map(
      (item: Json) => item.result.kind,
    );
    expect(results.toSorted()).toEqual(["already-gone", "already-gone", "removed"]);
    expect(stderr).not.toMatch(/^[WE]\d/m);
    expect(exitCode).toBe(0);
  },
  60_000,
);
