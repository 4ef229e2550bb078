// Containers that are being created, as the kubelet's directory shows them, hold up image removal; pods without one do not.

import { expect, test } from "bun:test";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { put } from "../../support/scratch.ts";
import { image, startNode, type TestNode } from "./node.ts";

/** So large that removing them could relieve any disk. */
const images = ["a", "b", "c"].map((name) => image(name, 2 ** 50));
/** Any disk is under pressure. */
const flags = [
  "--minimum-image-ttl-duration=0s",
  "--eviction-hard=imagefs.available<99.99%",
  "--image-gc-high-threshold=100",
  "--pressure-period=1s",
  "--image-gc-period=1h",
  "--container-gc-period=1h",
  "--boot-grace=0s",
];

/** A pod whose sandbox has just become ready, with the kubelet's directory of it. */
const aPod = async (given = flags): Promise<TestNode> => {
  const createdAt = new Date(Date.now() - 1_000).toISOString();
  const sandboxes = [{ id: "pod", uid: "uid-pod", createdAt }];
  const it = await startNode({ node: { images, sandboxes }, flags: given });
  put(it.home, "root/pods/uid-pod/etc-hosts");
  return it;
};
/** What the kubelet does just before CreateContainer. */
const begin = (it: TestNode): unknown => put(it.home, "root/pods/uid-pod/containers/web/0a1b2c3d");
const create = (it: TestNode): void =>
  it.runtime.node.addContainer({
    id: "web",
    name: "web",
    sandboxId: "pod",
    image: "r.example/a:1",
    createdAt: new Date().toISOString(),
  });

test("an agent under pressure waits for a container that is being created, says so, and keeps its image", async () => {
  await using it = await aPod();
  begin(it);
  await using agent = it.start("run");
  const { waiting } = await it.status("the pass waits", (status) => status.waiting !== null);
  expect(waiting).toMatchObject({
    code: "pod-starting",
    pods: [{ uid: "uid-pod", container: "web" }],
  });
  const metrics = await (await it.ask("/metrics")).text();
  expect(metrics).toContain('crigc_image_removal_blocked{block="pod-starting"} 1');
  expect(it.removedImages()).toEqual([]);
  create(it);
  await it.untilRemoved(2);
  expect(it.runtime.node.images.map(({ id }) => id)).toEqual([imageIdOf("a")]);
  await agent.stop();
  expect(agent.said()).toContain("Image removal waits: 1 container starting (web of");
}, 60_000);
