// The executables for other processors, emulated, do the main job on a real containerd.

import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import type { CommandResult } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { startNode } from "../../support/containerd/node.ts";
import { execInContainer, runPod, startContainer } from "../../support/containerd/pods.ts";
import { nodeFlags } from "../../support/containerd/program.ts";
import { until } from "../../support/containerd/until.ts";
import { released, run, starting, tooOld } from "./build.ts";

setDefaultTimeout(300_000);

describe.each([
  ["arm64, under qemu-aarch64", "arm64"],
  ["x64-baseline, on a Nehalem without AVX", "nehalem"],
] as const)("%s", (_, how) => {
  test("plans the removal of unused images only, and collects down to 80 percent, and the running container keeps running", async () => {
    await using node = await startNode("1.7", { disk: { sizeBytes: 512 * mebibyte } });
    const image = (name: string, sizeMib: number) => ({
      names: [library(name)],
      layers: [{ seed: name.replace(":", "-"), sizeBytes: sizeMib * mebibyte }],
    });
    await loadImages(node, [image("web:1", 8)]);
    const web = { name: "web", image: library("web:1") };
    const container = await startContainer(node, await runPod(node, { name: "shop" }), web);
    for (let number = 1; readDisk(node.disk.path).usedPercent < 88; number += 1)
      await loadImages(node, [image(`unused:${number}`, 12)]);

    /** An emulated processor may be too slow for the first call, which has a short deadline: then the test calls again. */
    const executable = await starting(how);
    const flags = [...nodeFlags(node), "--minimum-image-ttl-duration=0s"];
    const crigc = (...words: readonly string[]): Promise<CommandResult> =>
      until("the runtime was fast enough for the emulator", 120_000, async () => {
        const result = await run(...executable, ...words, ...flags);
        return !result.stderr.includes("did not answer within") && result;
      });
    expect((await run(...executable, "version")).stdout).toStartWith("crigc ");
    const planned = await crigc("plan", "-o", "json");
    expect(planned.exitCode).toBe(0);
    const { candidates } = JSON.parse(planned.stdout).images;
    expect(candidates.length).toBeGreaterThan(3);
    for (const { name } of candidates) expect(name).toStartWith(library("unused:"));

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

test("a processor without SSE4.2 cannot run the executable, as documented", async () => {
  const executable = `${await released()}/crigc-linux-x64-baseline`;
  expect((await run(...tooOld, executable, "version")).exitCode).not.toBe(0);
});
