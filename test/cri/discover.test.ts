// The runtime is the one socket that answers runtime.v1, never the first that exists.
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";

import { discoverEndpoint, probeEndpoint } from "../../src/cri/discover.ts";
import type { RuntimeError } from "../../src/model/errors.ts";
import { type FakeRuntime, startFakeRuntime } from "../support/fake-runtime/server.ts";
import { scratch } from "../support/scratch.ts";
import { failureOf, withoutPrivilege } from "./connection.ts";

const directory = scratch();
const at = (name: string): string => join(directory, `${name}.sock`);

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

const crio = { name: "cri-o", version: "1.30.1" };
const containerd = await runtimeAt("containerd");
await runtimeAt("crio", crio);
const withoutCri = await runtimeAt("without-cri");
withoutCri.fail("Version", {
  kind: "error",
  code: "UNIMPLEMENTED",
  message: "unknown service runtime.v1.RuntimeService",
});
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

describe("a socket", () => {
  test("that answers is reported with its runtime", async () => {
    expect(await probeEndpoint(`unix://${at("containerd")}`)).toEqual({
      endpoint: containerd.endpoint,
      name: "containerd",
      version: "1.7.24",
    });
  });

  test.each([
    ["missing", "absent", "socket not found"],
    ["stale", "unreachable", "does not answer"],
    ["silent", "unreachable", "it accepts connections but did not answer within 1 s"],
    ["closing", "unreachable", "does not answer"],
    ["web", "not-cri", "does not speak gRPC"],
    [
      "without-cri",
      "not-cri",
      "it answers, but not runtime.v1 (unknown service runtime.v1.RuntimeService)",
    ],
  ])("that is %s is reported as %s in time", async (name, kind, message) => {
    const startedAt = performance.now();
    const error = await failureOf(probeEndpoint(`unix://${at(name)}`));
    expect(performance.now() - startedAt).toBeLessThan(1800);
    expect(error.kind).toBe(kind as RuntimeError["kind"]);
    expect(error.message).toContain(message);
    expect(error.message).toContain(at(name));
  });

  test("that answers without a name is not a runtime", async () => {
    const nameless = await runtimeAt("nameless", { name: "" });
    const error = await failureOf(probeEndpoint(nameless.endpoint));
    expect(error.kind).toBe("not-cri");
    expect(error.message).toContain("the runtime has no name");
  });
});

describe("discovery", () => {
  const search = async (...names: readonly string[]): ReturnType<typeof discoverEndpoint> =>
    discoverEndpoint(realpath, names.map(at));
  const others = ["missing", "stale", "silent", "closing", "web", "without-cri"];

  test("finds the answering socket among others in under two seconds", async () => {
    const startedAt = performance.now();
    const found = await search(...others, "crio");
    expect(performance.now() - startedAt).toBeLessThan(2000);
    expect(found).toEqual({ endpoint: `unix://${at("crio")}`, name: "cri-o", version: "1.30.1" });
  });

  test("counts one socket with two names once", async () => {
    expect((await search("alias", "containerd")).endpoint).toBe(`unix://${at("alias")}`);
  });

  test("refuses to choose between several runtimes, and names them", async () => {
    const error = await failureOf(search("containerd", "missing", "crio"));
    expect(error.kind).toBe("ambiguous");
    expect(error.message).toBe(
      `cannot choose a container runtime: unix://${at("containerd")} (containerd 1.7.24) and ` +
        `unix://${at("crio")} (cri-o 1.30.1) answer; choose one with --container-runtime-endpoint`,
    );
  });

  test("reports why each existing socket is unusable when none answers", async () => {
    const error = await failureOf(search(...others));
    expect(error.kind).toBe("not-cri");
    for (const [name, reason] of [
      ["stale", "does not answer"],
      ["silent", "does not answer"],
      ["closing", "does not answer"],
      ["web", "answers, but not runtime.v1"],
      ["without-cri", "answers, but not runtime.v1: unknown service runtime.v1.RuntimeService"],
    ] as const)
      expect(error.message).toContain(`${at(name)}: ${reason}`);
    expect(error.message).not.toContain(at("missing"));
  });

  test("reports absent without any socket, and names every socket that it tried", async () => {
    const error = await failureOf(search("missing", "nowhere"));
    expect(error.kind).toBe("absent");
    expect(error.message).toBe(
      `no container runtime found: none of the known sockets exists (${at("missing")}, ${at("nowhere")}); ` +
        "start the runtime, or set --container-runtime-endpoint",
    );
  });

  test("names only existing sockets to a user who may not open them, and says to run as root", async () => {
    const locked = await runtimeAt("denied");
    chmodSync(locked.socket, 0);
    chmodSync(dirname(locked.socket), 0o755);
    const error = await withoutPrivilege(async () => failureOf(search("missing", "denied")));
    expect(error.kind).toBe("permission");
    expect(error.message).toBe(
      `no container runtime found: ${at("denied")}: permission denied; run as root (sudo crigc …)`,
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
