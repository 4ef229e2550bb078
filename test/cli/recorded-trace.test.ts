// The exported trace: layers with the sizes that images tell, and the disk as last measured.

import { expect, test } from "bun:test";

import type { CommandContext } from "../../src/cli/command.ts";
import { recordedTrace } from "../../src/cli/commands/plan.ts";
import { chainId, imageId } from "../../src/model/ids.ts";
import { StateFile } from "../../src/store/state-file.ts";
import { now, read, write } from "../store/fixture.ts";
import { GIB } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";

const contextOf = (stateDir: string): CommandContext =>
  ({
    open: { state: () => read(stateDir).reader, hostName: () => "node-7" },
    config: { values: { stateDir } },
    env: {},
    note: () => undefined,
  }) as unknown as CommandContext;

const [base, top] = ["1", "2"].map((digit) => chainId(`sha256:${digit.repeat(64)}`));
const chain = [base, top].filter((one) => one !== undefined);

test("a trace has the sizes of shared layers, and as other bytes what its images do not explain", async () => {
  const directory = scratch();
  const { store } = await write(directory);
  const roles = ["imagefs"] as const;
  const places = { roles, path: "/images", mountpoint: "/", device: "8:1" };
  const disk = { capacityBytes: 10n * GIB, availableBytes: 4n * GIB, inodes: 0n, inodesFree: 0n };
  const limits = { highPercent: null, lowPercent: null, freedBytes: 0n };
  store.record({ kind: "sample", row: { at: now, ...places, ...disk, ...limits } });
  await store.close();
  using file = new StateFile({ directory, now: () => now });
  const images = [
    { image: imageId("a"), names: ["base:1"], sizeBytes: `${GIB}`, chain: chain.slice(0, 1) },
    { image: imageId("b"), names: ["app:1"], sizeBytes: `${3n * GIB}`, chain },
    { image: imageId("c"), names: [], sizeBytes: `${GIB}`, chain: null },
  ];
  const detection = { atMs: 5, precisionMs: 1, watchedMs: 5, keys: ["a", "b"], isComplete: true };
  file.handle({ kind: "trace", images, detection }, () => undefined);
  // The third image, which has no layers, is not there; the disk has 6 GiB used.
  expect(recordedTrace(contextOf(directory))).toMatchSnapshot();
});

test("a state directory without a trace has none, and says so", () => {
  let said = "";
  const context = { ...contextOf(scratch()), note: (text: string) => void (said += text) };
  expect(recordedTrace(context)).toBeNull();
  expect(said).toContain("crigc run records one");
});
