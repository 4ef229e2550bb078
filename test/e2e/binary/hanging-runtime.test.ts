// A runtime of which single calls hang: what else there is to do is done, and being asked to stop is heard.
import { expect, test } from "bun:test";

import { until } from "../../support/containerd/until.ts";
import { hexId, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { numberedImages, startNode, type TestNode } from "./node.ts";

const flags = [
  "--boot-grace=0s",
  "--dead-pod-ttl=0s",
  "--minimum-image-ttl-duration=0s",
  "--image-gc-high-threshold=99",
  "--image-gc-low-threshold=98",
  "--when-futile=collect",
  "--runtime-request-timeout=5s",
  "--image-gc-period=1h",
  "--image-detection-period=200ms",
  "--container-gc-period=200ms",
  "--pressure-period=200ms",
];

/** Leaves the pods as missing for so long that the next pass counts them as deleted. */
async function podsDeleted(node: TestNode): Promise<void> {
  await node.crigc("gc", "--containers");
  await passesApart(node.stateDir);
}

test("a sandbox whose status hangs delays a pass once, and its lists stay young", async () => {
  const sandboxes = [{ id: "hangs", uid: "uid" }];
  const containers = [{ id: "c", sandboxId: "hangs", image: imageIdOf(0) }];
  const images = numberedImages(12);
  await using node = await startNode({ node: { sandboxes, containers, images }, flags });
  node.runtime.fail("PodSandboxStatus", { kind: "hang" });
  const words = ["--all-unused", "--removal-interval=200ms", "--runtime-request-timeout=1s"];
  const { exitCode, stderr } = await node.crigc("gc", "--images", ...words);
  expect(exitCode).toBe(0);
  expect(node.removedImages()).toHaveLength(11);
  expect(node.runtime.callsOf("ListContainers").length).toBeGreaterThan(2);
  expect(node.runtime.callsOf("PodSandboxStatus")).toHaveLength(1);
  expect(stderr).not.toContain("Listing the node takes");
}, 30_000);

test("an agent exits on SIGTERM while the pre-stop command of a container of unknown state hangs", async () => {
  const pod = { id: hexId("pod"), uid: "uid-pod", state: "not-ready" } as const;
  const container = {
    id: hexId("container"),
    sandboxId: pod.id,
    image: "r.example/a:1",
    state: "unknown",
    annotations: {
      "io.kubernetes.pod.terminationGracePeriod": "86400",
      "io.kubernetes.container.preStopHandler": JSON.stringify({ exec: { command: ["drain"] } }),
    },
  } as const;
  await using node = await startNode({
    node: { sandboxes: [pod], containers: [container] },
    flags: [...flags, "--eviction-hard=nodefs.available<0%"],
  });
  await podsDeleted(node);
  node.runtime.fail("ExecSync", { kind: "hang" });
  await using agent = node.start("run");
  const hangs = () => node.runtime.callsOf("ExecSync").length > 0;
  await until("the command runs", 15_000, hangs);
  const startedMs = performance.now();
  expect(await agent.stop()).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(3_000);
  expect(node.changes()).not.toContain("RemoveContainer");
}, 30_000);
