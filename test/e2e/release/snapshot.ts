// A recorded node for tests that need a plan and no runtime: taken once from a real containerd.

import { writeFileSync } from "node:fs";

import { fillDiskTo, mebibyte } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { startNode } from "../../support/containerd/node.ts";
import { nodeFlags } from "../../support/containerd/program.ts";
import { run, starting } from "./build.ts";

/** Writes it into the directory and answers with its path. */
export async function recordSnapshot(directory: string): Promise<string> {
  const node = await startNode("1.7", { disk: { sizeBytes: 256 * mebibyte } });
  try {
    for (const number of [1, 2, 3]) {
      const layers = [{ seed: `unused-${number}`, sizeBytes: 8 * mebibyte }];
      await loadImages(node, [{ names: [`docker.io/library/unused:${number}`], layers }]);
    }
    await fillDiskTo(node.disk, 60);
    const taken = await run(...(await starting("x64")), "snapshot", ...nodeFlags(node));
    if (taken.exitCode !== 0) throw new Error(`crigc snapshot failed: ${taken.stderr}`);
    const path = `${directory}/snapshot.json`;
    writeFileSync(path, taken.stdout);
    return path;
  } finally {
    await node.stop();
  }
}
