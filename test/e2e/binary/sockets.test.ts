// What is at the other end of the socket: nothing, nobody who may be asked, silence, something else, or several runtimes.
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";

import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";

import { startFakeRuntime } from "../../support/fake-runtime/server.ts";
import { runProgram } from "../../support/program.ts";
import { scratch } from "../../support/scratch.ts";
import { startNode } from "./node.ts";

const directory = scratch();
const at = (name: string): string => join(directory, `${name}.sock`);
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

const listening = (server: Server, name: string): void => {
  server.listen(at(name));
  closing.push(() => server.close());
};
listening(
  createServer(() => undefined),
  "silent",
);
listening(
  createServer((socket) => socket.on("error", () => undefined).end()),
  "closing",
);
listening(
  createServer((socket) => socket.on("error", () => undefined).write("SSH-2.0-none\r\n")),
  "ssh",
);
listening(
  createHttpServer((_, answer) => answer.end("hello")),
  "web",
);
const otherService = new GrpcServer();
await new Promise<void>((done, failed) => {
  const credentials = ServerCredentials.createInsecure();
  otherService.bindAsync(`unix://${at("other-service")}`, credentials, (error) =>
    error === null ? done() : failed(error),
  );
});
closing.push(() => otherService.forceShutdown());
writeFileSync(at("plain-file"), "no socket at all");

const withoutPrivilege =
  process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];

describe("a runtime socket", () => {
  test.each([
    ["missing", "socket not found"],
    ["plain-file", "does not answer"],
    ["closing", "does not answer"],
    ["silent", "did not answer within 1.5 s"],
    ["ssh", "does not speak gRPC"],
    ["web", "does not speak gRPC"],
    ["other-service", "not runtime.v1"],
  ])(
    "that is %s ends every command in two seconds, with exit 3, its path and the reason",
    async (name, reason) => {
      await using node = await startNode();
      const flag = `--container-runtime-endpoint=${at(name)}`;
      const commands = ["gc", "plan", "images", "snapshot"];
      const results = await Promise.all(commands.map((command) => node.crigc(command, flag)));
      for (const { exitCode, stdout, stderr, tookMs } of results) {
        expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: "" });
        expect(stderr).toContain(at(name));
        expect(stderr).toContain(reason);
        expect(tookMs).toBeLessThan(name === "silent" ? 3_000 : 2_000);
      }
    },
  );

  test("that crigc may not open is reported", async () => {
    await using node = await startNode();
    chmodSync(node.home, 0o755);
    chmodSync(node.runtime.socket, withoutPrivilege.length > 0 ? 0o700 : 0o000);
    const result = await node.within({ within: withoutPrivilege }, "plan");
    expect(result.exitCode).toBe(3);
    expect(result.stderr).toContain(node.runtime.socket);
    expect(result.stderr).toContain("permission denied; run as root");
    expect(result.tookMs).toBeLessThan(2_000);
  });
});

test.each([["missing"], ["silent"], ["web"], ["closing"]])(
  "an image service socket that is %s is reported as fast, with its path",
  async (name) => {
    await using node = await startNode();
    const flag = `--image-service-endpoint=${at(name)}`;
    for (const command of ["gc", "plan"]) {
      const { exitCode, stderr, tookMs } = await node.crigc(command, flag);
      expect(exitCode).toBe(3);
      expect(stderr).toContain(at(name));
      expect(tookMs).toBeLessThan(name === "silent" ? 3_000 : 2_000);
    }
  },
);

test("an image service socket is used for images", async () => {
  const images = await startFakeRuntime({ node: { images: [{ id: "there" }] } });
  closing.push(() => images.stop());
  await using node = await startNode({ node: { images: [{ id: "not-there" }] } });
  images.fail("ImageFsInfo", { kind: "edit", edit: () => filesystem });
  const list = await node.json(["images", `--image-service-endpoint=${images.endpoint}`]);
  expect(list.images.map((it: { id: string }) => it.id)).toEqual(["there"]);
  expect(node.runtime.callsOf("ListImages")).toEqual([]);
  expect(images.callsOf("ListContainers")).toEqual([]);
});

const filesystem = { image_filesystems: [{ fs_id: { mountpoint: "/tmp" } }] };

describe("run", () => {
  test("keeps trying with growing pauses, logs them, and starts when the runtime appears", async () => {
    await using node = await startNode();
    await node.runtime.crash();
    await using agent = node.start("run");
    await agent.untilSaid("trying again in 1 s");
    expect(agent.said()).toContain(node.runtime.socket);
    await agent.untilSaid("trying again in 2 s");
    const waiting = await node.json(["status"]);
    expect(waiting.runtimeError).toContain(node.runtime.socket);
    await node.runtime.recover();
    await agent.untilSaid("connected to the runtime");
    await agent.untilSaid("image-gc");
    expect((await node.json(["status"])).runtimeError).toBeNull();
    expect(await agent.stop()).toBe(0);
  });
});

/** A /run with links to our runtimes, for one process: in a mount namespace, which takes no root. */
async function besideRuntimes(links: Readonly<Record<string, string>>, words: readonly string[]) {
  const lines = Object.entries(links).map(
    ([path, target]) => `mkdir -p "$(dirname ${path})" && ln -s ${target} ${path}`,
  );
  const script = ["mount -t tmpfs tmpfs /run", ...lines, 'exec "$@"'].join(" && ");
  return runProgram(words, { within: [...namespace, "sh", "-c", script, "sh"] });
}

const namespace = [
  "unshare",
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
  "--mount",
];
const canMount =
  Bun.spawnSync([...namespace, "sh", "-c", "mount -t tmpfs tmpfs /run"]).exitCode === 0;
if (!canMount) console.warn("tests of well-known sockets are skipped: /run cannot be mounted over");

describe.skipIf(!canMount)("without a configured socket", () => {
  test("run and gc refuse several answering runtimes, name them, and exit 2", async () => {
    await using one = await startNode();
    await using other = await startNode({ traits: { name: "cri-o", version: "1.30.1" } });
    const links = {
      "/run/containerd/containerd.sock": one.runtime.socket,
      "/run/crio/crio.sock": other.runtime.socket,
    };
    const flags = one.flags.filter((flag) => !flag.startsWith("--container-runtime-endpoint"));
    for (const command of ["run", "gc", "plan"]) {
      const { exitCode, stderr } = await besideRuntimes(links, [command, ...flags]);
      expect(exitCode).toBe(2);
      expect(stderr).toContain("/run/containerd/containerd.sock (containerd 1.7.24)");
      expect(stderr).toContain("/run/crio/crio.sock (cri-o 1.30.1)");
    }
    expect(one.changes()).toEqual([]);
  });

  test("crigc uses the only one that answers runtime.v1, not the first that exists", async () => {
    await using first = await startNode();
    first.runtime.fail("Version", { kind: "error", code: "UNIMPLEMENTED" });
    await using second = await startNode({ node: { images: [{ id: "there" }] } });
    const links = {
      "/run/containerd/containerd.sock": first.runtime.socket,
      "/run/crio/crio.sock": second.runtime.socket,
    };
    const flags = second.flags.filter((flag) => !flag.startsWith("--container-runtime-endpoint"));
    const result = await besideRuntimes(links, ["images", "-o", "json", ...flags]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(result.stdout).count).toBe(1);
  });
});
