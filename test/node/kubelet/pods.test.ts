import { describe, expect, test } from "bun:test";
import { mkdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import type { PodReading } from "../../../src/model/snapshot.ts";
import { instant } from "../../../src/model/time.ts";
import {
  isBesideKubelet,
  kubeletSign,
  type PodSourceOptions,
  readPodDirectories,
  readPods,
  rootDirectoryOf,
} from "../../../src/node/kubelet/pods.ts";
import { put, scratch } from "../../support/scratch.ts";

const defaults = (): PodSourceOptions => ({
  source: "auto",
  rootDirectory: "/nowhere",
  nodeRoot: scratch(),
});
const read = (change: Partial<PodSourceOptions>): Promise<PodReading> =>
  readPods({ ...defaults(), ...change });
const uidsOf = (reading: PodReading): readonly string[] =>
  reading.kind === "ready" ? reading.pods.map(String).toSorted() : [reading.kind];

describe("kubelet-dir", () => {
  const inDirectory = (rootDirectory: string) => read({ source: "kubelet-dir", rootDirectory });

  test("lists a pod for each entry of ROOT/pods that can be a UID", async () => {
    const root = scratch();
    const uids = ["0a1b2c3d-0000-4000-8000-000000000000", "d41d8cd98f00b204e9800998ecf8427e"];
    for (const name of [...uids, "lost+found", ".tmp"])
      mkdirSync(join(root, "pods", name), { recursive: true });
    expect(uidsOf(await inDirectory(root))).toEqual(uids);
  });

  test("fails, naming the directory and what to do, if it is missing or a file", async () => {
    expect(await inDirectory("/nowhere")).toMatchObject({
      kind: "failed",
      source: "kubelet-dir",
      message: expect.stringMatching(
        /cannot read the pods of the kubelet from \/nowhere\/pods: it does not exist; .*--root-dir/,
      ),
    });
    const root = scratch();
    put(root, "pods");
    expect((await inDirectory(root)).kind).toBe("failed");
  });
});

test.each([
  ["cri", { kind: "ready", source: "cri", pods: [] }],
  ["none", { kind: "none", why: "as configured" }],
] as const)("pod source %s reads nothing", async (source, reading) => {
  expect(await read({ source })).toEqual(reading);
});

describe("pod source auto", () => {
  test("uses the kubelet's directory if it has pods, fails if that cannot be read, and uses cri without a sign", async () => {
    const [root, broken] = [scratch(), scratch()];
    mkdirSync(join(root, "pods", "uid-a"), { recursive: true });
    symlinkSync("/nowhere", join(broken, "pods"));
    const source = "kubelet-dir";
    expect(await read({ rootDirectory: root })).toMatchObject({ kind: "ready", source });
    expect(await read({ rootDirectory: broken })).toMatchObject({ kind: "failed", source });
    // Whatever /pods of the node is.
    for (const rootDirectory of ["/nowhere", "/"])
      expect(await read({ rootDirectory })).toEqual({ kind: "ready", source: "cri", pods: [] });
  });

  test.each([
    ["a process", "proc/4711/comm", "/"],
    ["a root directory without pods", "no-such-kubelet/config.yaml", "/no-such-kubelet"],
  ])("uses no source if there is %s of a kubelet, and names it", async (_, sign, rootDirectory) => {
    const nodeRoot = scratch();
    put(nodeRoot, sign, "kubelet\n");
    expect(await read({ nodeRoot, rootDirectory })).toEqual({
      kind: "none",
      why: expect.stringMatching(/suggests a kubelet.*set --root-dir or --pod-source/),
    });
  });
});

describe("a sign of a kubelet", () => {
  test("is an empty root directory, wherever it is", () => {
    const root = scratch();
    expect(kubeletSign("/", root)).toBeNull();
    mkdirSync(join(root, "data/kubelet"), { recursive: true });
    expect(kubeletSign("/", root)).toBeNull();
    expect(kubeletSign("/data/kubelet", root)).toBe("/data/kubelet");
    mkdirSync(join(root, "var/lib/k0s/kubelet"), { recursive: true });
    expect(kubeletSign("/", root)).toBe("/var/lib/k0s/kubelet");
  });

  test("is a dangling link or an inaccessible path, but no file in place of a directory", () => {
    const root = scratch();
    put(root, "var");
    expect(kubeletSign("/", root)).toBeNull();
    symlinkSync("/nowhere", join(root, "kubelet"));
    expect(kubeletSign("/kubelet", root)).toBe("/kubelet");
    const tooLong = `/${"x".repeat(300)}`;
    expect(kubeletSign(tooLong, root)).toBe(tooLong);
  });

  test("is its process, also within k3s, and no other process of a like name", () => {
    const root = scratch();
    put(root, "proc/1/comm", "kubelet-csr-approver\n");
    expect(kubeletSign("/", root)).toBeNull();
    put(root, "proc/2/comm", "k3s-server\n");
    expect(kubeletSign("/", root)).toBe("process 2 (k3s-server)");
  });
});

test("the root directory is the configured one, else the first usual one that exists, else the node's own", () => {
  const here = scratch();
  expect(rootDirectoryOf("/data/kubelet", [here])).toBe("/data/kubelet");
  expect(rootDirectoryOf(null, ["/nowhere", here])).toBe(here);
  expect(rootDirectoryOf(null, ["/nowhere"])).toBe("/");
});

test("crigc is beside a kubelet if ROOT/pods exists, and never below the node's own root", () => {
  const root = scratch();
  expect(isBesideKubelet(root)).toBe(false);
  mkdirSync(join(root, "pods"));
  expect(isBesideKubelet(root)).toBe(true);
  expect(isBesideKubelet("/")).toBe(false);
});

describe("the directories of pods", () => {
  test("have their birth, and that of each file of a container whose directory changed", async () => {
    const root = scratch();
    const files = join(root, "pods", "uid", "containers", "web");
    mkdirSync(files, { recursive: true });
    mkdirSync(join(root, "pods", "uid", "containers", "idle"));
    mkdirSync(join(root, "pods", ".hidden"));
    writeFileSync(join(files, "first"), "");
    writeFileSync(join(files, "second"), "");
    utimesSync(join(root, "pods", "uid", "containers", "idle"), 1, 1);
    writeFileSync(join(files, "first"), "changed");
    const found = await readPodDirectories(root, instant(0n));
    const birth = (path: string) => instant(statSync(path, { bigint: true }).birthtimeNs);
    expect(found).toEqual([
      {
        uid: podUid("uid"),
        bornAt: birth(join(root, "pods", "uid")),
        files: expect.arrayContaining(
          ["first", "second"].map((name) => ({
            container: "web",
            bornAt: birth(join(files, name)),
          })),
        ),
      },
    ]);
  });

  test("are left out if neither they nor their containers' directories changed since then", async () => {
    const root = scratch();
    const files = join(root, "pods", "uid", "containers", "web");
    mkdirSync(files, { recursive: true });
    writeFileSync(join(files, "first"), "");
    const born = statSync(join(root, "pods", "uid"), { bigint: true }).birthtimeNs;
    const later = instant(born + 1_000_000_000n);
    expect(await readPodDirectories(root, later)).toEqual([]);
    utimesSync(files, new Date(Date.now() + 5_000), new Date(Date.now() + 5_000));
    expect(await readPodDirectories(root, later)).toHaveLength(1);
  });

  test("are none without ROOT/pods, and below the node's own root", async () => {
    expect(await readPodDirectories(scratch(), instant(0n))).toBeNull();
    expect(await readPodDirectories("/", instant(0n))).toBeNull();
  });

  test("that cannot be read are an error, which may hide a pod", async () => {
    const root = scratch();
    mkdirSync(join(root, "pods"));
    symlinkSync("loop", join(root, "pods", "loop"));
    const thrown = await readPodDirectories(root, instant(0n)).catch((error: unknown) => error);
    expect(String(thrown)).toContain("cannot read");
  });
});
