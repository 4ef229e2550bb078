// A runtime that answers with a list that is not whole, and no error: nothing that the lost part would have kept goes.

import { describe, expect, test } from "bun:test";

import { PodLists } from "../../src/gc/pod-lists.ts";
import { podUid, sandboxId } from "../../src/model/ids.ts";
import type { Sandbox } from "../../src/model/snapshot.ts";
import { instant, minutes, seconds, totalUptime } from "../../src/model/time.ts";
import { aPodRecord, noLogs, reading } from "../support/build/pods.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aSandbox,
  defaultLimits,
  withLimits,
} from "../support/build/values.ts";
import {
  type FakeEngine,
  fakeEngine,
  type FakeWorld,
  runFakePass,
} from "../support/fake-engine.ts";

const never = new AbortController().signal;

const absentOnce = aPodRecord({ absentSinceUptime: totalUptime(0n - seconds(10)) });

/** Pod `known` runs and the kubelet lists it; pod `lost` it has not listed for two passes, and what is left is dead. */
function aNode(lost: Sandbox, change: Partial<FakeWorld> = {}): FakeEngine {
  const ofPod = (pod: string) => ({ podUid: podUid(`uid-${pod}`), sandboxId: aSandbox(pod).id });
  return fakeEngine({
    containers: [
      aContainer("runs", { ...ofPod("known"), state: "running" }),
      aContainer("dead", { ...ofPod("lost"), state: "exited" }),
    ],
    sandboxes: [aSandbox("known", { state: "ready" }), lost],
    pods: reading("kubelet-dir", "uid-known"),
    ledger: aLedger({ pods: new Map([[podUid("uid-lost"), absentOnce]]) }),
    limits: defaultLimits,
    ...change,
  });
}

async function collect(fake: FakeEngine): Promise<string | null> {
  const { pass } = await runFakePass(fake, { purpose: { kind: "all-unused" } });
  return pass.error ?? pass.containers?.errors.join("; ") ?? null;
}

const old = { createdAt: instant(0n) };
const DEAD = aSandbox("lost", { ...old, state: "not-ready" });
const READY = aSandbox("lost", { ...old, state: "ready" });
const empty = (listed: string) => (method: string) => (method === listed ? "empty" : null);

describe("a list of sandboxes that is empty from the start", () => {
  test("keeps the containers of a pod whose sandbox is ready", async () => {
    const node = aNode(READY, { lies: empty("ListPodSandbox") });
    expect(await collect(node)).toContain("the runtime's list of sandboxes is incomplete");
    expect(node.writes).toEqual([]);
  });

  test("is accepted if no sandbox exists any more: the container of a deleted pod is removed", async () => {
    const node = aNode(READY);
    node.world.sandboxes = [];
    expect(await collect(node)).toBe("");
    expect(node.writes).toEqual(["RemoveContainer container-dead"]);
  });

  test("keeps the log directory of a pod without containers whose sandbox an earlier pass saw", async () => {
    const podLogs = [{ entry: "default_pod-lost_uid-lost", uid: podUid("uid-lost") }];
    const logs = { ...noLogs, podLogs };
    const node = aNode(READY, { logs, lies: empty("ListPodSandbox") });
    node.world.containers = [];
    node.engine.memory.replace({ ...node.world.ledger, sandboxes: [READY.id] });
    expect(await collect(node)).toContain("the runtime's list of sandboxes is incomplete");
    expect(node.writes).toEqual([]);
  });
});

test("a sandbox missing in one list and listed in the next counts as started in between", async () => {
  let lists = 0;
  const node = aNode(READY, {
    lies: (method) => (method === "ListPodSandbox" && (lists += 1) === 1 ? "empty" : null),
  });
  expect(await collect(node)).toBe("");
  expect(node.writes).toEqual([]);
});

test("a container without a sandbox ID causes no second list of sandboxes", async () => {
  const { engine, calls } = fakeEngine({
    containers: [aContainer("alone", { sandboxId: sandboxId("") })],
  });
  const { containers } = await new PodLists(engine.observe.runtime).read(never);
  expect(containers).toHaveLength(1);
  expect(calls).toEqual(["ListPodSandbox", "ListContainers"]);
});

describe("a first list that lacks entries of an earlier pass", () => {
  test("keeps the image of a running container that the list lacks", async () => {
    let lies = false;
    const image = anImage("used");
    const node = fakeEngine({
      images: [image],
      containers: [
        aContainer("unlisted", { imageRef: image.id }),
        aContainer("b", { imageRef: "sha256:other" }),
        aContainer("c", { imageRef: "sha256:other" }),
        aContainer("d", { imageRef: "sha256:other" }),
      ],
      sandboxes: [aSandbox("a", { state: "ready" })],
      limits: withLimits({ minimumAge: minutes(0) }),
      lies: (asked) => (lies && asked === "ListContainers" ? "half" : null),
    });
    await collect(node);
    lies = true;
    expect(await collect(node)).toContain("the runtime's list of containers is incomplete");
    expect(node.writes).toEqual([]);
    lies = false;
    node.world.containers = node.world.containers.slice(1);
    await collect(node);
    expect(node.writes).toEqual([`RemoveImage ${image.id}`]);
  });

  test("is accepted if they no longer exist, with one call for each that was not removed by the pass before", async () => {
    const node = aNode(DEAD);
    await collect(node);
    await collect(node);
    expect(node.writes).toContain("RemoveContainer container-dead");
    const before = node.calls.length;
    await collect(node);
    const asked = () => node.calls.slice(before).filter((call) => call.endsWith("Status"));
    expect(asked()).toEqual([]);
    node.world.containers = [];
    node.world.sandboxes = [];
    await collect(node);
    expect(asked().toSorted()).toEqual(["ContainerStatus", "PodSandboxStatus"]);
  });
});

describe("a list during a pass", () => {
  for (const method of ["ListContainers", "ListPodSandbox"]) {
    for (const lie of ["empty", "half"] as const) {
      test(`${method} that becomes ${lie} although everything still exists is an error`, async () => {
        let lies = false;
        const node = aNode(DEAD, { lies: (asked) => (lies && asked === method ? lie : null) });
        const lists = new PodLists(node.engine.observe.runtime);
        await lists.read(never);
        lies = true;
        expect(await lists.read(never).catch(String)).toContain("is incomplete");
      });
    }
  }

  test("may lack what no longer exists, and what the pass removed, without further calls", async () => {
    const node = aNode(DEAD);
    const lists = new PodLists(node.engine.observe.runtime);
    const { containers } = await lists.read(never);
    const dead = containers.find(({ state }) => state === "exited");
    if (dead === undefined) throw new Error("one is dead");
    node.world.containers = containers.filter((one) => one !== dead);
    lists.containerRemoved(dead.id);
    expect((await lists.read(never)).containers).toHaveLength(1);
    expect(node.calls).not.toContain("ContainerStatus");
    node.world.containers = [];
    for (const _ of [1, 2]) expect((await lists.read(never)).containers).toEqual([]);
    expect(node.calls.filter((call) => call === "ContainerStatus")).toHaveLength(1);
  });
});
