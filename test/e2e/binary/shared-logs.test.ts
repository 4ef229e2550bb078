// Logs that more than one container has, on a real filesystem: those of a listed one stay.
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

test("the log of a dead container is kept with its rotations while a running container has the same pod, name and attempt", async () => {
  await using node = await startNode({ flags });
  const web = "default_web_uid-web";
  for (const name of ["0.log", "0.log.20260101-000000.gz", "1.log"]) log(node, web, name);
  node.runtime.node.addSandbox({ id: hexId("web"), uid: "uid-web", name: "web" });
  for (const [id, state, attempt] of [
    [1, "running", 0],
    [2, "exited", 0],
    [3, "exited", 1],
  ] as const) {
    const container = { sandboxId: hexId("web"), image: "r.example/web:1", name: "main" };
    node.runtime.node.addContainer({ ...container, id: hexId(id), state, attempt });
  }
  await gc(node);
  expect(node.changes()).toEqual(["RemoveContainer", "RemoveContainer"]);
  const left = readdirSync(join(node.podLogsDir, web, "main"));
  expect(left.toSorted()).toEqual(["0.log", "0.log.20260101-000000.gz"]);
});

const entry = "default_gone_uid-gone";
const gone = { id: hexId("x"), uid: "uid-gone", name: "gone" };

test.each<[string, (node: TestNode) => void]>([
  ["a ready sandbox", ({ runtime: { node } }) => node.addSandbox(gone)],
  [
    "a running container with the pod's UID in another pod",
    ({ runtime: { node } }) => {
      node.addSandbox({ id: hexId("y"), uid: "other" });
      const labels = { "io.kubernetes.pod.uid": gone.uid };
      const container = { id: hexId(1), sandboxId: hexId("y"), image: "r.example/x:1", labels };
      node.addContainer(container);
    },
  ],
  ["nothing", () => undefined],
])(
  "the log directory of a pod of which %s is listed is deleted only if nothing is",
  async (what, add) => {
    await using node = await startNode({ flags });
    const file = log(node, entry, "0.log");
    add(node);
    for (let pass = 0; pass < 2; pass += 1) await gc(node);
    const [planned] = (await node.json(["plan"])).containers.podLogs;
    const [dry] = (await node.json(["gc", "--dry-run"])).plan.containers.podLogs;
    await gc(node);
    expect(existsSync(file)).toBe(what !== "nothing");
    if (what === "nothing") return;
    expect(planned).toMatchObject({ decision: "keep" });
    expect(dry).toEqual(planned);
  },
  30_000,
);
