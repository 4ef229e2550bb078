import { expect, test } from "bun:test";
import { join } from "node:path";

import { forgotten, kubeletMemory } from "../../src/agent/kubelet-memory.ts";
import { openState } from "../../src/agent/node.ts";
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { podUid } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger, type PodRecord } from "../../src/model/ledger.ts";
import { type Duration, hours, minutes, plus, seconds, watched } from "../../src/model/time.ts";
import { openStoreReader } from "../../src/store/open.ts";
import { aLedger, anImage, aRecord, NOW } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";

const KEEP = "/etc/crigc/keep.d";

function configOf(stateDir: string, ...flags: readonly ("--compat" | "--dry-run")[]): Config {
  const texts = [
    { name: "stateDir", written: "--state-dir", text: stateDir },
    ...(flags.includes("--compat")
      ? [{ name: "compat", written: "--compat", text: "kubelet" } as const]
      : []),
    ...(flags.includes("--dry-run")
      ? [{ name: "dryRun", written: "--dry-run", text: "true" } as const]
      : []),
  ] as const;
  return loadConfig({ flags: texts, env: {}, reader: { file: () => null, names: () => null } });
}

const open = (config: Config) =>
  openState(
    config,
    {
      program: [process.execPath, join(import.meta.dir, "../../src/main.ts")],
      pid: process.pid,
      userId: process.getuid?.() ?? 0,
    },
    () => undefined,
  );

function onDisk(directory: string) {
  const reader = openStoreReader({ directory, notify: () => undefined });
  const ledger = reader.ledger();
  reader[Symbol.dispose]();
  return ledger;
}

/** A state directory in which our own agent has left its memory. */
async function remembered(): Promise<string> {
  const directory = scratch();
  const { memory, recorder } = await open(configOf(directory));
  const images = new Map([[anImage("a").id, aRecord({ ...NAMES, lastUsedWatched: watched(5n) })]]);
  const pods = new Map([[podUid("uid-dead"), dead(hours(20))]]);
  memory.replace(aLedger({ images, pods, keepDirectories: [KEEP] }));
  await recorder?.close();
  return directory;
}

const NAMES = { names: "r.example/a:2", earlierNames: ["r.example/a:1"] };
const { images: _, ...restOfEmpty } = emptyLedger;

const dead = (since: bigint | null): PodRecord => ({
  absentSinceWatched: null,
  deadSinceWatched: since === null ? null : watched(since),
  origin: "api",
});

for (const flags of [["--compat"], ["--compat", "--dry-run"]] as const)
  test(`with ${flags.join(" and ")} only pods, names of images and the directories of keep rules are remembered`, async () => {
    const { memory, recorder } = await open(configOf(await remembered(), ...flags));
    const { images, ...rest } = memory.current();
    const { names, earlierNames } = aRecord(NAMES);
    // As if first seen by the first look of this process.
    expect([...images]).toMatchObject([
      [anImage("a").id, { names, earlierNames, firstSeenWatched: 0n, lastUsedWatched: null }],
    ]);
    expect(rest).toEqual({
      ...restOfEmpty,
      keepDirectories: [KEEP],
      // By the clock of this process, which begins at 0; a gap counts as twice the detection period.
      pods: new Map([[podUid("uid-dead"), dead(0n - minutes(10))]]),
    });
    await recorder?.close();
  });

test.each([1, 10])(
  "with compat kubelet a pod that another process missed %d s ago has been missing for as long",
  (ago) => {
    const ledger = aLedger({
      ...clocksAt(seconds(100)),
      watched: watched(hours(30)),
      pods: new Map([[podUid("uid-dead"), dead(hours(20))]]),
    });
    const start = { clocks: clocksAt(seconds(100 + ago)), limits };
    const { pods, watched: begin } = forgotten(ledger, start);
    expect(begin - (pods.get(podUid("uid-dead"))?.deadSinceWatched ?? 0n)).toBe(seconds(ago));
  },
);

test("with compat kubelet a boot that only such a process saw starts the grace period of the next one that has any", () => {
  let saved = aLedger({ ...clocksAt(seconds(100)), watched: watched(hours(30)), bootId: "old" });
  const clocks = clocksAt(seconds(1));
  const recorder = { ledger: () => saved, saveLedger: (next: Ledger) => void (saved = next) };
  const memory = kubeletMemory(recorder, { clocks, limits });
  memory.replace({ ...memory.current(), ...clocks, observedAt: clocks.wall, pods: new Map() });
  expect(saved).toMatchObject({
    bootId: clocks.bootId,
    observedAt: clocks.wall,
    watched: watched(hours(30)),
    graceUntil: watched(hours(30) + limits.bootGrace),
    graceReason: "boot",
  });
});

const limits = { bootGrace: minutes(10), detectionPeriod: minutes(5) };

/** Of one boot, at so much after its start. */
const clocksAt = (uptime: Duration) => ({
  observedAt: plus(NOW, uptime),
  wall: plus(NOW, uptime),
  uptime,
  bootId: "0d7c5f4e-0000-4000-8000-000000000001",
});

test("with compat kubelet pods are written to disk by its clock, which such a process does not move", async () => {
  const directory = await remembered();
  const before = onDisk(directory);
  const { memory, recorder } = await open(configOf(directory, "--compat"));
  const pods = (...since: readonly (bigint | null)[]) =>
    new Map(
      since.map((at, index) => [
        podUid(["uid-dead", "uid-late", "uid-lives"][index] ?? ""),
        dead(at),
      ]),
    );
  const { bootId, observedAt, uptime } = before;
  memory.replace({
    ...memory.current(),
    bootId,
    observedAt,
    uptime,
    pods: pods(0n, minutes(5), null),
    watched: watched(hours(9)),
  });
  await recorder?.close();
  expect(onDisk(directory)).toEqual({
    ...before,
    pods: pods(hours(20), before.watched, null),
  });
});

test("with compat kubelet only pods and the directories of keep rules are written to disk, and earlier records are kept", async () => {
  const directory = await remembered();
  const before = onDisk(directory);
  const { memory, recorder } = await open(configOf(directory, "--compat"));
  const images = new Map([
    [anImage("a").id, aRecord({ ...NAMES, firstSeenAt: NOW })],
    [anImage("new").id, aRecord()],
  ]);
  const { pods } = memory.current();
  memory.replace(aLedger({ images, pods, keepDirectories: [KEEP, "/srv/keep"] }));
  expect(memory.current().keepDirectories).toEqual([KEEP, "/srv/keep"]);
  await recorder?.close();
  expect(onDisk(directory)).toEqual({ ...before, keepDirectories: [KEEP, "/srv/keep"] });
});

test("with compat kubelet an image that is gone is dropped from the disk, too", async () => {
  const directory = await remembered();
  const { memory, recorder } = await open(configOf(directory, "--compat"));
  memory.replace(aLedger({ images: new Map() }));
  await recorder?.close();
  expect(onDisk(directory).images.size).toBe(0);
});

test("with compat kubelet an image that has other names is new on the disk, too, but for what it was called", async () => {
  const directory = await remembered();
  const { id } = anImage("a");
  const change = { names: "r.example/a:3", earlierNames: ["r.example/a:2", "r.example/a:1"] };
  for (let pass = 0; pass < 2; pass += 1) {
    const { memory, recorder } = await open(configOf(directory, "--compat"));
    memory.replace(aLedger({ images: new Map([[id, aRecord(change)]]) }));
    await recorder?.close();
    const record = onDisk(directory).images.get(id);
    expect(record?.names).not.toBe(change.names);
    expect(record?.earlierNames).toEqual([change.names, ...change.earlierNames]);
  }
});
