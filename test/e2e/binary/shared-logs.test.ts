// Logs that more than one container uses, on a real filesystem: what another container writes to stays.
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { hexId } from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { put } from "../../support/scratch.ts";
import { startNode, type TestNode } from "./node.ts";

const flags = [
  "--boot-grace=0s",
  "--dead-pod-ttl=0s",
  "--maximum-dead-containers-per-container=0",
  // The tester's disk may be full.
  "--image-gc-high-threshold=100",
  "--eviction-hard=nodefs.available<0%",
];
const gc = async (node: TestNode) => {
  await node.crigc("gc", "--containers");
  await passesApart(node.stateDir);
};

const log = (node: TestNode, directory: string, name: string): string =>
  put(node.podLogsDir, `${directory}/main/${name}`, "a line\n");

test("the log of a dead container is kept with its rotations while a running container of the pod has the same log path", async () => {
  await using node = await startNode({ flags });
  const web = "default_web_uid-web";
  const shared = log(node, web, "0.log");
  log(node, web, "0.log.20260101-000000.gz");
  const own = log(node, web, "1.log");
  node.runtime.node.addSandbox({ id: hexId("web"), uid: "uid-web", name: "web" });
  for (const [id, state, logPath] of [
    [1, "running", shared],
    [2, "exited", shared],
    [3, "exited", own],
  ] as const) {
    const container = { sandboxId: hexId("web"), image: "r.example/web:1", name: "main" };
    node.runtime.node.addContainer({ ...container, id: hexId(id), state, logPath });
  }
  await gc(node);
  expect(node.changes()).toEqual(["RemoveContainer", "RemoveContainer"]);
  const left = readdirSync(join(node.podLogsDir, web, "main"));
  expect(left.toSorted()).toEqual(["0.log", "0.log.20260101-000000.gz"]);
});

const entry = "default_gone_uid-gone";
const sandbox = { id: hexId("x"), uid: "other" };

test.each<[string, (node: TestNode) => void]>([
  [
    "a running container that Kubernetes did not make",
    ({ podLogsDir, runtime: { node } }) => {
      const logPath = join(podLogsDir, entry, "main", "0.log");
      const container = { id: hexId(1), sandboxId: sandbox.id, image: "r.example/x:1", logPath };
      node.addSandbox({ ...sandbox, labels: {} });
      node.addContainer({ ...container, labels: {} });
    },
  ],
  [
    "a sandbox of another pod",
    ({ podLogsDir, runtime: { node } }) =>
      node.addSandbox({ ...sandbox, logDirectory: join(podLogsDir, entry) }),
  ],
  ["nobody", () => undefined],
])(
  "the log directory of a deleted pod that %s uses is deleted only if nobody uses it",
  async (who, add) => {
    await using node = await startNode({ flags });
    const file = log(node, entry, "0.log");
    add(node);
    for (let pass = 0; pass < 2; pass += 1) await gc(node);
    const [planned] = (await node.json(["plan"])).containers.podLogs;
    const [dry] = (await node.json(["gc", "--dry-run"])).plan.containers.podLogs;
    await gc(node);
    expect(existsSync(file)).toBe(who !== "nobody");
    if (who === "nobody") return;
    expect(planned).toMatchObject({ decision: "keep", reason: { code: "in-use" } });
    expect(dry).toEqual(planned);
  },
  30_000,
);
