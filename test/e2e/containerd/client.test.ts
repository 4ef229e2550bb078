// The program's own client against real runtimes: what each release says, in the words of the model.
import { expect, setDefaultTimeout, test } from "bun:test";

import { openRuntime } from "../../../src/cri/client.ts";
import { containerId, imageId, sandboxId } from "../../../src/model/ids.ts";
import { seconds } from "../../../src/model/time.ts";
import { library } from "../../support/containerd/archive.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";

setDefaultTimeout(60_000);

test.each([...releases])(
  "containerd %s tells what lists do not, runs a command, removes twice, and knows nothing of what is not there",
  async (release) => {
    await using node = await startNode(release);
    const [app, model] = [library("app:1"), library("model:1")];
    await loadImages(node, [{ names: [app] }, { names: [model] }]);
    const { signal } = new AbortController();
    const { endpoint } = node;
    const options = { endpoint, imageEndpoint: endpoint, requestTimeout: seconds(20) };
    const runtime = openRuntime(options);
    const { reader, writer } = runtime;
    const line = release === "2.1" ? "2." : `${release}.`;
    expect((await reader.info(signal)).version).toStartWith(line);
    const pod = await runPod(node, { name: "web" });
    const sandbox = sandboxId(pod.sandboxId);
    const id = containerId((await startContainer(node, pod, { name: "app", image: app })).id);
    expect(await reader.sandboxDetail(sandbox, signal)).toMatchObject({ state: "ready" });
    expect(await reader.containerDetail(id, signal)).toMatchObject({ state: "running" });
    const command = { words: ["/bin/sh", "-c", "exit 7"], timeoutSeconds: 10 };
    expect(await writer.execSync(id, command, signal)).toBe(7);
    const image = (await reader.imageStatus(model, signal))?.id ?? imageId("");
    for (let round = 0; round < 2; round += 1) {
      await writer.stopContainer(id, 1, signal);
      await writer.removeContainer(id);
      await writer.stopSandbox(sandbox, signal);
      await writer.removeSandbox(sandbox);
      await writer.removeImage(image);
    }
    expect(await reader.containerDetail(id, signal)).toBeNull();
    expect(await reader.sandboxDetail(sandbox, signal)).toBeNull();
    expect(await reader.imageStatus(model, signal)).toBeNull();
    runtime.close();
  },
);
