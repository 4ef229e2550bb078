// What doctor finds before it hurts: a kubelet that collects too.

import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
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
