// What is an event and what is not: news is told, and what was told is not told again until it changes.

import { describe, expect, test } from "bun:test";

import { Announcer } from "../../src/gc/announcer.ts";
import type { Compat } from "../../src/model/limits.ts";
import type { Event, EventReason, LoopName } from "../../src/model/pass.ts";
import type { Futility, ImagePlan } from "../../src/model/plan.ts";
import type { Filesystem } from "../../src/model/snapshot.ts";
import { duration, instant, minutes, seconds } from "../../src/model/time.ts";
import {
  judgePressure,
  noPressure,
  type PressureState,
} from "../../src/policy/pressure/thresholds.ts";
import { aFilesystem, anImagePlan, GIB, NOW } from "../support/build/values.ts";

function listener() {
  const events: Event[] = [];
  const said: string[] = [];
  const announcer = new Announcer({
    event: (event) => void events.push(event),
    say: (_, message) => void said.push(message),
    failed: (topic, message) => void said.push(`${topic}: ${message}`),
    succeeded: (topic, what) => void said.push(`${topic}: ${what} succeeds`),
  });
  return { announcer, events, said };
}

/** Each one a quarter of an hour after the last. */
let told = 0;
const anEvent = (reason: EventReason, message = "as it is"): Event => ({
  reason,
  message,
  at: instant(NOW + minutes((told += 15))),
  passId: null,
});

const futilityAt = (availableBytes: bigint, change: Partial<Futility> = {}): Futility => ({
  filesystem: "/var/lib/containerd",
  boundBytes: GIB,
  neededBytes: 10n * GIB,
  futile: true,
  breakdown: {
    capacityBytes: 100n * GIB,
    availableBytes,
    imagesBytes: GIB,
    imagesAtLeastBytes: 0n,
    containersBytes: null,
    logsBytes: null,
    otherBytes: 90n * GIB,
  },
  ...change,
});

function planAt(availableBytes: bigint, change: Partial<ImagePlan> = {}): ImagePlan {
  const usage = {
    filesystem: aFilesystem({ availableBytes }),
    usedPercent: 0,
    inodesUsedPercent: null,
    highPercent: 85,
    lowPercent: 80,
  };
  return anImagePlan([], { futility: [futilityAt(availableBytes)], usage: [usage], ...change });
}

describe("a disk that images cannot help", () => {
  const futile = () => [anEvent("ImageGCFutile")];

  test("is reported again when the disk has changed by two percent, or the bound has changed", () => {
    const { announcer, events } = listener();
    announcer.passed(futile(), planAt(5n * GIB));
    announcer.passed(futile(), planAt(3n * GIB));
    expect(events).toHaveLength(2);
    const bound = futilityAt(3n * GIB, { boundBytes: 4n * GIB });
    announcer.passed(futile(), planAt(3n * GIB, { futility: [bound] }));
    expect(events).toHaveLength(3);
  });

  test("is reported again after it was in another state for a while", () => {
    const { announcer, events } = listener();
    announcer.passed(futile(), planAt(3n * GIB));
    announcer.passed([], planAt(50n * GIB, { futility: [] }));
    announcer.passed(futile(), planAt(3n * GIB));
    expect(events).toHaveLength(2);
  });

  test("that keeps changing is reported every ten minutes at most", () => {
    const { announcer, events } = listener();
    for (let second = 0; second < 3_600; second += 10) {
      const event = { ...anEvent("ImageGCFutile"), at: instant(NOW + seconds(second)) };
      announcer.passed([event], planAt(second % 20 === 0 ? 3n * GIB : 8n * GIB));
    }
    expect(events).toHaveLength(6);
  });

  test("is reported separately for inodes and bytes", () => {
    const { announcer, events } = listener();
    announcer.passed(futile(), planAt(3n * GIB));
    const inodes = { bound: 1n, needed: 100n, free: 900_000n, capacity: 1_000_000n };
    const short = planAt(3n * GIB, { futility: [futilityAt(3n * GIB, { inodes })] });
    announcer.passed(futile(), short);
    announcer.passed(futile(), short);
    expect(events).toHaveLength(2);
  });
});

test("a budget that cannot be met is reported once, and again after it was met", () => {
  const { announcer, events } = listener();
  const over = planAt(50n * GIB, { futility: [], triggers: [{ kind: "budget" }] });
  const short = () => [anEvent("FreeDiskSpaceFailed")];
  announcer.passed(short(), over);
  announcer.passed(short(), over);
  expect(events).toHaveLength(1);
  announcer.passed([], planAt(50n * GIB, { futility: [], triggers: [] }));
  announcer.passed(short(), over);
  expect(events).toHaveLength(2);
});

test("invalid figures of two filesystems are reported once each, and of one again after they were valid", () => {
  const { announcer, events } = listener();
  const [one, other] = ["/a", "/b"].map((path) => anEvent("InvalidDiskCapacity", path));
  if (one === undefined || other === undefined) throw new Error("two events are needed");
  for (let pass = 0; pass < 3; pass += 1) announcer.passed([one, other], planAt(0n));
  expect(events).toEqual([one, other]);
  announcer.passed([other], planAt(0n));
  announcer.passed([one, other], planAt(0n));
  expect(events).toEqual([one, other, one]);
});

test("each ghost is reported once, with bounded memory", () => {
  const { announcer, events } = listener();
  const plan = planAt(50n * GIB);
  for (let round = 0; round < 2; round += 1)
    announcer.passed([anEvent("GhostImage", "a"), anEvent("GhostImage", "b")], plan);
  expect(events).toHaveLength(2);
  for (let at = 0; at < 1_000; at += 1) announcer.passed([anEvent("GhostImage", `${at}`)], plan);
  announcer.passed([anEvent("GhostImage", "a")], plan);
  expect(events).toHaveLength(1_003);
});

describe("failing loops", () => {
  function failing(name: LoopName, times: number) {
    const heard = listener();
    const ended = { error: "the runtime is away", at: NOW };
    for (let failures = 1; failures <= times; failures += 1)
      heard.announcer.loopEnded(name, { ...ended, failures });
    return heard;
  }

  test("only log the first image GC failure in a row, and raise an event for the second", () => {
    expect(failing("image-gc", 1).events).toEqual([]);
    expect(failing("image-gc", 1).said).toEqual([
      "loop/image-gc: image-gc failed: the runtime is away",
    ]);
    expect(failing("image-gc", 2).events.map(({ reason }) => reason)).toEqual(["ImageGCFailed"]);
  });

  test("raise an event for the first container GC failure, as the kubelet does", () => {
    expect(failing("container-gc", 1).events.map(({ reason }) => reason)).toEqual([
      "ContainerGCFailed",
    ]);
  });

  test("raise an event for pressure that cannot be ended from the second time on", () => {
    expect(failing("pressure", 1).events).toEqual([]);
    expect(failing("pressure", 2).events).toMatchObject([
      {
        reason: "ImageGCFailed",
        message: "Cannot relieve disk pressure: the runtime is away",
      },
    ]);
  });

  test("raise a dozen events for a day of failures every minute", () => {
    expect(failing("container-gc", 1_440).events).toHaveLength(11);
  });

  test("log success after failure, and count the next failure as a first one", () => {
    const { announcer, said, events } = failing("image-gc", 3);
    announcer.loopEnded("image-gc", { error: null, failures: 0, at: NOW });
    expect(said.at(-1)).toBe("loop/image-gc: The image-gc loop succeeds");
    announcer.loopEnded("image-gc", { error: "again", failures: 1, at: NOW });
    expect(events).toHaveLength(2);
  });
});

describe("pressure", () => {
  function watching(compat: Compat = "none") {
    const heard = listener();
    let state: PressureState = noPressure;
    const at = (uptimeSeconds: number, filesystem: Partial<Filesystem>): void => {
      const verdict = judgePressure({
        limits: {
          thresholds: [
            {
              signal: "imagefs.available",
              amount: { kind: "quantity", value: 15n * GIB },
              grace: duration(0n),
              minimumReclaim: null,
            },
          ],
          transitionPeriod: minutes(5),
        },
        compat,
        filesystems: [aFilesystem({ roles: ["imagefs"], ...filesystem })],
        state,
        uptime: seconds(uptimeSeconds),
      });
      state = verdict.state;
      heard.announcer.pressure(verdict, NOW, compat);
    };
    return { ...heard, at };
  }

  test("is an event when it begins, with the disk and its figures", () => {
    const { at, events } = watching();
    at(0, { availableBytes: 14n * GIB, mountpoint: "/data" });
    at(10, { availableBytes: 13n * GIB, mountpoint: "/data" });
    expect(events.map(({ message }) => message)).toEqual([
      "Disk pressure: imagefs.available at /data is 14.0 GiB, below its threshold of 15.0 GiB",
    ]);
  });

  test("is an event with each attempt for the kubelet, and of one threshold only", () => {
    const { at, events } = watching("kubelet");
    for (const uptime of [0, 10, 20]) at(uptime, { availableBytes: 14n * GIB });
    expect(events.map(({ reason }) => reason)).toEqual(Array(3).fill("EvictionThresholdMet"));
    at(30, { availableBytes: 16n * GIB });
    expect(events).toHaveLength(3);
  });

  test("that swings around the threshold is one event and one end", () => {
    const { at, events, said } = watching();
    for (let check = 0; check < 60; check += 1)
      at(check * 10, { availableBytes: check % 2 === 0 ? 14n * GIB : 16n * GIB });
    expect(events).toHaveLength(1);
    expect(said).toEqual([]);
    at(10_000, { availableBytes: 16n * GIB });
    expect(said).toEqual([expect.stringContaining("disk pressure is over")]);
    at(10_010, { availableBytes: 14n * GIB });
    expect(events).toHaveLength(2);
  });

  test("that never began is not said to be over", () => {
    const { at, said } = watching();
    at(0, { availableBytes: 16n * GIB });
    expect(said).toEqual([]);
  });
});

test("a keep pattern that matches nothing is logged once until it matches", () => {
  const { announcer, said } = listener();
  const lacks = (...patterns: readonly string[]) => announcer.unmatchedKeepRules(patterns);
  lacks("a:1");
  lacks("a:1");
  lacks("a:1", "b:1");
  lacks();
  lacks("a:1");
  const line = (name: string) => `1 keep rule matches no image on this node: ${name}`;
  expect(said).toEqual([line("a:1"), line("b:1"), line("a:1")]);
});
