// The ledger of a process with `compat: kubelet`: what it remembers at its start, and what it leaves on disk.

import { expect, test } from "bun:test";
import { join } from "node:path";

import { kubeletMemory, newProcessLedger, openState } from "../../src/agent/ledger.ts";
import { loadConfig } from "../../src/config/load.ts";
import { podUid } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger, type PodRecord } from "../../src/model/ledger.ts";
import { type Duration, hours, minutes, plus, seconds, watched } from "../../src/model/time.ts";
import { aLedger, anImage, aRecord, NOW } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";

const KEEP = "/etc/crigc/keep.d";
const NAMES = { names: "r.example/a:2", earlierNames: ["r.example/a:1"] };
const { id } = anImage("a");
const limits = { bootGrace: minutes(10), detectionPeriod: minutes(5) };

const dead = (since: bigint | null): PodRecord => ({
  absentSinceWatched: null,
  deadSinceWatched: since === null ? null : watched(since),
  origin: "api",
});

/** The clocks of one boot, `uptime` after its start. */
const clocksAt = (uptime: Duration) => ({
  observedAt: plus(NOW, uptime),
  wall: plus(NOW, uptime),
  uptime,
  bootId: "0d7c5f4e-0000-4000-8000-000000000001",
});

/** A ledger that an earlier process left on disk. */
const known = aLedger({
  ...clocksAt(seconds(100)),
  watched: watched(hours(30)),
  images: new Map([[id, aRecord({ ...NAMES, lastUsedWatched: watched(5n) })]]),
  pods: new Map([[podUid("uid-dead"), dead(hours(20))]]),
  keepDirectories: [KEEP],
});

/** What is on disk after a process that starts a second later has changed its ledger. */
function leftOnDisk(change: (own: Ledger) => Partial<Ledger>, before: Ledger = known): Ledger {
  let saved = before;
  const recorder = { ledger: () => saved, saveLedger: (next: Ledger) => void (saved = next) };
  const memory = kubeletMemory(recorder, { clocks: clocksAt(seconds(101)), limits });
  const { bootId, observedAt, uptime } = before;
  const own = memory.current();
  memory.replace({ ...own, bootId, observedAt, uptime, ...change(own) });
  return saved;
}

test.each([["false"], ["true"]])(
  "with compat kubelet and --dry-run %s a process remembers only pods, names of images and keep directories",
  async (dryRun) => {
    const stateDir = scratch();
    const open = async (...flags: readonly (readonly ["compat" | "dryRun", string])[]) => {
      const texts = [["stateDir", stateDir] as const, ...flags].map(([name, text]) => ({
        name,
        text,
        written: "-",
      }));
      const reader = { file: () => null, names: () => null };
      const program = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
      return openState(
        loadConfig({ flags: texts, env: {}, reader }),
        { program, pid: process.pid, userId: process.getuid?.() ?? 0 },
        () => undefined,
      );
    };
    const first = await open();
    const { images, pods, keepDirectories } = known;
    first.memory.replace(aLedger({ images, pods, keepDirectories }));
    await first.recorder?.close();
    const { memory, recorder } = await open(["compat", "kubelet"], ["dryRun", dryRun]);
    const { images: remembered, ...rest } = memory.current();
    const { names, earlierNames } = aRecord(NAMES);
    // As if first seen by the first look of this process.
    expect([...remembered]).toMatchObject([
      [id, { names, earlierNames, firstSeenWatched: 0n, lastUsedWatched: null }],
    ]);
    const { images: _, ...none } = emptyLedger;
    expect(rest).toEqual({
      ...none,
      keepDirectories: [KEEP],
      // By the clock of this process, which begins at 0; a gap counts as twice the detection period.
      pods: new Map([[podUid("uid-dead"), dead(0n - minutes(10))]]),
    });
    await recorder?.close();
  },
);

test.each([1, 10])(
  "with compat kubelet a pod that another process missed %d s ago has been missing for as long",
  (ago) => {
    const start = { clocks: clocksAt(seconds(100 + ago)), limits };
    const { pods, watched: begin } = newProcessLedger(known, start);
    expect(begin - (pods.get(podUid("uid-dead"))?.deadSinceWatched ?? 0n)).toBe(seconds(ago));
  },
);

test("with compat kubelet a boot that only such a process saw starts the grace period of the next one that has any", () => {
  const { bootId, uptime, observedAt } = clocksAt(seconds(1));
  const saved = leftOnDisk(() => ({ bootId, uptime, observedAt, pods: new Map() }), {
    ...known,
    bootId: "old",
  });
  expect(saved).toMatchObject({
    bootId,
    observedAt,
    watched: watched(hours(30)),
    graceUntil: watched(hours(30) + limits.bootGrace),
    graceReason: "boot",
  });
});

test("with compat kubelet pods are on disk by its clock, which such a process does not move", () => {
  const pods = (...since: readonly (bigint | null)[]) =>
    new Map(
      since.map((at, index) => [podUid(index === 0 ? "uid-dead" : `uid-${index}`), dead(at)]),
    );
  const change = { pods: pods(0n, minutes(5), null), watched: watched(hours(9)) };
  expect(leftOnDisk(() => change)).toEqual({
    ...known,
    pods: pods(hours(20), known.watched, null),
  });
});

test("with compat kubelet only pods and keep directories are written to disk, and earlier records of images are kept", () => {
  const images = new Map([
    [id, aRecord({ ...NAMES, firstSeenAt: NOW })],
    [anImage("new").id, aRecord()],
  ]);
  const keepDirectories = [KEEP, "/srv/keep"];
  const saved = leftOnDisk(({ pods }) => ({ images, pods, keepDirectories }));
  expect(saved).toEqual({ ...known, keepDirectories });
});

test("with compat kubelet passes in a row that containers being created held up count across processes", () => {
  const saved = leftOnDisk(() => ({ heldUpPasses: 1 }));
  expect(saved).toEqual({ ...known, heldUpPasses: 1 });
  const next = newProcessLedger(saved, { clocks: clocksAt(seconds(102)), limits });
  expect(next.heldUpPasses).toBe(1);
});

test("with compat kubelet a vanished image is dropped from the disk", () => {
  expect(leftOnDisk(() => ({ images: new Map() })).images.size).toBe(0);
});

test("with compat kubelet a renamed image is new on disk, with its earlier names", () => {
  const change = { names: "r.example/a:3", earlierNames: ["r.example/a:2", "r.example/a:1"] };
  const rename = (before?: Ledger) =>
    leftOnDisk(() => ({ images: new Map([[id, aRecord(change)]]) }), before);
  const once = rename();
  for (const saved of [once, rename(once)]) {
    const record = saved.images.get(id);
    expect(record?.names).not.toBe(change.names);
    expect(record?.earlierNames).toEqual([change.names, ...change.earlierNames]);
  }
});

test("with compat kubelet what is settled of an image is written to disk, but not over what is safer there", () => {
  const settled = (pull: "no-record" | "pulled") => new Map([[id, aRecord({ ...NAMES, pull })]]);
  for (const own of ["no-record", "pulled"] as const) {
    const change = () => ({ images: settled(own) });
    const kept = (before: Ledger) => leftOnDisk(change, before).images.get(id)?.pull;
    expect(kept(known)).toBe(own);
    expect(kept({ ...known, images: settled("no-record") })).toBe("no-record");
    expect(kept({ ...known, images: settled("pulled") })).toBe(own);
  }
});
