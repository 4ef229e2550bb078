import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import type { PodReading } from "../../../src/model/snapshot.ts";
import { instantFromMs } from "../../../src/model/time.ts";
import {
  isBesideKubelet,
  kubeletSigns,
  type PodSourceOptions,
  readContainerMarks,
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
    ["a unit", "usr/lib/systemd/system/kubelet.service", "/nowhere"],
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

describe("signs of a kubelet", () => {
  test("include units, init scripts, and an empty root directory wherever it is", () => {
    for (const path of [
      "/etc/systemd/system/kubelet.service",
      "/usr/lib/systemd/system/k3s-agent.service",
      "/etc/init.d/kubelet",
      "/var/lib/k0s/kubelet",
    ]) {
      const root = scratch();
      expect(kubeletSigns(root)).toEqual([]);
      put(root, path);
      expect(kubeletSigns(root)).toEqual([path]);
    }
    const root = scratch();
    mkdirSync(join(root, "data/kubelet"), { recursive: true });
    expect(kubeletSigns(root)).toEqual([]);
    expect(kubeletSigns(root, "/data/kubelet")).toEqual(["/data/kubelet"]);
  });

  test("include a masked unit and an inaccessible path, but no file in place of a directory", () => {
    const root = scratch();
    const unit = "/etc/systemd/system/kubelet.service";
    mkdirSync(join(root, "etc/systemd/system"), { recursive: true });
    symlinkSync("/nowhere", join(root, unit));
    const tooLong = `/${"x".repeat(300)}`;
    expect(kubeletSigns(root, tooLong)).toEqual([unit, tooLong]);
    const other = scratch();
    put(other, "etc");
    expect(kubeletSigns(other)).toEqual([]);
  });
});

const uid = podUid("0a1b2c3d-0000-4000-8000-000000000000");
const UIDS = [uid];

/** The kubelet's root, with a container of one pod. */
function aRoot(file = "web/8e9f"): string {
  const root = scratch();
  put(root, `pods/${uid}/containers/${file}`);
  return root;
}

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

test("signs of a kubelet include its process, also within k3s, and no other process of a like name", () => {
  const root = scratch();
  for (const [pid, name] of [
    ["1", "kubelet-csr-approver"],
    ["2", "k3s-server"],
    ["3", "kubelet"],
  ] as const)
    put(root, `proc/${pid}/comm`, `${name}\n`);
  expect(kubeletSigns(root)).toEqual(["process 2 (k3s-server)", "process 3 (kubelet)"]);
});

describe("the marks of containers", () => {
  test("are the directories of a pod's containers that hold a file, with the time of their last change", async () => {
    const root = aRoot();
    const directory = join(root, "pods", uid, "containers");
    mkdirSync(join(directory, "refused"));
    mkdirSync(join(directory, "nested/directory"), { recursive: true });
    put(directory, "a-file");
    utimesSync(join(directory, "web"), 1_700_000_000, 1_700_000_000);
    const reading = await readContainerMarks(root, UIDS, () => true);
    const at = instantFromMs(1_700_000_000_000);
    expect(reading).toEqual({ marks: [{ podUid: uid, name: "web", at }], unreadable: new Set() });
    // Old ones are left out.
    expect((await readContainerMarks(root, UIDS, () => false)).marks).toEqual([]);
  });

  test("are none for a pod without a directory or containers, nor at a UID that leads elsewhere", async () => {
    const root = aRoot();
    mkdirSync(join(root, "pods/pulling"));
    const reading = await readContainerMarks(root, ["gone", "pulling"].map(podUid), () => true);
    expect(reading).toEqual({ marks: [], unreadable: new Set() });
    const elsewhere = ["..", `../pods/${uid}`, "", "."].map(podUid);
    expect((await readContainerMarks(root, elsewhere, () => true)).marks).toEqual([]);
  });
});

describe("the marks cannot be read", () => {
  const unreadable = async (root: string): Promise<readonly string[]> => [
    ...(await readContainerMarks(root, UIDS, () => true)).unreadable,
  ];

  test("without the directory of pods, or below the node's own root", async () => {
    expect(await unreadable(scratch())).toEqual([uid]);
    expect(await unreadable("/")).toEqual([uid]);
  });

  test("if the directory of one pod fails, for that pod", async () => {
    const root = aRoot();
    mkdirSync(join(root, "pods/loop"));
    symlinkSync("containers", join(root, "pods/loop/containers"));
    const pods = [uid, podUid("loop")];
    const reading = await readContainerMarks(root, pods, () => true);
    expect(reading.marks).toHaveLength(1);
    expect([...reading.unreadable]).toEqual([podUid("loop")]);
  });
});
