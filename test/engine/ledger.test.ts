// From when images count with `compat: kubelet`: like a kubelet, a process forgets what was seen before it.

import { expect, test } from "bun:test";

import { countedMemory } from "../../src/engine/ledger.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import {
  type Duration,
  duration,
  hours,
  minutes,
  plus,
  seconds,
  watched,
} from "../../src/model/time.ts";
import { aLedger, defaultLimits, NOW, withLimits } from "../support/build/values.ts";

const limits = withLimits({ compat: "kubelet" });
const after = (span: Duration): Ledger =>
  aLedger({ watched: watched(hours(30) + span), observedAt: plus(NOW, span), uptime: span });
const first = { watched: watched(hours(30)), at: NOW };

test("without compat kubelet images count as the ledger says", () => {
  const memory = volatileMemory(after(seconds(0)));
  expect(countedMemory(memory, defaultLimits)).toBe(memory);
});

test("with compat kubelet images count from the first look of the process, and the ledger is on disk as ever", () => {
  const disk = volatileMemory(aLedger({ watched: watched(5n) }));
  const memory = countedMemory(disk, limits);
  for (const minute of [0, 5, 10, 20]) {
    const seen = after(minutes(minute));
    memory.replace(seen);
    expect([memory.agesFrom?.(seen), memory.current(), disk.current()]).toEqual([
      first,
      seen,
      seen,
    ]);
  }
});

test("with compat kubelet a plan, which remembers nothing, counts from its own look", () => {
  const memory = countedMemory(volatileMemory(emptyLedger), limits);
  expect(memory.agesFrom?.(after(seconds(0)))).toEqual(first);
});

test.each([hours(30), minutes(3)])(
  "with compat kubelet images of a ledger that the disk gives late count from then: %p",
  (age) => {
    const memory = countedMemory(volatileMemory(emptyLedger), limits);
    memory.replace(aLedger({ watched: watched(0n), observedAt: NOW, uptime: hours(9) }));
    const at = plus(NOW, minutes(5));
    const late = {
      watched: watched(age + minutes(5)),
      observedAt: at,
      uptime: duration(hours(9) + minutes(5)),
    };
    expect(memory.agesFrom?.(aLedger(late))).toEqual({ watched: late.watched, at });
  },
);
