// Logs that more than one container uses, on a real filesystem: what another container writes to stays.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { hexId } from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { startNode, type TestNode } from "./node.ts";

const flags = ["--boot-grace=0s", "--dead-pod-ttl=0s", "--maximum-dead-containers-per-container=0"];
const gc = async (node: TestNode) => {
  await node.crigc("gc", "--containers");
  await passesApart(node.stateDir);
};

function log(node: TestNode, entry: string, name: string): string {
  const directory = join(node.podLogsDir, entry, "main");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, name), "a line\n");
  return join(directory, name);
}

describe("the log of a dead container", () => {
  test("is kept with its rotations while a running container of the pod has the same log path", async () => {
    await using node = await startNode({ flags });
    const entry = "default_web_uid-web";
    const shared = log(node, entry, "0.log");
    log(node, entry, "0.log.20260101-000000.gz");
    const own = log(node, entry, "1.log");
    node.runtime.node.addSandbox({ id: hexId("web"), uid: "uid-web", name: "web" });
    const container = { sandboxId: hexId("web"), image: "r.example/web:1", name: "main" };
    node.runtime.node.addContainer({
      ...container,
      id: hexId(1),
      state: "running",
      logPath: shared,
    });
    for (const [id, logPath] of [
      [2, shared],
      [3, own],
    ] as const)
      node.runtime.node.addContainer({ ...container, id: hexId(id), state: "exited", logPath });
    await gc(node);
    expect(node.changes()).toEqual(["RemoveContainer", "RemoveContainer"]);
    expect(readdirSync(join(node.podLogsDir, entry, "main")).toSorted()).toEqual([
      "0.log",
      "0.log.20260101-000000.gz",
    ]);
  });
});

describe("the log directory of a deleted pod", () => {
  const entry = "default_gone_uid-gone";
  const users = {
    "a running container that Kubernetes did not make": (node: TestNode) => {
      node.runtime.node.addSandbox({ id: hexId("x"), uid: "other", labels: {} });
      node.runtime.node.addContainer({
        id: hexId(1),
        sandboxId: hexId("x"),
        image: "r.example/x:1",
        state: "running",
        labels: {},
        logPath: join(node.podLogsDir, entry, "main", "0.log"),
      });
    },
    "a sandbox of another pod": (node: TestNode) => {
      const logDirectory = join(node.podLogsDir, entry);
      node.runtime.node.addSandbox({ id: hexId("x"), uid: "uid-x", name: "x", logDirectory });
    },
    nobody: () => undefined,
  };

  test.each(Object.entries(users))(
    "that %s uses is deleted only if nobody uses it",
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
});
