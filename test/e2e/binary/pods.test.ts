// What the executable believes of pods: what the kubelet lists, and which are deleted; and a hook that hangs.

import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { makeCertificate } from "../../support/certificate.ts";
import { until } from "../../support/containerd/until.ts";
import { aPod, type FakeKubelet, startFakeKubelet } from "../../support/fake-kubelet.ts";
import { hexId, imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { put } from "../../support/scratch.ts";
import { image, type Json, quickPasses, startNode, type TestNode } from "./node.ts";

setDefaultTimeout(30_000);

const STATIC = "0123456789abcdef0123456789abcdef";
const DONE = "11111111-2222-4333-8444-555555555555";
const PENDING = "66666666-7777-4888-8999-aaaaaaaaaaaa";

/** A static pod runs, a job of the API server has ended, and the image of a pod that waits is there already. */
const node: NodeDescription = {
  images: [image("etcd", 3_000_000), image("job", 2_000_000), image("next", 1_000_000)],
  sandboxes: [
    { id: hexId("etcd"), uid: STATIC, name: "etcd" },
    { id: hexId("job"), uid: DONE, name: "job", state: "not-ready" },
  ],
  containers: [
    { id: hexId("c-etcd"), sandboxId: hexId("etcd"), image: "r.example/etcd:1" },
    { id: hexId("c-job"), sandboxId: hexId("job"), image: "r.example/job:1", state: "exited" },
  ],
};

const from = (source: string) => ({ "kubernetes.io/config.source": source });
const staticPod = aPod(STATIC, {
  annotations: { ...from("file"), "kubernetes.io/config.hash": STATIC },
  spec: { containers: [{ image: "r.example/etcd:1" }] },
});
const jobPod = aPod(DONE, {
  annotations: from("api"),
  spec: { containers: [{ image: "r.example/job:1" }] },
  status: { phase: "Succeeded" },
});
const pendingPod = aPod(PENDING, {
  annotations: from("api"),
  spec: { containers: [{ image: "r.example/next:1" }] },
  status: { phase: "Pending" },
});

const serving = makeCertificate({ name: "kubelet", dnsNames: ["localhost"], authority: true });

async function start(kubelet: FakeKubelet): Promise<TestNode> {
  // A pod without a ready sandbox would count as starting.
  const sandboxes = [...(node.sandboxes ?? []), { id: hexId("next"), uid: PENDING, name: "next" }];
  const it = await startNode({
    node: { ...node, sandboxes: sandboxes.map((one) => ({ ...one, state: "ready" as const })) },
    flags: ["--minimum-image-ttl-duration=0s", "--boot-grace=0s"],
  });
  const kubeletCAFile = put(it.home, "kubelet.crt", serving.certificate);
  it.configure({ kubeletEndpoint: kubelet.endpoint, kubeletCAFile });
  for (const uid of [STATIC, DONE, PENDING]) podDirectory(it, uid);
  put(it.podLogsDir, `default_job_${DONE}/main/0.log`);
  return it;
}

const podDirectory = (it: TestNode, uid: string): string => {
  const path = join(it.home, "root", "pods", uid);
  mkdirSync(path, { recursive: true });
  return path;
};
const gc = (it: TestNode) => it.crigc("gc", "--images", "--image-store-budget=1900k");

test("with a kubelet endpoint the images of listed pods are kept, also once the kubelet does not answer, which doctor says", async () => {
  await using kubelet = await startFakeKubelet(serving);
  await using it = await start(kubelet);
  kubelet.answer = { kind: "pods", pods: [staticPod, jobPod, pendingPod] };
  const { images } = await it.json(["plan", "--image-store-budget=1900k"]);
  const kept = images.kept.map((one: Json) => one.reason.code);
  expect(kept).toContain("in-use");
  await gc(it);
  expect(it.changes()).toEqual([]);
  // A command alone has no earlier list; the kubelet never blocks.
  kubelet.answer = { kind: "hang-up" };
  const { checks } = await it.json(["doctor"], 0);
  expect(checks).toContainEqual(expect.objectContaining({ name: "pod-specs", result: "warning" }));
  await gc(it);
  expect(it.removedImages()).toEqual([imageIdOf("next")]);
});

test("a running agent keeps the images that the kubelet last listed while the kubelet does not answer, until the pod's directory is gone", async () => {
  await using kubelet = await startFakeKubelet(serving);
  await using it = await start(kubelet);
  kubelet.answer = { kind: "pods", pods: [staticPod, jobPod, pendingPod] };
  await using agent = it.start("run", "--image-store-budget=1900k", ...quickPasses);
  await it.firstPass();
  kubelet.answer = { kind: "hang-up" };
  await agent.untilSaid(/GET https:.*failed/);
  await it.looksAgain();
  expect(it.removedImages()).toEqual([]);
  rmSync(podDirectory(it, PENDING), { recursive: true });
  await it.untilRemoved(1);
  expect(it.removedImages()).toEqual([imageIdOf("next")]);
});

test("with --compat kubelet each gc is a process of its own, and a pod that two of them at least 10 s apart lack is deleted", async () => {
  await using it = await startNode({ node });
  for (const uid of [STATIC, PENDING]) podDirectory(it, uid);
  const pass = () => it.crigc("gc", "--containers", "--compat=kubelet", "--pod-source=kubelet-dir");
  // A second apart is too close: the pod source may only have been slow.
  for (const _ of [1, 2]) {
    expect(await pass()).toMatchObject({ exitCode: 0 });
    expect(it.changes()).toEqual([]);
  }
  await passesApart(it.stateDir);
  expect(await pass()).toMatchObject({ exitCode: 0 });
  expect(it.changes()).toEqual(["RemoveContainer", "StopPodSandbox", "RemovePodSandbox"]);
});

test("an agent exits on SIGTERM while the pre-stop command of a container of unknown state hangs", async () => {
  const pod = { id: hexId("pod"), uid: "uid-pod", state: "not-ready" } as const;
  const container = {
    id: hexId("container"),
    sandboxId: pod.id,
    image: "r.example/a:1",
    state: "unknown",
    annotations: {
      "io.kubernetes.pod.terminationGracePeriod": "86400",
      "io.kubernetes.container.preStopHandler": JSON.stringify({ exec: { command: ["drain"] } }),
    },
  } as const;
  await using it = await startNode({
    node: { sandboxes: [pod], containers: [container] },
    flags: [
      "--boot-grace=0s",
      "--dead-pod-ttl=0s",
      "--container-gc-period=200ms",
      "--eviction-hard=nodefs.available<0%",
    ],
  });
  await it.crigc("gc", "--containers");
  // The next pass counts its pod as deleted.
  await passesApart(it.stateDir);
  it.runtime.fail("ExecSync", { kind: "hang" });
  await using agent = it.start("run");
  const hangs = () => it.runtime.callsOf("ExecSync").length > 0;
  await until("the command runs", 15_000, hangs);
  const startedMs = performance.now();
  expect(await agent.stop()).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(3_000);
  expect(it.changes()).not.toContain("RemoveContainer");
});
