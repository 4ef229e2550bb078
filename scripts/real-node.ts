// A real containerd to play with: starts it, puts pods and images on it, says how to reach it, cleans up on exit.

import { parseArgs } from "node:util";

import { readDisk } from "../test/support/containerd/disk-use.ts";
import { fillDiskTo, mebibyte } from "../test/support/containerd/disk.ts";
import { loadImages } from "../test/support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../test/support/containerd/node.ts";
import { runPod, runToEnd, startContainer } from "../test/support/containerd/pods.ts";
import { nodeFlags } from "../test/support/containerd/program.ts";
import { type Release, releases } from "../test/support/containerd/release.ts";
import {
  nodeDirectories,
  tearDown,
  tearDownAbandoned,
} from "../test/support/containerd/teardown.ts";

const help = `scripts/real-node [OPTION...]

  --release VERSION  containerd of this line: ${releases.join(", ")} (default 1.7)
  --size MIB         size of the node's disk (default 2048)
  --images N         unused images of 50 MiB, each of which takes 100 MiB of the disk (default 8)
  --fill PERCENT     then fill the disk so far with a file that is no image
  --sweep            take down what killed runs have left, and exit
  --sweep-all        take down the nodes of running tests too, and exit
`;

process.exit(await main());

async function main(): Promise<number> {
  const values = readOptions();
  if (values.help === true) {
    process.stdout.write(help);
    return 0;
  }
  if (values["sweep-all"] === true) {
    for (const directory of nodeDirectories()) await tearDown(directory);
    return 0;
  }
  if (values.sweep === true) {
    await tearDownAbandoned();
    return 0;
  }
  const release = releases.find((known) => known === values.release);
  if (release === undefined) {
    console.error(`real-node: no containerd ${values.release}; there are ${releases.join(", ")}`);
    return 2;
  }
  await play(release, {
    sizeBytes: wholeNumber("size", values.size) * mebibyte,
    images: wholeNumber("images", values.images),
    fillPercent: values.fill === undefined ? undefined : wholeNumber("fill", values.fill),
  });
  return 0;
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        release: { type: "string", default: "1.7" },
        size: { type: "string", default: "2048" },
        images: { type: "string", default: "8" },
        fill: { type: "string" },
        sweep: { type: "boolean" },
        "sweep-all": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.error(`real-node: ${reason}; see scripts/real-node --help`);
    return process.exit(2);
  }
}

type Wishes = {
  readonly sizeBytes: number;
  readonly images: number;
  readonly fillPercent: number | undefined;
};

async function play(release: Release, wishes: Wishes): Promise<void> {
  // Listened for before anything exists, so that an early Ctrl-C too leaves nothing.
  const asked = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, resolve);
  });
  const node = await startNode(release, { disk: { sizeBytes: wishes.sizeBytes } });
  try {
    await populate(node, wishes);
    console.log(invitation(node));
    await asked;
  } finally {
    await node.stop();
  }
}

async function populate(node: ContainerdNode, wishes: Wishes): Promise<void> {
  await loadImages(node, [
    { names: ["docker.io/library/web:1"] },
    { names: ["docker.io/library/job:1"] },
  ]);
  for (let i = 1; i <= wishes.images; i += 1) {
    const layers = [{ seed: `unused-${i}`, sizeBytes: 50 * mebibyte }];
    await loadImages(node, [{ names: [`docker.io/library/unused:${i}`], layers }]);
  }
  const pod = await runPod(node, { name: "shop" });
  await startContainer(node, pod, { name: "web", image: "docker.io/library/web:1" });
  await runToEnd(node, pod, { name: "job", image: "docker.io/library/job:1" });
  if (wishes.fillPercent !== undefined) await fillDiskTo(node.disk, wishes.fillPercent);
}

function invitation(node: ContainerdNode): string {
  const used = readDisk(node.disk.path).usedPercent.toFixed(1);
  return `
containerd ${node.release} runs; its disk ${node.disk.path} is ${used}% full.

  export CONTAINER_RUNTIME_ENDPOINT=${node.endpoint}

  dist/crigc plan \\
    ${nodeFlags(node).join(" \\\n    ")}

  ${node.programs.ctr} --address ${node.socket} --namespace k8s.io images ls

Ctrl-C takes everything down.`;
}

function wholeNumber(option: string, text: string): number {
  if (!/^\d+$/.test(text)) {
    console.error(`real-node: --${option} takes a whole number, not '${text}'`);
    process.exit(2);
  }
  return Number(text);
}
