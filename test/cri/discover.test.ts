// The runtime is the one socket that answers runtime.v1, never the first that exists.
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";

import { discoverEndpoint, probeEndpoint } from "../../src/cri/discover.ts";
import { type FakeRuntime, startFakeRuntime } from "../support/fake-runtime/server.ts";
import { scratch } from "../support/scratch.ts";
import { failureOf, withoutPrivilege } from "./connection.ts";

const directory = scratch();
const at = (name: string): string => join(directory, `${name}.sock`);

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

const containerd = await runtimeAt("containerd");
await runtimeAt("crio", { name: "cri-o", version: "1.30.1" });
await runtimeAt("nameless", { name: "" });
const withoutCri = await runtimeAt("without-cri");
withoutCri.fail("Version", {
  kind: "error",
  code: "UNIMPLEMENTED",
  message: "unknown service runtime.v1.RuntimeService",
});
const broken = await runtimeAt("broken");
broken.fail("Version", { kind: "error", code: "INTERNAL", message: "bolt: timeout" });
symlinkSync(at("containerd"), at("alias"));
writeFileSync(at("stale"), "");
await listening(
  createServer(() => undefined),
  at("silent"),
);
await listening(
  createServer((socket) => socket.destroy()),
  at("closing"),
);
await listening(
  createHttpServer((_, answer) => answer.end("hello")),
  at("web"),
);

/** Its kind and its words, with the deadline that it let pass. */
async function failed(call: () => Promise<unknown>): Promise<string> {
  const { kind, message } = await failureOf(call());
  // What the library says of a connection differs from run to run.
  const text = message.replaceAll(directory, "").replace(/ \(\d{4}-[^)]*\)/g, "");
  return `${kind}: ${text.replace(/does not answer(: | \()(?!Deadline exceeded after [\d.]+s;).*?(?=\)?;)/g, "does not answer$1…").replace(/after [\d.]+s;/g, "after …;")}`;
}

const unusable = [
  "missing",
  "stale",
  "silent",
  "closing",
  "web",
  "without-cri",
  "nameless",
  "broken",
];

test("a socket that answers is reported with its runtime, any other one with what it lacks", async () => {
  expect(await probeEndpoint(`unix://${at("containerd")}`)).toEqual({
    endpoint: containerd.endpoint,
    name: "containerd",
    version: "1.7.24",
  });
  for (const name of unusable)
    expect(await failed(() => probeEndpoint(`unix://${at(name)}`, 1000))).toMatchSnapshot(name);
});

describe("discovery", () => {
  const search = async (...names: readonly string[]): ReturnType<typeof discoverEndpoint> =>
    discoverEndpoint(realpath, names.map(at), 1000);

  test("finds the answering socket among others", async () => {
    const found = await search(...unusable, "crio");
    expect(found).toEqual({ endpoint: `unix://${at("crio")}`, name: "cri-o", version: "1.30.1" });
  });

  test("counts one socket with two names once", async () => {
    expect((await search("alias", "containerd")).endpoint).toBe(`unix://${at("alias")}`);
  });

  test.each([
    ["refuses to choose between several runtimes, and names them", "containerd missing crio"],
    ["says why each existing socket is unusable when none answers", unusable.join(" ")],
    ["names every socket that it tried when there is none", "missing nowhere"],
  ])("%s", async (_, names) => {
    expect(await failed(() => search(...names.split(" ")))).toMatchSnapshot();
  });

  test("names only existing sockets to a user who may not open them, and says to run as root", async () => {
    const locked = await runtimeAt("denied");
    chmodSync(locked.socket, 0);
    chmodSync(dirname(locked.socket), 0o755);
    const denied = () => failed(() => search("missing", "denied"));
    expect(await withoutPrivilege(denied)).toBe(
      "permission: no container runtime found: unix:///denied.sock: permission denied; run as root (sudo crigc …)",
    );
  });
});

async function runtimeAt(
  name: string,
  traits: { readonly name?: string; readonly version?: string } = {},
): Promise<FakeRuntime> {
  const runtime = await startFakeRuntime({ socket: at(name), traits });
  closing.push(async () => runtime.stop());
  return runtime;
}

async function listening(server: Server, path: string): Promise<void> {
  const sockets = new Set<{ destroy(): unknown }>();
  server.on("connection", (socket) => sockets.add(socket));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((fulfil) => {
    server.listen(path, () => fulfil());
  });
}
