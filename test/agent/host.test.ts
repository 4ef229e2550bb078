import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";

import { hostOf } from "../../src/agent/node.ts";
import { load } from "../config/loading.ts";
import { put, scratch } from "../support/scratch.ts";

type Paths = ReturnType<Parameters<typeof hostOf>[1]>;

/** A host of this pod source, with the kubelet's paths as they are at the time. */
async function aHost(source: string, kubelet: () => Paths, rootDir: readonly string[] = []) {
  const flags = [["pod-source", source], ...rootDir.map((path) => ["root-dir", path])] as never;
  const usual = { root: "/" };
  const host = await hostOf(
    () => load({ flags }),
    kubelet,
    async () => usual.root,
  );
  return { host, usual, pods: async () => host.reader.pods(AbortSignal.timeout(5_000)) };
}

/** A kubelet's root directory with one pod. */
function rootWithPod(root = scratch()): string {
  put(root, "pods/uid-living/marker");
  return root;
}
const livingPod = { kind: "ready", pods: [expect.objectContaining({ uid: "uid-living" })] };

test("pods are read from the root directory of the kubelet's flags, even while it restarts", async () => {
  let rootDirectory: string | null = rootWithPod();
  const { pods } = await aHost("kubelet-dir", () => ({ rootDirectory }));
  expect(await pods()).toMatchObject(livingPod);
  rootDirectory = null;
  expect(await pods()).toMatchObject(livingPod);
});

test("a kubelet whose root directory appears after crigc started is found there, with its pods and its disk", async () => {
  const root = scratch();
  const { host, pods, usual } = await aHost("kubelet-dir", () => ({ rootDirectory: null }));
  const nodeRoot = async () =>
    (await host.disk.filesystems({ images: [], containers: [] })).map(({ path }) => path);
  expect(await pods()).toMatchObject({ kind: "failed" });
  expect(await nodeRoot()).toEqual(["/"]);
  usual.root = rootWithPod(root);
  expect(await pods()).toMatchObject(livingPod);
  expect(await nodeRoot()).toEqual([root]);
  // An unmounted directory must not make another source of pods count.
  usual.root = "/";
  expect(await pods()).toMatchObject(livingPod);
});

test("the pod source auto never falls back to cri once a kubelet was found", async () => {
  const root = rootWithPod(join(scratch(), "kubelet"));
  const { pods } = await aHost("auto", () => ({ rootDirectory: root }));
  expect(await pods()).toMatchObject({ kind: "ready", source: "kubelet-dir" });
  rmSync(root, { recursive: true });
  for (const _ of [1, 2]) expect(await pods()).toMatchObject({ kind: "none" });
});

test("--root-dir overrides the root directory of the kubelet's flags", async () => {
  const { pods } = await aHost("kubelet-dir", () => ({ rootDirectory: scratch() }), [
    rootWithPod(),
  ]);
  expect(await pods()).toMatchObject(livingPod);
});

test("static pod manifests are read from the kubelet's path with every pod source, also while it restarts, and then from the usual directories too", async () => {
  const [root, other] = [scratch(), scratch()];
  put(root, "etcd.yaml", "spec: {containers: [{image: r.example/etcd:3}]}");
  put(other, "new.yaml", "spec: {containers: [{image: r.example/new:1}]}");
  let staticPodPath: string | null = root;
  const { pods } = await aHost("none", () => ({ rootDirectory: null, staticPodPath }));
  const images = async () => (await pods()).manifests?.map((manifest) => manifest.images);
  expect(await images()).toEqual([["r.example/etcd:3"]]);
  staticPodPath = null;
  for (const _ of [1, 2]) expect(await images()).toContainEqual(["r.example/etcd:3"]);
  staticPodPath = other;
  expect(await images()).toEqual([["r.example/new:1"]]);
});
