// What crigc finds around it: a kubelet, and a boot.
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { onAnyDisk, startNode } from "./node.ts";

test("beside a kubelet the default thresholds are reached before the kubelet's, and config says why", async () => {
  await using it = await startNode();
  mkdirSync(join(it.home, "root", "pods"), { recursive: true });
  const { values } = await it.json(["config"]);
  expect(values.imageGCHighThresholdPercent).toMatchObject({
    value: 75,
    source: "kubelet",
    from: ["beside a kubelet"],
  });
  expect(values.evictionHard.value["imagefs.available"]).toBe("20%");
  const kubelets = await it.json(["config", "--compat=kubelet"]);
  expect(kubelets.values.imageGCHighThresholdPercent).toMatchObject({ value: 85 });
});

test("the remaining grace period of the status shrinks between two passes", async () => {
  await using it = await startNode({ flags: ["--boot-grace=99999h", ...onAnyDisk] });
  await using _ = it.start("run");
  const { bootGraceMs } = await it.firstPass();
  const later = await it.status("it has shrunk", (status) => status.bootGraceMs < bootGraceMs);
  expect(later.lastPasses).toHaveLength(2);
});
