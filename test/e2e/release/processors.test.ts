// The executables for other processors, emulated, do the main job on a real containerd.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import type { CommandResult } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  execInContainer,
  type PodContainer,
  runPod,
  startContainer,
} from "../../support/containerd/pods.ts";
import { nodeFlags } from "../../support/containerd/program.ts";
import { until } from "../../support/containerd/until.ts";
import { released, run, starting, tooOld } from "./build.ts";

setDefaultTimeout(300_000);

describe.each([
  ["arm64, under qemu-aarch64", "arm64"],
  ["x64-baseline, on a Nehalem without AVX", "nehalem"],
] as const)("%s", (_, how) => {
  let node: ContainerdNode;
  let container: PodContainer;

  beforeAll(async () => {
    node = await startNode("1.7", { disk: { sizeBytes: 512 * mebibyte } });
    await loadImages(node, [
      { names: [library("web:1")], layers: [{ seed: "web", sizeBytes: 8 * mebibyte }] },
    ]);
    container = await startContainer(node, await runPod(node, { name: "shop" }), {
      name: "web",
      image: library("web:1"),
    });
    for (let number = 1; readDisk(node.disk.path).usedPercent < 88; number += 1) {
      const layers = [{ seed: `unused-${number}`, sizeBytes: 12 * mebibyte }];
      await loadImages(node, [{ names: [library(`unused:${number}`)], layers }]);
    }
  });

  afterAll(async () => {
    await node?.stop();
  });

  /** An emulated processor may need longer than a runtime is given to answer the first call: then it is asked again. */
  const crigc = async (...words: readonly string[]): Promise<CommandResult> => {
    const flags = [...nodeFlags(node), "--minimum-image-ttl-duration=0s"];
    const executable = await starting(how);
    return until("the runtime was fast enough for the emulator", 120_000, async () => {
      const result = await run(...executable, ...words, ...flags);
      return !result.stderr.includes("did not answer within") && result;
    });
  };

  test("prints its version, and plans the removal of unused images only", async () => {
    expect((await run(...(await starting(how)), "version")).stdout).toStartWith("crigc ");
    const { exitCode, stdout } = await crigc("plan", "-o", "json");
    expect(exitCode).toBe(0);
    const { images } = JSON.parse(stdout) as {
      images: { candidates: readonly { name: string }[] };
    };
    expect(images.candidates.length).toBeGreaterThan(3);
    for (const { name } of images.candidates) expect(name).toStartWith(library("unused:"));
  });

  test("collects down to 80 percent, and the running container keeps running", async () => {
    // So long is waited for records that cannot be written.
    const { exitCode, stderr } = await crigc("gc", "-v", "2", "--runtime-request-timeout=20s");
    // Where the kernel cannot start a program of that processor, neither can crigc, so its records are lost.
    const isDone = exitCode === 0 || stderr.includes("could not be written to the state directory");
    expect({ isDone, stderr: isDone ? "" : stderr }).toEqual({ isDone: true, stderr: "" });
    expect(readDisk(node.disk.path).usedPercent).toBeLessThanOrEqual(80);
    expect(await imageTags(node)).toContain(library("web:1"));
    expect(await execInContainer(node, container.id, ["/bin/echo", "alive"])).toContain("alive");
  });
});

describe("a processor without SSE4.2", () => {
  test("cannot run the executable, as documented", async () => {
    const { exitCode } = await run(
      ...tooOld,
      `${await released()}/crigc-linux-x64-baseline`,
      "version",
    );
    expect(exitCode).not.toBe(0);
  });
});
