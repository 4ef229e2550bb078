// What the configuration names is tried before it is needed.

import { expect, test } from "bun:test";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

import { type Named, namedChecks } from "../../../src/cli/checks/named.ts";
import { deviceOf } from "../../../src/host/disk/disk.ts";
import { addressFault, executableFault } from "../../../src/host/process/reachable.ts";
import { load } from "../../config/loading.ts";
import { aFilesystem } from "../../support/build/values.ts";
import { put, scratch } from "../../support/scratch.ts";

async function checks(flags: readonly (readonly [string, string])[], change: Partial<Named> = {}) {
  const found = await namedChecks({
    config: load({ flags }),
    machine: { device: (path) => deviceOf(path), executableFault, addressFault },
    filesystems: [],
    hasAgent: false,
    ...change,
  });
  return found.map(({ name, result, message }) => ({ name, result, message }));
}

test("what is not configured is not checked", async () => {
  expect(await checks([], { filesystems: [aFilesystem()] })).toEqual([]);
});

test("an event hook that is missing, a directory or not executable fails, and one that can be run is well", async () => {
  const home = scratch();
  const hook = (name: string) => checks([["event-hook", name]]);
  expect(await hook(`${home}/missing`)).toMatchObject([
    { name: "event-hook", result: "failed", message: expect.stringContaining("does not exist") },
  ]);
  expect(await hook(home)).toMatchObject([{ result: "failed" }]);
  expect(await hook(put(home, "plain", "", 0o644))).toMatchObject([
    { result: "failed", message: expect.stringContaining("it is not executable") },
  ]);
  expect(await hook(put(home, "hook", "", 0o755))).toMatchObject([{ result: "ok" }]);
});

test("a metrics address that another program listens on fails, unless the agent runs", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const flags = [["metrics-bind-address", `127.0.0.1:${port}`]] as const;
  try {
    expect(await checks(flags)).toEqual([
      {
        name: "metrics-address",
        result: "failed",
        message: `cannot listen on 127.0.0.1:${port}: it is in use`,
      },
    ]);
    expect(await checks(flags, { hasAgent: true })).toEqual([]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  expect(await checks(flags)).toMatchObject([{ result: "ok" }]);
});

test("a state directory on the image filesystem is a warning where the node has another one", async () => {
  const home = scratch();
  const device = await deviceOf(home);
  const state = [["state-dir", `${home}/not/there/yet`]] as const;
  const images = aFilesystem({ roles: ["imagefs", "containerfs"], device });
  const node = aFilesystem({ roles: ["nodefs"], device: "259:9" });
  expect(await checks(state, { filesystems: [images, node] })).toMatchObject([
    { name: "state-filesystem", result: "warning" },
  ]);
  const elsewhere = { ...images, device: "259:9" };
  expect(await checks(state, { filesystems: [elsewhere] })).toEqual([]);
  const single = aFilesystem({ device });
  expect(await checks(state, { filesystems: [single] })).toEqual([]);
});
