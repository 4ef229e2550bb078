import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import type { PodReading } from "../../../src/model/snapshot.ts";
import { instantFromMs } from "../../../src/model/time.ts";
import {
  kubeletSigns,
  newerPods,
  type PodSourceOptions,
  readContainerMarks,
  readPods,
} from "../../../src/node/kubelet/pods.ts";
import { put, scratch } from "../../support/scratch.ts";

const signal = new AbortController().signal;
const kubelet: PodSourceOptions["kubelet"] = {
  endpoint: "https://127.0.0.1:1",
  caFile: null,
  clientCertFile: null,
  clientKeyFile: null,
  tokenFile: null,
  timeoutMs: 1000,
};
const defaults = (): PodSourceOptions => ({
  source: "auto",
  rootDirectory: "/nowhere",
  nodeRoot: scratch(),
  kubelet,
});
const read = (change: Partial<PodSourceOptions>): Promise<PodReading> =>
  readPods({ ...defaults(), ...change }, signal);
const uidsOf = (reading: PodReading): readonly string[] =>
  reading.kind === "ready" ? reading.pods.map(({ uid }) => String(uid)).toSorted() : [reading.kind];

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
    ["a configuration", "etc/kubernetes/kubelet.conf", "/"],
    ["a root directory without pods", "no-such-kubelet/config.yaml", "/no-such-kubelet"],
  ])("uses no source if there is %s of a kubelet, and names it", async (_, sign, rootDirectory) => {
    const nodeRoot = scratch();
    put(nodeRoot, sign);
    expect(await read({ nodeRoot, rootDirectory })).toEqual({
      kind: "none",
      why: expect.stringMatching(/suggests a kubelet.*set --pod-source/),
    });
  });
});

describe("signs of a kubelet", () => {
  test("include units, configuration files, and an empty root directory wherever it is", () => {
    for (const path of [
      "/etc/systemd/system/kubelet.service",
      "/usr/lib/systemd/system/k3s-agent.service",
      "/etc/init.d/kubelet",
      "/etc/kubernetes/kubelet.conf",
      "/etc/kubernetes/kubelet/kubelet-config.json",
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

describe("what a reading of some seconds ago lacks", () => {
  const found = (pods: PodReading) => (pods.manifests ?? []).flatMap(({ images }) => images);
  const manifest = (image: string) => JSON.stringify({ spec: { containers: [{ image }] } });

  test("are the names in manifests that came since; those of before stay, as a file may be half written", async () => {
    const directory = scratch();
    const options = { ...defaults(), source: "cri" as const, manifestPaths: [directory] };
    put(directory, "etcd.yaml", manifest("r.example/etcd:3"));
    const before = await readPods(options, signal);
    expect(await newerPods(options, before, signal)).toBe(before);
    put(directory, "etcd.yaml", manifest("r.example/etcd:4"));
    const after = await newerPods(options, before, signal);
    expect(found(after)).toEqual(["r.example/etcd:3", "r.example/etcd:4"]);
    put(directory, "etcd.yaml", "");
    expect(found(await newerPods(options, after, signal))).toEqual(found(after));
  });

  test("is with kubelet-api a pod that has a directory since, for which the kubelet is asked again", async () => {
    const root = scratch();
    put(root, "pods/known/etc-hosts");
    const options = { ...defaults(), source: "kubelet-api" as const, rootDirectory: root };
    const pod = { origin: "api", finished: false, evicted: false, images: [] } as const;
    const before: PodReading = {
      kind: "ready",
      source: "kubelet-api",
      pods: [{ ...pod, uid: podUid("known") }],
    };
    expect(await newerPods(options, before, signal)).toBe(before);
    // Asked, it has no certificate to be known by.
    put(root, "pods/another/etc-hosts");
    expect((await newerPods(options, before, signal)).kind).toBe("failed");
    expect((await newerPods({ ...options, rootDirectory: "/nowhere" }, before, signal)).kind).toBe(
      "failed",
    );
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
