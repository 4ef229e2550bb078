// Starts a real containerd with pods and images on its own disk, as root: scripts/dev real-node [OPTION…]
//
// Runs in the foreground; Ctrl-C removes everything again.
//
//   --release VERSION  release line of containerd (1.7)
//   --size MIB         size of the node's disk (2048)
//   --images N         number of unused images; each is 50 MiB and takes 100 MiB of disk (8)
//   --fill PERCENT     fill the disk up to this usage with another file
//   --sweep            remove what killed runs left behind, and exit

import { parseArgs } from "node:util";

import { fillDiskTo, mebibyte, readDisk } from "../../test/support/containerd/disk.ts";
import { loadImages } from "../../test/support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../test/support/containerd/node.ts";
import { runPod, runToEnd, startContainer } from "../../test/support/containerd/pods.ts";
import { nodeFlags } from "../../test/support/containerd/program.ts";
import { type Release, releases } from "../../test/support/containerd/release.ts";
import { tearDownAbandoned } from "../../test/support/containerd/teardown.ts";

const { values } = parseArgs({
  options: {
    release: { type: "string", default: "1.7" },
    size: { type: "string", default: "2048" },
    images: { type: "string", default: "8" },
    fill: { type: "string" },
    sweep: { type: "boolean" },
  },
});
const chosen = releases.find((known) => known === values.release);
if (values.sweep === true) await tearDownAbandoned();
else if (chosen === undefined)
  throw new Error(`unknown release ${values.release}; expected ${releases.join(", ")}`);
else
  await play(chosen, {
    sizeBytes: Number(values.size) * mebibyte,
    images: Number(values.images),
    fillPercent: values.fill === undefined ? undefined : Number(values.fill),
  });
process.exit();

type NodeOptions = {
  readonly sizeBytes: number;
  readonly images: number;
  readonly fillPercent: number | undefined;
};

async function play(release: Release, options: NodeOptions): Promise<void> {
  // Installed before anything exists, so that an early Ctrl-C leaves nothing behind.
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, resolve);
  });
  const node = await startNode(release, { disk: { sizeBytes: options.sizeBytes, flushes: true } });
  try {
    await populate(node, options);
    console.log(invitation(node));
    await stopped;
  } finally {
    await node.stop();
  }
}

async function populate(node: ContainerdNode, options: NodeOptions): Promise<void> {
  await loadImages(node, [
    { names: ["docker.io/library/web:1"] },
    { names: ["docker.io/library/job:1"] },
  ]);
  for (let i = 1; i <= options.images; i += 1) {
    const layers = [{ seed: `unused-${i}`, sizeBytes: 50 * mebibyte }];
    await loadImages(node, [{ names: [`docker.io/library/unused:${i}`], layers }]);
  }
  const pod = await runPod(node, { name: "shop" });
  await startContainer(node, pod, { name: "web", image: "docker.io/library/web:1" });
  await runToEnd(node, pod, { name: "job", image: "docker.io/library/job:1" });
  if (options.fillPercent !== undefined) await fillDiskTo(node.disk, options.fillPercent);
}

function invitation(node: ContainerdNode): string {
  const used = readDisk(node.disk.path).usedPercent.toFixed(1);
  return `
containerd ${node.release} is running; its disk ${node.disk.path} is ${used}% full.

  export CONTAINER_RUNTIME_ENDPOINT=${node.endpoint}

  dist/crigc plan \\
    ${nodeFlags(node).join(" \\\n    ")}

  ${node.programs.ctr} --address ${node.socket} --namespace k8s.io images ls

Ctrl-C removes everything.`;
}
