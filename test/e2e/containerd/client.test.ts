// The program's own client against real runtimes: what each release says, in the words of the model.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { openRuntime, type Runtime } from "../../../src/cri/client.ts";
import { containerId, imageId, sandboxId } from "../../../src/model/ids.ts";
import { seconds } from "../../../src/model/time.ts";
import { mebibyte } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";

setDefaultTimeout(60_000);

const app = "docker.io/library/app:1";
const model = "docker.io/library/model:1";

describe.each([...releases])("the client, of containerd %s", (release) => {
  let node: ContainerdNode;
  let runtime: Runtime;
  const { signal } = new AbortController();

  beforeAll(async () => {
    node = await startNode(release);
    await loadImages(node, [
      { names: [app] },
      { names: [model], layers: [{ seed: "model", sizeBytes: mebibyte }] },
    ]);
    runtime = openRuntime({
      endpoint: node.endpoint,
      imageEndpoint: node.endpoint,
      requestTimeout: seconds(20),
    });
  });

  afterAll(async () => {
    runtime?.close();
    await node?.stop();
  });

  test("reads what lists do not say, and null for what does not exist", async () => {
    const { reader } = runtime;
    const line = release === "2.1" ? "2." : `${release}.`;
    expect((await reader.info(signal)).version).toStartWith(line);
    expect(await reader.imageStatus("docker.io/library/absent:1", signal)).toBeNull();
    const pod = await runPod(node, { name: "web" });
    const { id } = await startContainer(node, pod, { name: "app", image: app });
    const sandbox = sandboxId(pod.sandboxId);
    expect(await reader.sandboxDetail(sandbox, signal)).toMatchObject({ state: "ready" });
    expect(await reader.containerDetail(containerId(id), signal)).toMatchObject({
      state: "running",
    });
    expect(await reader.containerDetail(containerId("0".repeat(64)), signal)).toBeNull();
    expect(await reader.sandboxDetail(sandboxId("0".repeat(64)), signal)).toBeNull();
  });

  test("stops and removes, also twice, and an image no longer exists afterwards", async () => {
    const pod = await runPod(node, { name: "to-go" });
    const { id } = await startContainer(node, pod, { name: "app", image: app });
    const { writer, reader } = runtime;
    expect(
      await writer.execSync(
        containerId(id),
        { words: ["/bin/sh", "-c", "exit 7"], timeoutSeconds: 10 },
        signal,
      ),
    ).toBe(7);
    for (let round = 0; round < 2; round += 1) {
      await writer.stopContainer(containerId(id), 1, signal);
      await writer.removeContainer(containerId(id));
      await writer.stopSandbox(sandboxId(pod.sandboxId), signal);
      await writer.removeSandbox(sandboxId(pod.sandboxId));
    }
    expect(await reader.containerDetail(containerId(id), signal)).toBeNull();
    const image = await reader.imageStatus(model, signal);
    await writer.removeImage(image?.id ?? imageId(""));
    await writer.removeImage(image?.id ?? imageId(""));
    expect(await reader.imageStatus(model, signal)).toBeNull();
  });
});
