// One connection that outlives the runtime's restarts, counts its calls, and costs nothing to keep.
import { describe, expect, test } from "bun:test";

import { openRuntime } from "../../src/cri/client.ts";
import { containerId, imageId, sandboxId } from "../../src/model/ids.ts";
import { fromRfc3339, seconds } from "../../src/model/time.ts";
import { hexId, imageIdOf, type NodeDescription } from "../support/fake-runtime/describe.ts";
import { startFakeRuntime } from "../support/fake-runtime/server.ts";
import { connected } from "./connection.ts";

const pod: NodeDescription = {
  images: [{ id: imageIdOf(1), repoTags: ["docker.io/library/a:1"], sizeBytes: 5_000_000_000 }],
  sandboxes: [{ id: "sandbox", uid: "uid", name: "web", namespace: "shop", attempt: 2 }],
  containers: [
    {
      id: "container",
      sandboxId: "sandbox",
      name: "app",
      attempt: 3,
      image: "docker.io/library/a:1",
      state: "exited",
      createdAt: "1767225600123456789",
      imageVolumes: ["docker.io/library/models:7"],
      annotations: { "io.kubernetes.pod.terminationGracePeriod": "30" },
    },
  ],
  imageFilesystems: [{ mountpoint: "/var/lib/images", usedBytes: null, inodesUsed: 7 }],
  containerFilesystems: [{ mountpoint: "/var/lib/containers", usedBytes: 11, inodesUsed: null }],
};

describe("reading", () => {
  test("returns the node in the types of the model, exactly", async () => {
    await using connection = await connected({ node: pod });
    const { runtime, signal } = connection;
    const { reader } = runtime;
    expect({
      images: await reader.listImages(signal),
      containers: await reader.listContainers(signal),
      sandboxes: await reader.listSandboxes(signal),
      detail: await reader.containerDetail(containerId("container"), signal),
      filesystems: await reader.reportedFilesystems(signal),
    }).toMatchSnapshot();
  });

  test("returns the runtime's name, version and sandbox image", async () => {
    await using connection = await connected();
    const { fake, runtime, signal } = connection;
    const { endpoint } = fake;
    const names = { name: "containerd", version: "1.7.24", apiVersion: "v1" };
    const sandboxImages = ["registry.k8s.io/pause:3.8"];
    const info = { endpoint, imageEndpoint: endpoint, ...names, sandboxImages };
    expect(await runtime.reader.info(signal)).toEqual(info);
  });

  test("returns the layers of an image by its full ID, and none for an artifact", async () => {
    const layers = ["base", "app"].map((id) => ({ id, bytes: 1000 }));
    const images = [
      { id: imageIdOf(1), layers, builtAt: "2026-02-03T04:05:06Z" },
      { id: imageIdOf(2), repoTags: ["docker.io/library/chart:1"], isArtifact: true },
    ];
    await using connection = await connected({ node: { images } });
    const { runtime, signal } = connection;
    const origin = await runtime.reader.imageConfig(imageId(imageIdOf(1)), signal);
    const [first, second] = layers.map(({ id }) => `sha256:${hexId(id)}`);
    const chain = new Bun.CryptoHasher("sha256").update(`${first} ${second}`).digest("hex");
    expect(origin?.chain as readonly string[]).toEqual([first ?? "", `sha256:${chain}`]);
    expect(origin?.builtAt).toBe(fromRfc3339("2026-02-03T04:05:06Z"));
    const artifact = await runtime.reader.imageConfig(imageId(imageIdOf(2)), signal);
    expect(artifact).toEqual({ chain: null, builtAt: null });
    expect(await runtime.reader.imageConfig(imageId(imageIdOf(3)), signal)).toBeNull();
    // Found by its tag, and not the image that was asked about.
    const byTag = imageId("docker.io/library/chart:1");
    expect(await runtime.reader.imageConfig(byTag, signal)).toBeNull();
  });

  test("returns null for what the runtime does not know", async () => {
    await using connection = await connected();
    const { runtime, signal } = connection;
    expect(await runtime.reader.containerDetail(containerId("gone"), signal)).toBeNull();
    expect(await runtime.reader.sandboxDetail(sandboxId("gone"), signal)).toBeNull();
    expect(await runtime.reader.imageStatus("gone:1", signal)).toBeNull();
  });

  test("finds an image by any of its names, and a sandbox's address", async () => {
    await using connection = await connected({
      node: { ...pod, sandboxes: [{ id: "sandbox", ip: "10.1.2.3" }] },
    });
    const { runtime, signal } = connection;
    const found = await runtime.reader.imageStatus("docker.io/library/a:1", signal);
    expect(found?.id).toBe(imageId(imageIdOf(1)));
    expect(await runtime.reader.sandboxDetail(sandboxId("sandbox"), signal)).toMatchObject({
      state: "ready",
      address: "10.1.2.3",
    });
  });
});

describe("writing", () => {
  test("sends exactly the requested change", async () => {
    await using connection = await connected({ node: pod, exec: () => 42 });
    const { fake, runtime, signal } = connection;
    const { writer } = runtime;
    fake.node.setContainerState("container", "running");
    const command = { words: ["sh", "-c", "exit 42"], timeoutSeconds: 5 };
    expect(await writer.execSync(containerId("container"), command, signal)).toBe(42);
    await writer.stopContainer(containerId("container"), 30, signal);
    await writer.removeContainer(containerId("container"));
    await writer.stopSandbox(sandboxId("sandbox"), signal);
    await writer.removeSandbox(sandboxId("sandbox"));
    await writer.removeImage(imageId(imageIdOf(1)));
    expect(fake.node.containers.size + fake.node.sandboxes.size + fake.node.images.length).toBe(0);
    expect(fake.calls.map(({ method, request }) => ({ method, ...request }))).toMatchSnapshot();
  });

  test("of what no longer exists is a success", async () => {
    await using connection = await connected();
    const { fake, runtime, signal } = connection;
    fake.fail("*", { kind: "error", code: "NOT_FOUND" });
    await runtime.writer.removeImage(imageId("a"));
    await runtime.writer.stopContainer(containerId("a"), 0, signal);
    await runtime.writer.removeContainer(containerId("a"));
    await runtime.writer.stopSandbox(sandboxId("a"), signal);
    await runtime.writer.removeSandbox(sandboxId("a"));
    expect(fake.calls).toHaveLength(5);
  });
});

test("the connection may be two: one for images and one for the rest", async () => {
  await using images = await connected({ node: pod });
  const others = await startFakeRuntime({ node: { sandboxes: [{ id: "other" }] } });
  const runtime = openRuntime({
    endpoint: others.endpoint,
    imageEndpoint: images.fake.endpoint,
    requestTimeout: seconds(5),
  });
  expect(await runtime.reader.listImages(images.signal)).toHaveLength(1);
  expect((await runtime.reader.listSandboxes(images.signal)).map(({ id }) => id)).toEqual([
    sandboxId("other"),
  ]);
  expect((await runtime.reader.info(images.signal)).imageEndpoint).toBe(images.fake.endpoint);
  await runtime.reader.imageStatus(imageIdOf(1), images.signal);
  await runtime.reader.imageConfig(imageId(imageIdOf(1)), images.signal);
  await runtime.reader.reportedFilesystems(images.signal);
  await runtime.writer.removeImage(imageId(imageIdOf(1)));
  const isOfImages = ({ method }: { readonly method: string }) => /Image/.test(method);
  expect(others.calls.filter(isOfImages)).toEqual([]);
  expect(images.fake.calls.every(isOfImages)).toBe(true);
  runtime.close();
  await others.stop();
});
