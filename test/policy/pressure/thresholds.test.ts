// Disk pressure is judged as the kubelet judges it, and what may be reclaimed follows the topology that is there now.
import { describe, expect, test } from "bun:test";

import type { Amount, Signal, Threshold } from "../../../src/model/limits.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { duration, minutes, seconds } from "../../../src/model/time.ts";
import {
  evictionMarks,
  filesystemsOf,
  judgePressure,
  metTargets,
  noPressure,
  type PressureState,
  reclaimFor,
  topologyOf,
} from "../../../src/policy/pressure/thresholds.ts";
import { aFilesystem, GIB } from "../../support/build/values.ts";

const quantity = (value: bigint): Amount => ({ kind: "quantity", value });
const fraction = (value: number): Amount => ({ kind: "fraction", value });

const aThreshold = (
  signal: Signal,
  amount: Amount,
  change: Partial<Threshold> = {},
): Threshold => ({
  signal,
  amount,
  grace: duration(0n),
  minimumReclaim: null,
  ...change,
});

const judge = (
  thresholds: readonly Threshold[],
  filesystem: Partial<Filesystem>,
  change: { state?: PressureState; uptime?: bigint } = {},
) =>
  judgePressure({
    limits: { thresholds, transitionPeriod: minutes(5) },
    filesystems: [aFilesystem({ capacityBytes: 16n * GIB, ...filesystem })],
    state: change.state ?? noPressure,
    uptime: duration(change.uptime ?? 0n),
  });

test("a soft threshold has a target once it has been met for its grace period", () => {
  const soft = [aThreshold("imagefs.available", quantity(GIB), { grace: seconds(90) })];
  const at = (uptime: bigint, state = noPressure) =>
    judge(soft, { availableBytes: 0n }, { uptime, state });
  const first = at(seconds(10));
  expect(first).toMatchObject({ due: [], condition: true, targets: [] });
  const soon = at(seconds(99), first.state);
  expect(soon.due).toEqual([]);
  const late = at(seconds(100), soon.state);
  expect(late.targets).toMatchObject([{ kind: "available-bytes", wantedBytes: GIB }]);
});

test("a target includes what root's reserve lacks", () => {
  const full = { availableBytes: 0n, freeBytes: GIB, reservedBytes: 5n * GIB };
  const { targets } = judge([aThreshold("imagefs.available", quantity(2n * GIB))], full);
  expect(targets).toMatchObject([{ availableBytes: 2n * GIB, wantedBytes: 6n * GIB }]);
});

test("a threshold that is due ends with its minimum reclaim, one that is not at its limit", () => {
  const graced = (grace: bigint) =>
    aThreshold("imagefs.available", quantity(GIB), {
      grace: duration(grace),
      minimumReclaim: quantity(2n * GIB),
    });
  const metAt = (grace: bigint, availableBytes: bigint) => {
    const { state } = judge([graced(grace)], { availableBytes: 0n });
    return judge([graced(grace)], { availableBytes }, { state }).met.length;
  };
  expect([GIB, 3n * GIB - 1n, 3n * GIB].map((it) => metAt(0n, it))).toEqual([1, 1, 0]);
  expect([GIB - 1n, GIB].map((it) => metAt(minutes(1), it))).toEqual([1, 0]);
});

test("a filesystem without an inode limit has no inode pressure", () => {
  const thresholds = [aThreshold("imagefs.inodesFree", fraction(0.05))];
  const counted = aThreshold("imagefs.inodesFree", quantity(10n));
  expect(judge([...thresholds, counted], { inodes: 0n, inodesFree: 0n }).met).toEqual([]);
  expect(judge(thresholds, { inodes: 1000n, inodesFree: 10n }).targets).toMatchObject([
    { kind: "free-inodes", wantedInodes: 40n },
  ]);
});

const image = aFilesystem({ roles: ["imagefs", "containerfs"], device: "8:2", path: "/images" });
const node = aFilesystem({ roles: ["nodefs"], device: "8:1", path: "/node" });

describe("the table of reclaim", () => {
  test("the topology depends on devices only", () => {
    expect(topologyOf([aFilesystem()])).toBe("single");
    expect(topologyOf([node])).toBe("single");
    expect(topologyOf([{ ...image, roles: ["imagefs"] }])).toBe("single");
    expect(topologyOf([image, node])).toBe("dedicated");
    expect(
      topologyOf([
        { ...image, roles: ["imagefs"] },
        { ...node, roles: ["nodefs", "containerfs"] },
      ]),
    ).toBe("split");
  });

  test("writable layers are on the image filesystem if the runtime reports none of their own", () => {
    const alone = [{ ...image, roles: ["imagefs" as const] }, node];
    expect(topologyOf(alone)).toBe("dedicated");
    expect(filesystemsOf("containerfs", alone).map(({ path }) => path)).toEqual(["/images"]);
    expect(filesystemsOf("containerfs", [node])).toEqual([]);
    const third = { ...node, roles: ["containerfs" as const], device: "8:3", path: "/layers" };
    expect(filesystemsOf("containerfs", [...alone, third])).toEqual([third]);
    expect(filesystemsOf("nodefs", [image])).toEqual([]);
  });

  test("every image filesystem counts", () => {
    const second = { ...image, device: "8:3", path: "/second", availableBytes: 0n };
    const { due } = judgePressure({
      limits: {
        thresholds: [aThreshold("imagefs.available", fraction(0.05))],
        transitionPeriod: duration(0n),
      },
      filesystems: [image, node, { ...second, roles: ["imagefs"] }],
      state: noPressure,
      uptime: duration(0n),
    });
    expect(due.map(({ filesystem }) => filesystem.path)).toEqual(["/second"]);
  });

  test.each([
    ["single", "nodefs", "containers images logs"],
    ["single", "imagefs", "containers images logs"],
    ["dedicated", "nodefs", "logs"],
    ["dedicated", "imagefs", "containers images"],
    ["dedicated", "containerfs", "containers images"],
    ["split", "nodefs", "containers logs"],
    ["split", "imagefs", "images"],
    ["split", "containerfs", "containers"],
  ] as const)("with disks that are %s, %s lets go of %s", (topology, role, expected) => {
    const reclaim = reclaimFor(`${role}.available`, topology);
    const named = Object.entries(reclaim).flatMap(([what, may]) => (may ? [what] : []));
    expect(named.join(" ")).toBe(expected);
  });

  test("orphaned logs are deleted only for the node's own filesystem if images and layers are on different disks", () => {
    const logs = (["nodefs", "imagefs", "containerfs"] as const).map(
      (role) => reclaimFor(`${role}.available`, "split").logs,
    );
    expect(logs).toEqual([true, false, false]);
  });
});

test("several thresholds that are due reclaim what any of them may, and only those of images have a target", () => {
  const reclaim = (...signals: readonly Signal[]) => {
    const verdict = judgePressure({
      limits: {
        thresholds: signals.map((signal) => aThreshold(signal, quantity(GIB))),
        transitionPeriod: duration(0n),
      },
      filesystems: [image, node].map((one) => ({ ...one, availableBytes: 0n })),
      state: noPressure,
      uptime: duration(0n),
    });
    expect(verdict.condition).toBe(verdict.met.length > 0);
    return [verdict.reclaim, verdict.targets.length];
  };
  const logs = { containers: false, images: false, logs: true };
  expect(reclaim("nodefs.available")).toEqual([logs, 0]);
  // Thresholds of writable layers are never the user's own.
  expect(reclaim("containerfs.available")).toEqual([{ ...logs, logs: false }, 0]);
  expect(reclaim("nodefs.available", "imagefs.available")).toEqual([
    { containers: true, images: true, logs: true },
    // The signal of the writable layers is a copy of that of the images.
    2,
  ]);
});

describe("a single pass", () => {
  const hard = aThreshold("imagefs.available", quantity(20n * GIB));
  const soft = aThreshold("nodefs.available", quantity(30n * GIB), { grace: minutes(1) });
  const filesystem = aFilesystem({ capacityBytes: 100n * GIB, availableBytes: 18n * GIB });
  const facts = {
    limits: { thresholds: [hard, soft], transitionPeriod: minutes(5) },
    filesystems: [filesystem],
  };
  const signals = (targets: ReturnType<typeof metTargets>) =>
    targets.flatMap(({ trigger }) => (trigger.kind === "pressure" ? [trigger.signal] : []));

  test("a single pass counts soft thresholds at once", () => {
    expect(new Set(signals(metTargets(facts)))).toEqual(
      new Set(["imagefs.available", "nodefs.available"]),
    );
  });

  test("shows at which usage each eviction threshold is met, and whether it is", () => {
    expect(evictionMarks(filesystem, facts)).toEqual([
      { signal: "imagefs.available", limitBytes: 20n * GIB, usedPercent: 80, met: true },
      { signal: "nodefs.available", limitBytes: 30n * GIB, usedPercent: 70, met: true },
    ]);
    const atLimit = evictionMarks({ ...filesystem, availableBytes: 20n * GIB }, facts);
    expect(atLimit.map(({ met }) => met)).toEqual([false, true]);
    expect(evictionMarks({ ...filesystem, capacityBytes: 0n }, facts)).toEqual([]);
    const inodes = { ...hard, signal: "imagefs.inodesFree" as const };
    const ofInodes = { thresholds: [inodes], transitionPeriod: minutes(5) };
    expect(evictionMarks(filesystem, { ...facts, limits: ofInodes })).toEqual([]);
  });
});
