// What doctor finds before it hurts: a hook that cannot run, an address that is taken, a state directory on the wrong disk, a kubelet that collects too.

import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { startNode, type TestNode } from "./node.ts";

const node = {
  images: [{ id: imageIdOf("one"), repoTags: ["r.example/one:1"], sizeBytes: 1_000 }],
};

interface Check {
  readonly name: string;
  readonly result: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  readonly advice: string | null;
}

async function checkOf(
  it: TestNode,
  name: string,
  words: readonly string[],
  within: readonly string[] = [],
): Promise<Check | undefined> {
  const { stdout } = await it.within({ within }, "doctor", "-o", "json", ...words);
  return (JSON.parse(stdout).checks as Check[]).find((check) => check.name === name);
}

describe("doctor", () => {
  test("fails for an event hook that is missing or not executable, and passes for another", async () => {
    await using it = await startNode({ node });
    const hook = join(it.home, "hook");
    const find = () => checkOf(it, "event-hook", [`--event-hook=${hook}`]);
    expect(await find()).toMatchObject({
      result: "failed",
      message: expect.stringContaining(hook),
    });
    writeFileSync(hook, "#!/bin/sh\n", { mode: 0o644 });
    expect(await find()).toMatchObject({ result: "failed" });
    writeFileSync(`${hook}-2`, "#!/bin/sh\n", { mode: 0o755 });
    expect(await checkOf(it, "event-hook", [`--event-hook=${hook}-2`])).toMatchObject({
      result: "ok",
    });
    expect((await it.crigc("doctor", `--event-hook=${hook}`)).exitCode).toBe(8);
  });

  test("fails for a metrics address that another program listens on", async () => {
    await using it = await startNode({ node });
    const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
    const address = `127.0.0.1:${taken.port}`;
    const find = () => checkOf(it, "metrics-address", [`--metrics-bind-address=${address}`]);
    expect(await find()).toMatchObject({
      result: "failed",
      message: expect.stringContaining(address),
    });
    taken.stop(true);
    expect(await find()).toMatchObject({ result: "ok" });
    const everywhere = await checkOf(it, "metrics-address", ["--metrics-bind-address=*:49419"]);
    expect(everywhere).toMatchObject({ result: "ok" });
  });

  test("warns of a state directory on the image filesystem, if there is another one", async () => {
    const images = mkdtempSync("/dev/shm/crigc-images-");
    try {
      await using it = await startNode({
        node: { ...node, imageFilesystems: [{ mountpoint: images }] },
      });
      const state = `--state-dir=${images}/state`;
      expect(await checkOf(it, "state-filesystem", [state])).toMatchObject({ result: "warning" });
      expect(await checkOf(it, "state-filesystem", [])).toBeUndefined();
    } finally {
      rmSync(images, { recursive: true });
    }
  });
});

describe.skipIf(process.getuid?.() !== 0)("doctor with a distribution's own kubelet", () => {
  /** The files of a node in the place of this machine's, which stay as they are. */
  const onNode = (it: TestNode, files: Readonly<Record<string, string>>): readonly string[] => {
    const tops = [...new Set(Object.keys(files).map((path) => path.split("/")[1] ?? ""))];
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(it.home, "machine", path)), { recursive: true });
      writeFileSync(join(it.home, "machine", path), text);
    }
    const mounts = tops.map((top) => `mount --bind '${it.home}/machine/${top}' '/${top}'`);
    return ["unshare", "--mount", "sh", "-ec", `${mounts.join("; ")}; exec "$0" "$@"`];
  };
  /** The settings alone are the sign, not the directory of the test node. */
  const noKubelet = (it: TestNode): readonly string[] => [`--root-dir=${it.home}/absent`];
  const rancher =
    'kubelet-arg:\n  - "image-gc-high-threshold=70"\n  - "image-gc-low-threshold=60"\n';

  test.each([
    ["k3s", { "/etc/rancher/k3s/config.yaml": rancher }],
    ["RKE2", { "/etc/rancher/rke2/config.yaml": rancher }],
    [
      "MicroK8s",
      {
        "/var/snap/microk8s/current/args/kubelet":
          "--image-gc-high-threshold=70\n--image-gc-low-threshold=60\n",
      },
    ],
    [
      "k0s",
      {
        "/var/lib/k0s/kubelet-config.yaml":
          "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nimageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\n",
      },
    ],
  ])("reads the thresholds of %s from its own files and names the file", async (_, files) => {
    await using it = await startNode({ node });
    const within = onNode(it, files);
    const [file = ""] = Object.keys(files);
    expect(await checkOf(it, "kubelet", noKubelet(it), within)).toMatchObject({
      result: "ok",
      message: expect.stringContaining(`configured by ${file}`),
    });
    expect(await checkOf(it, "kubelet-image-gc", noKubelet(it), within)).toMatchObject({
      result: "warning",
      message: expect.stringContaining("from 70% down to 60%"),
    });
  });

  test("reports such a file if it is invalid", async () => {
    await using it = await startNode({ node });
    const within = onNode(it, { "/etc/rancher/k3s/config.yaml": "kubelet-arg: [\n" });
    expect(await checkOf(it, "kubelet", noKubelet(it), within)).toMatchObject({
      result: "warning",
      message: expect.stringContaining("/etc/rancher/k3s/config.yaml"),
    });
  });
});
