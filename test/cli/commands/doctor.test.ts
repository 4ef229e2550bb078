// doctor as a whole: which checks there are, which are skipped because of others, and the exit code.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import type { Openers, SocketFact } from "../../../src/engine/openers.ts";
import { HostError, RuntimeError } from "../../../src/model/errors.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import type { DirectoryFact } from "../../../src/node/directories.ts";
import { deviceOf } from "../../../src/node/disk.ts";
import { addressFault } from "../../../src/node/http.ts";
import { read } from "../../state/fixture.ts";
import { aFilesystem, aLedger, anImage, aSandbox, GIB, NOW } from "../../support/build/values.ts";
import { scratch } from "../../support/scratch.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const answering: SocketFact = {
  endpoint: "unix:///run/containerd/containerd.sock",
  answer: { kind: "runtime", name: "containerd", version: "1.7.24" },
};

const room: DirectoryFact = {
  kind: "present",
  writable: true,
  availableBytes: GIB,
  inodes: 0n,
  inodesFree: 0n,
};

interface Machine {
  readonly sockets?: readonly SocketFact[];
  readonly node?: Openers["node"];
  readonly directory?: DirectoryFact;
  readonly words?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
  /** A state directory. */
  readonly state?: string;
  /** What the agent answers; absent: none runs. */
  readonly agent?: string;
}

const state = scratch();
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const wellNode = (filesystem: Partial<Filesystem> = {}): Openers["node"] =>
  openNodeOf({
    snapshot: {
      images: [pause],
      sandboxes: [aSandbox("a")],
      filesystems: [aFilesystem({ availableBytes: 60n * GIB, ...filesystem })],
      pods: { kind: "ready", source: "cri", pods: [] },
    },
    ledger: aLedger({ hadContainers: false }),
  }).node;

async function doctor(machine: Machine = {}) {
  const ran = await crigc(["doctor", "-o", "json", ...(machine.words ?? [])], {
    files: machine.files ?? {},
    open: {
      now: () => NOW,
      userId: 0,
      node: machine.node ?? wellNode(),
      state: () => read(machine.state ?? state).reader,
      keepRules: async () => ({ rules: [], problems: [] }),
      askAgent: async () => {
        if (machine.agent !== undefined) return machine.agent;
        throw new HostError("http", "socket not found");
      },
      machine: () => ({
        bootId: () => "boot-1",
        sockets: async () => machine.sockets ?? [answering],
        directory: () => machine.directory ?? room,
        device: deviceOf,
        addressFault,
        kubelet: () => ({ signs: [], file: null }),
      }),
    },
  });
  const { checks } = JSON.parse(ran.stdout) as {
    readonly checks: readonly Readonly<Record<"name" | "result" | "message", string>>[];
  };
  return { ...ran, checks };
}

const broken = scratch();
writeFileSync(join(broken, "ledger.json"), "no database at all\n".repeat(500));
const failing = (error: Error): Openers["node"] => {
  return async () => {
    throw error;
  };
};
const crio = { ...answering, endpoint: "unix:///run/crio/crio.sock" };

test.each<[string, number, Machine]>([
  ["that is healthy", 0, {}],
  // No call reaches a runtime.
  ["with several runtimes", 8, { sockets: [answering, crio], node: failing(new Error("asked")) }],
  ["with an unreadable ledger and no runtime", 8, { sockets: [], state: broken }],
  ["whose list fails", 8, { node: failing(new RuntimeError("failed", "cannot list images: x")) }],
  ["with an invalid configuration", 8, { words: ["--image-gc-high-threshold", "101"] }],
])("doctor of a node %s exits %d, and has these checks", async (_, code, machine) => {
  const ran = await doctor(machine);
  expect(ran.code).toBe(code);
  expect(JSON.parse(ran.stdout)).toMatchObject({ kind: "Doctor", healthy: code === 0 });
  const said = ran.checks.map(({ name, result, message }) =>
    result === "ok" ? name : `${name}: ${result}: ${message.replaceAll(broken, "STATE")}`,
  );
  expect(said.join("\n")).toMatchSnapshot();
});

const checked = async (name: string, machine: Machine) =>
  (await doctor(machine)).checks.find((check) => check.name === name);

test("a metrics address that another program listens on fails, unless the agent runs", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ["--metrics-bind-address", address];
  try {
    expect(await checked("metrics-address", { words })).toMatchObject({
      result: "failed",
      message: `cannot listen on ${address}: it is in use`,
    });
    expect(await checked("metrics-address", { words, agent: "{}" })).toBeUndefined();
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  expect(await checked("metrics-address", { words })).toMatchObject({ result: "ok" });
});

test("a state directory on the image filesystem is a warning where the node has another one", async () => {
  const home = scratch();
  const device = await deviceOf(home);
  const words = ["--state-dir", `${home}/not/there/yet`];
  const on = (filesystem: Partial<Filesystem>) =>
    checked("state-filesystem", { words, node: wellNode(filesystem) });
  expect(await on({ roles: ["imagefs", "containerfs"], device })).toMatchObject({
    result: "warning",
  });
  expect(await on({ roles: ["imagefs", "containerfs"], device: "259:9" })).toBeUndefined();
  expect(await on({ device })).toBeUndefined();
});
