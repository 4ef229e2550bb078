// Images that come back after they were removed: on record, in status and in the metrics.
import { expect, test } from "bun:test";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { startNode, type TestNode } from "./node.ts";

const images = [0, 1].map((index) => ({
  id: imageIdOf(index),
  repoTags: [`r.example/i${index}:1`],
  sizeBytes: 1_000_000 - index,
}));
const flags = [
  "--minimum-image-ttl-duration=0s",
  "--space-accounting=reported",
  "--eviction-hard=nodefs.available<0%",
  "--boot-grace=0s",
];

const ask = async (node: TestNode, path: string): Promise<string> =>
  (await fetch(`http://agent${path}`, { unix: join(node.runDir, "crigc.sock") })).text();

test("an image that the agent removed and that is pulled again is a regret in status, metrics and history", async () => {
  await using it = await startNode({
    node: { images },
    flags: [...flags, "--image-gc-period=150ms", "--image-detection-period=150ms"],
  });
  it.configure({ maxImages: 1 });
  await using agent = it.start("run");
  await until("an image went", 10_000, () => it.removedImages().length === 1);
  it.configure({ maxImages: 5 });
  agent.signal("SIGHUP");
  await agent.untilSaid("configuration reloaded");
  it.runtime.node.addImage({ ...images[0], id: imageIdOf("pulled again") });
  await until("it is seen", 10_000, async () =>
    (await ask(it, "/metrics")).includes('crigc_image_regrets{trigger="count"} 1'),
  );
  expect(await ask(it, "/metrics")).toContain('crigc_image_regret_bytes{trigger="count"} 1000000');
  const { regrets } = await it.json(["status"]);
  expect(regrets).toMatchObject({
    removedImages: 1,
    returned: [{ trigger: "count", count: 1, sizeBytes: 1_000_000 }],
  });
  await until("it is on record", 10_000, async () => {
    const history = await it.json(["history", "--regrets"]);
    return history.regrets.length === 1 && history.regrets[0];
  });
  const history = await it.json(["history", "--regrets"]);
  expect(history.regrets).toMatchObject([
    {
      id: imageIdOf(0),
      returnedAs: imageIdOf("pulled again"),
      reason: "count",
      sizeBytes: 1_000_000,
    },
  ]);
  expect(history.passes).toEqual([]);
  expect((await it.crigc("history", "--regrets")).stdout).toContain("r.example/i0:1");
  expect(await agent.stop()).toBe(0);
});
