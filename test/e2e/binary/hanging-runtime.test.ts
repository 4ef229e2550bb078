// The agent notices a signal to stop even while a call hangs.
import { expect, test } from "bun:test";

import { until } from "../../support/containerd/until.ts";
import { hexId } from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { startNode } from "./node.ts";

const flags = [
  "--boot-grace=0s",
  "--dead-pod-ttl=0s",
  "--container-gc-period=200ms",
  "--eviction-hard=nodefs.available<0%",
];

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
    flags,
  });
  await node.crigc("gc", "--containers");
  // The next pass counts its pod as deleted.
  await passesApart(node.stateDir);
  node.runtime.fail("ExecSync", { kind: "hang" });
  await using agent = node.start("run");
  const hangs = () => node.runtime.callsOf("ExecSync").length > 0;
  await until("the command runs", 15_000, hangs);
  const startedMs = performance.now();
  expect(await agent.stop()).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(3_000);
  expect(node.changes()).not.toContain("RemoveContainer");
}, 30_000);
