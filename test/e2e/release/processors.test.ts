// The executables for other processors, emulated, do the main job.

import { expect, setDefaultTimeout, test } from "bun:test";

import type { CommandResult } from "../../support/containerd/command.ts";
import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { removable, startNode, usedAndUnused } from "../binary/node.ts";
import { released, run, starting, tooOld } from "./build.ts";

setDefaultTimeout(300_000);

test.each([
  ["arm64, under qemu-aarch64,", "arm64"],
  ["x64-baseline, on a Nehalem without AVX,", "nehalem"],
] as const)("%s plans the removal of the unused image only, and removes it", async (_, how) => {
  await using node = await startNode({ node: usedAndUnused, flags: removable });
  const executable = await starting(how);
  /** An emulated processor may be too slow for the first call, which has a short deadline: then the test calls again. */
  const crigc = (...words: readonly string[]): Promise<CommandResult> =>
    until("the runtime was fast enough for the emulator", 120_000, async () => {
      const result = await run(...executable, ...words, ...node.flags);
      return !result.stderr.includes("did not answer within") && result;
    });
  expect((await run(...executable, "version")).stdout).toStartWith("crigc ");
  const planned = await crigc("plan", "--all-unused", "-o", "json");
  expect(planned.exitCode).toBe(0);
  expect(JSON.parse(planned.stdout).images.candidates).toMatchObject([{ id: imageIdOf("unused") }]);

  // So long is waited for records that cannot be written.
  const collect = ["gc", "--images", "--all-unused", "-v", "2", "--runtime-request-timeout=10s"];
  const { exitCode, stderr } = await crigc(...collect);
  // Where the kernel cannot start a program of that processor, neither can crigc, so its records are lost.
  const isDone = exitCode === 0 || stderr.includes("could not be written to the state directory");
  expect({ isDone, stderr: isDone ? "" : stderr }).toEqual({ isDone: true, stderr: "" });
  expect(node.changes()).toEqual(["RemoveImage"]);
  expect(node.removedImages()).toEqual([imageIdOf("unused")]);
});

test("a processor without SSE4.2 cannot run the executable, as documented", async () => {
  const executable = `${await released()}/crigc-linux-x64-baseline`;
  expect((await run(...tooOld, executable, "version")).exitCode).not.toBe(0);
});
