// What clients of the agent's listeners can do to it: hold connections, and send what is no request.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { startProgram } from "../../support/program.ts";
import { startNode } from "./node.ts";

const images = Array.from({ length: 4 }, (_, index) => ({
  id: imageIdOf(index),
  repoTags: [`r.example/i${index}:1`],
  sizeBytes: 1_000_000,
}));

const flags = [
  "--minimum-image-ttl-duration=0s",
  "--space-accounting=reported",
  "--image-gc-high-threshold=99",
  "--image-gc-low-threshold=98",
  "--eviction-hard=nodefs.available<0%",
  "--image-gc-period=150ms",
  "--image-detection-period=150ms",
  "--pressure-period=150ms",
  "--pod-source=cri",
];

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => void server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

/** Connects and keeps the connection, whatever becomes of it. */
const held = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.on("error", () => resolve(socket));
  });

async function startAgent() {
  const node = await startNode({ node: { images }, flags });
  node.configure({ maxImages: 4 });
  const port = await freePort();
  const agent = startProgram(["run", ...node.flags, `--metrics-bind-address=127.0.0.1:${port}`], {
    within: ["prlimit", "--nofile=200:200"],
  });
  const control = join(node.runDir, "crigc.sock");
  await until("the control socket is there", 10_000, () => existsSync(control));
  await until("images were listed", 10_000, () => node.runtime.callsOf("ListImages").length > 0);
  return {
    node,
    agent,
    port,
    control,
    [Symbol.asyncDispose]: async () => {
      await agent.stop();
      await node[Symbol.asyncDispose]();
    },
  };
}

describe("an agent with a limit of 200 open files", () => {
  test("removes images and answers on both listeners while 600 idle connections are held on the metrics address", async () => {
    await using it = await startAgent();
    const sockets = await Promise.all(Array.from({ length: 600 }, () => held(it.port)));
    it.node.configure({ maxImages: 2 });
    it.agent.signal("SIGHUP");
    await until("two images were removed", 10_000, () => it.node.removedImages().length === 2);
    expect((await fetch(`http://127.0.0.1:${it.port}/metrics`)).status).toBe(200);
    const status = await fetch("http://crigc/status", { unix: it.control });
    expect(await status.json()).toMatchObject({ kind: "Status" });
    expect(it.agent.said()).not.toContain("failed");
    for (const socket of sockets) socket.destroy();
  });
});
