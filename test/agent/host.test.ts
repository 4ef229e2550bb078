import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";

import { hostOf } from "../../src/agent/host.ts";
import { load } from "../config/loading.ts";
import { put, scratch } from "../support/scratch.ts";

const told = (path: string) => ({ rootDirectory: path });
const podsIn = async (host: Awaited<ReturnType<typeof hostOf>>) =>
  host.reader.pods(AbortSignal.timeout(5_000));

test("pods are read from the root directory of the kubelet's flags, even while it restarts", async () => {
  const root = scratch();
  put(root, "pods/uid-living/marker");
  let kubelet: Parameters<typeof hostOf>[1] = () => told(root);
  const host = await hostOf(
    () => load({ flags: [["pod-source", "kubelet-dir"]] }),
    () => kubelet?.() ?? { rootDirectory: null },
  );
  const reading = { kind: "ready", pods: [expect.objectContaining({ uid: "uid-living" })] };
  expect(await podsIn(host)).toMatchObject(reading);
  kubelet = () => ({ rootDirectory: null });
  expect(await podsIn(host)).toMatchObject(reading);
});

test("a kubelet whose root directory appears after crigc started is found there, with its pods and its disk", async () => {
  const root = scratch();
  let usual = "/";
  const host = await hostOf(
    () => load({ flags: [["pod-source", "kubelet-dir"]] }),
    () => ({ rootDirectory: null }),
    async () => usual,
  );
  const nodeRoot = async () =>
    (await host.disk.filesystems({ images: [], containers: [] })).map(({ path }) => path);
  expect(await podsIn(host)).toMatchObject({ kind: "failed" });
  expect(await nodeRoot()).toEqual(["/"]);
  put(root, "pods/uid-first/marker");
  usual = root;
  const reading = { kind: "ready", pods: [expect.objectContaining({ uid: "uid-first" })] };
  expect(await podsIn(host)).toMatchObject(reading);
  expect(await nodeRoot()).toEqual([root]);
  // Once there, it stays the one: an unmounted directory must not make another source of pods count.
  usual = "/";
  expect(await podsIn(host)).toMatchObject(reading);
});

test("the pod source auto never falls back to cri once a kubelet was found", async () => {
  const root = join(scratch(), "kubelet");
  put(root, "pods/uid-living/marker");
  const host = await hostOf(
    () => load({ flags: [["pod-source", "auto"]] }),
    () => told(root),
  );
  expect(await podsIn(host)).toMatchObject({ kind: "ready", source: "kubelet-dir" });
  rmSync(root, { recursive: true });
  for (const _ of [1, 2]) expect(await podsIn(host)).toMatchObject({ kind: "none" });
});

test("--root-dir overrides the root directory of the kubelet's flags", async () => {
  const root = scratch();
  put(root, "pods/uid-ours/marker");
  const host = await hostOf(
    () =>
      load({
        flags: [
          ["pod-source", "kubelet-dir"],
          ["root-dir", root],
        ],
      }),
    () => told(scratch()),
  );
  expect(await podsIn(host)).toMatchObject({ pods: [{ uid: "uid-ours" }] });
});

test("static pod manifests are read from the kubelet's configured path with every pod source", async () => {
  const root = scratch();
  put(root, "etcd.yaml", "spec: {containers: [{image: r.example/etcd:3}]}");
  const host = await hostOf(
    () => load({ flags: [["pod-source", "none"]] }),
    () => ({ rootDirectory: null, staticPodPath: root }),
  );
  expect(await podsIn(host)).toMatchObject({
    kind: "none",
    manifests: [{ images: ["r.example/etcd:3"], fault: null }],
  });
});

test("static pod manifests are read from where the kubelet had them while it restarts, and from the usual directories", async () => {
  const [root, other] = [scratch(), scratch()];
  put(root, "etcd.yaml", "spec: {containers: [{image: r.example/etcd:3}]}");
  put(other, "new.yaml", "spec: {containers: [{image: r.example/new:1}]}");
  let staticPodPath: string | null = root;
  const host = await hostOf(
    () => load({ flags: [["pod-source", "none"]] }),
    () => ({ rootDirectory: null, staticPodPath }),
  );
  const images = async () => (await podsIn(host)).manifests?.map((manifest) => manifest.images);
  expect(await images()).toEqual([["r.example/etcd:3"]]);
  staticPodPath = null;
  for (const _ of [1, 2]) expect(await images()).toContainEqual(["r.example/etcd:3"]);
  staticPodPath = other;
  expect(await images()).toEqual([["r.example/new:1"]]);
});
