import { describe, expect, test } from "bun:test";

import { containerId, sandboxId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../src/model/ledger.ts";
import type { MemoryLimits } from "../../src/model/limits.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import {
  type Duration,
  duration,
  hours,
  instant,
  minutes,
  seconds,
  watched,
} from "../../src/model/time.ts";
import { usageOf } from "../../src/policy/image/usage.ts";
import {
  forgetImages,
  forgetRemoved,
  forgetUnlisted,
  type GhostAttempt,
  recallImage,
  remember,
  rememberGhost,
} from "../../src/policy/remember.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aRecord,
  aSandbox,
  aSnapshot,
  defaultLimits,
  idOf,
  NOW,
} from "../support/build/values.ts";

function next(ledger: Ledger, snapshot: Snapshot, change: Partial<MemoryLimits> = {}): Ledger {
  const limits = { ...defaultLimits.memory, ...change };
  return remember({ ledger, snapshot, usage: usageOf(snapshot), limits, pods: ledger.pods });
}

/** The node some time later, by both clocks. */
function later(span: Duration, change: Partial<Snapshot> = {}): Snapshot {
  const at = instant(NOW + span);
  return aSnapshot({
    clocks: { wall: at, uptime: (hours(48) + span) as Duration, bootId: "boot-1" },
    observedAt: instant(at + seconds(1)),
    ...change,
  });
}

function recordOf(ledger: Ledger, { id }: Image): ImageRecord {
  const found = ledger.images.get(id);
  if (found === undefined) throw new Error(`${id} has no record`);
  return found;
}

const running = aContainer("c", { imageId: idOf("app") });

describe("images", () => {
  test("an image in use that keeps its names keeps when it was first seen", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const two = next(one, later(minutes(5), { images: [anImage("app")], containers: [running] }));
    expect(two.images.get(idOf("app"))).toMatchObject({
      firstSeenAt: NOW,
      firstSeenWatched: one.watched,
      lastUsedWatched: two.watched,
      ageRestartedWatched: null,
    });
  });

  test("an unused image whose size changed is recorded with the new size", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const grown = anImage("app", { sizeBytes: anImage("app").sizeBytes + 1n });
    const two = next(one, later(minutes(5), { images: [grown] }));
    expect(two.images.get(idOf("app"))?.sizeBytes).toBe(grown.sizeBytes);
  });

  test("changed tags or digests restart the minimum age, and leave first seen and last used as they are", () => {
    const record = aRecord({
      names: "registry.example/app:v0",
      lastUsedAt: NOW,
      lastUsedWatched: watched(5n),
    });
    const before = aLedger({ images: new Map([[idOf("app"), record]]) });
    const after = next(
      before,
      aSnapshot({
        images: [anImage("app")],
        containers: [aContainer("c", { imageId: idOf("x") })],
      }),
    );
    expect(recordOf(after, anImage("app"))).toEqual({
      ...record,
      names: "registry.example/app:v1",
      earlierNames: ["registry.example/app:v0"],
      ageRestartedWatched: after.watched,
      sizeBytes: anImage("app").sizeBytes,
    });
  });

  test("a restart of the minimum age begins no earlier than an hour after the previous one", () => {
    let ledger = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const restarts: unknown[] = [];
    for (let at = 5; at <= 90; at += 5) {
      const image = anImage("app", { repoTags: [`a/x:${at}`] });
      ledger = next({ ...ledger, ageRestartDue: true }, later(minutes(at), { images: [image] }));
      restarts.push(ledger.ageRestartedWatched, recordOf(ledger, image).ageRestartedWatched);
      expect(ledger.ageRestartDue).toBeFalse();
    }
    const [first] = restarts;
    expect(new Set(restarts)).toEqual(new Set([first, watched(ledger.watched - minutes(25))]));
    expect(first).toBe(watched(ledger.watched - minutes(85)));
  });

  test("names that an image lost are recorded, latest first, at most 32", () => {
    const tagged = (...repoTags: readonly string[]): Image => anImage("app", { repoTags });
    let ledger = next(aLedger(), aSnapshot({ images: [tagged("a/x:0", "a/x:kept")] }));
    const at = (change: number, ...tags: readonly string[]) =>
      later(minutes(change), { images: [tagged(...tags)], containers: [running] });
    for (let change = 1; change <= 40; change += 1)
      ledger = next(ledger, at(change, `a/x:${change}`, "a/x:kept"));
    const record = recordOf(ledger, tagged());
    expect(record.earlierNames).toHaveLength(32);
    expect(record.earlierNames.slice(0, 2)).toEqual(["a/x:39", "a/x:38"]);
    const back = recordOf(next(ledger, at(41, "a/x:39")), tagged());
    expect(back.earlierNames.slice(0, 3)).toEqual(["a/x:40", "a/x:kept", "a/x:38"]);
    expect(recordOf(next(ledger, at(41, "a/x:40", "a/x:kept")), tagged())).toMatchObject({
      earlierNames: record.earlierNames,
    });
  });

  test("an image that had no names has lost none", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app", { repoTags: [] })] }));
    const two = next(one, later(minutes(5), { images: [anImage("app")] }));
    expect(recordOf(two, anImage("app")).earlierNames).toEqual([]);
  });

  test("a record ends when its image was removed", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app"), anImage("b")] }));
    expect([...forgetImages(one, [idOf("app")]).images.keys()]).toEqual([idOf("b")]);
    expect(forgetImages(one, [idOf("unknown")])).toBe(one);
  });

  test("a record ends when a complete list lacks its image", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app"), anImage("b")] }));
    expect([...forgetUnlisted(one, [anImage("b"), anImage("new")]).images]).toEqual([
      [idOf("b"), recordOf(one, anImage("b"))],
    ]);
    expect(forgetUnlisted(one, [anImage("b"), anImage("app")])).toBe(one);
  });

  test("a record is kept, with later observations, if the removal was refused", () => {
    const image = anImage("app");
    const first = next(aLedger(), aSnapshot({ images: [image] }));
    const before = recordOf(first, image);
    const forgotten = forgetImages(first, [image.id]);
    expect(recallImage(forgotten, image.id, before).images.get(image.id)).toEqual(before);

    const seen = next(forgotten, later(minutes(5), { images: [image] }));
    expect(recordOf(seen, image).firstSeenAt).toBeGreaterThan(before.firstSeenAt);
    for (const known of [before, { ...before, lastUsedAt: NOW, lastUsedWatched: watched(3n) }])
      expect(recallImage(seen, image.id, known).images.get(image.id)).toEqual(known);

    const used = { ...recordOf(seen, image), lastUsedAt: NOW, lastUsedWatched: watched(7n) };
    const inUse = { ...seen, images: new Map([[image.id, used]]) };
    expect(recallImage(inUse, image.id, before).images.get(image.id)).toEqual({
      ...before,
      lastUsedAt: NOW,
      lastUsedWatched: watched(7n),
    });

    const tagged = next(
      forgotten,
      later(minutes(5), { images: [{ ...image, repoTags: ["b:1"] }] }),
    );
    expect(recallImage(tagged, image.id, before)).toBe(tagged);
  });
});

describe("the boot grace period", () => {
  const rebooted = later(minutes(5), {
    clocks: { wall: instant(NOW + minutes(5)), uptime: minutes(1), bootId: "boot-2" },
    containers: [running],
  });

  test("begins under another boot and ends in observed time", () => {
    const one = next(aLedger(), rebooted);
    expect(one).toMatchObject({
      graceReason: "boot",
      graceUntil: watched(one.watched + minutes(5)),
    });
    const still = { ...rebooted, clocks: { ...rebooted.clocks, uptime: minutes(5) } };
    const two = next(one, still);
    expect(two.graceUntil).toBe(one.graceUntil);
    expect(next(two, { ...still, clocks: { ...still.clocks, uptime: minutes(6) } })).toMatchObject({
      graceUntil: null,
      graceReason: null,
    });
  });

  test("a jump of the wall clock does not end it", () => {
    const one = next(aLedger(), rebooted);
    const jumped = {
      ...rebooted,
      clocks: { wall: instant(NOW + hours(900)), uptime: minutes(2), bootId: "boot-2" },
    };
    expect(next(one, jumped).graceUntil).toBe(one.graceUntil);
  });

  test("begins when all containers vanished between two observations", () => {
    const one = next(aLedger({ hadContainers: true }), later(minutes(5)));
    expect(one).toMatchObject({ graceReason: "containers-vanished", hadContainers: false });
    const node = later(minutes(5), { containers: [running] });
    expect(next(aLedger(), node).hadContainers).toBeTrue();
    expect(next(aLedger({ hadContainers: false }), later(minutes(5))).graceUntil).toBeNull();
  });

  test("does not begin because of containers that we removed ourselves", () => {
    const removed = (remaining: number) =>
      forgetRemoved(aLedger(), { containers: [], sandboxes: [], remaining });
    expect(next(removed(0), later(minutes(5))).graceUntil).toBeNull();
    expect(next(removed(1), later(minutes(5))).graceReason).toBe("containers-vanished");
  });

  test("begins in a fresh ledger on a machine that is up for less than the grace, and on no other", () => {
    const lost = next(emptyLedger, rebooted);
    expect(lost).toMatchObject({
      graceReason: "boot",
      graceUntil: watched(lost.watched + minutes(5)),
    });
    const up = (uptime: bigint) => ({
      ...rebooted,
      clocks: { ...rebooted.clocks, uptime: duration(uptime) },
    });
    expect(next(emptyLedger, up(minutes(5) - 1n)).graceReason).toBe("boot");
    expect(next(emptyLedger, up(minutes(5))).graceUntil).toBeNull();
    expect(next(emptyLedger, rebooted, { compat: "kubelet" }).graceUntil).toBeNull();
  });

  test("does not begin if it is off or with compat kubelet", () => {
    expect(next(aLedger(), rebooted, { bootGrace: seconds(0) }).graceUntil).toBeNull();
    expect(next(aLedger(), rebooted, { compat: "kubelet" }).graceUntil).toBeNull();
  });
});

describe("containers, sandboxes, pods and directories", () => {
  const id = containerId("container-c");

  test("data of a container's status is kept while it is listed", () => {
    const one = next(
      aLedger(),
      aSnapshot({
        containers: [running],
        imageVolumes: new Map([[id, { kind: "known", references: ["a/b:1"] }]]),
        containerEnds: new Map([[id, NOW]]),
      }),
    );
    const ended = new Map([[id, instant(NOW + 1n)]]);
    const again = next(one, later(minutes(5), { containers: [running], containerEnds: ended }));
    expect(again.containers.get(id)?.finishedAt).toBe(instant(NOW + 1n));
    const two = next(one, later(minutes(5), { containers: [running] }));
    expect(two.containers).toEqual(new Map([[id, { imageVolumes: ["a/b:1"], finishedAt: NOW }]]));
    expect(next(two, later(minutes(10))).containers.size).toBe(0);
    const gone = { containers: [id], sandboxes: [], remaining: 0 };
    expect(forgetRemoved(two, gone).containers.size).toBe(0);
  });

  test("a sandbox's image is recorded while the sandbox is listed, even if it names none", () => {
    const sandbox = sandboxId("sandbox-s");
    const one = next(
      aLedger(),
      aSnapshot({ sandboxes: [aSandbox("s")], sandboxImages: new Map([[sandbox, ""]]) }),
    );
    const two = next(one, later(minutes(5), { sandboxes: [aSandbox("s")] }));
    expect(two.sandboxImages).toEqual(new Map([[sandbox, ""]]));
    expect(next(two, later(minutes(10))).sandboxImages.size).toBe(0);
  });
});

test("directories of keep rules that were read are remembered, sorted", () => {
  const read = (...directoriesRead: readonly string[]) =>
    aSnapshot({ keep: { rules: [], problems: [], directoriesRead } });
  const one = next(aLedger({ keepDirectories: [] }), read("/b"));
  expect(next(one, read("/c", "/a", "/b")).keepDirectories).toEqual(["/a", "/b", "/c"]);
  expect(next(one, read()).keepDirectories).toEqual(["/b"]);
});

describe("ghosts", () => {
  // Images that are still listed after their removal: when the next attempt is due, and when there is none any more.

  const image = anImage("app");
  const record = aRecord();
  const { runtime } = aSnapshot();

  /** One observation this much observed time after the first. */
  function observed(ledger: Ledger, age: Duration, change: Partial<Snapshot> = {}): Ledger {
    const wall = instant(NOW + age);
    const snapshot = aSnapshot({
      clocks: { wall, uptime: (hours(48) + age) as Duration, bootId: "boot-1" },
      observedAt: wall,
      images: [image],
      ...change,
    });
    const looked = remember({
      ledger,
      snapshot,
      usage: usageOf(snapshot),
      limits: defaultLimits.memory,
      pods: ledger.pods,
    });
    return { ...looked, watched: watched(age) };
  }

  const tried = (ledger: Ledger, end: GhostAttempt["end"], instance = "1"): Ledger =>
    rememberGhost(ledger, { image, record, end, runtime: { ...runtime, instance } });
  const ghostIn = (ledger: Ledger) => ledger.images.get(image.id)?.ghost ?? null;
  const pauseIn = (ledger: Ledger): bigint =>
    (ghostIn(ledger)?.retryWatched ?? 0n) - ledger.watched;

  describe("the pause after each attempt", () => {
    const rows: readonly [string, readonly GhostAttempt["end"][], readonly Duration[]][] = [
      [
        "doubles from an hour to a day",
        ["unanswered", "unanswered", "unanswered", "unanswered", "unanswered", "unanswered"],
        [1, 2, 4, 8, 16, 24].map(hours),
      ],
      ["is none after the first cut-off", ["cut-off", "cut-off", "cut-off"], [0, 1, 2].map(hours)],
      ["is none after a cut-off that follows others", ["unanswered", "cut-off"], [1, 0].map(hours)],
      [
        "is an hour if a cut-off is followed by an answer",
        ["cut-off", "answered"],
        [0, 1].map(hours),
      ],
    ];
    test.each(rows)("%s", (_, ends, pauses) => {
      let ledger = observed(aLedger(), hours(0));
      for (const [index, end] of ends.entries()) {
        ledger = tried(ledger, end);
        expect(pauseIn(ledger)).toBe(pauses[index] ?? -1n);
      }
    });

    test("ends at once if the runtime was restarted, the first time", () => {
      let ledger = tried(observed(aLedger(), hours(0)), "unanswered");
      expect(pauseIn(observed(ledger, minutes(5)))).toBe(minutes(55));
      const restarted = { runtime: { ...runtime, instance: "2" } };
      ledger = observed(ledger, minutes(5), restarted);
      expect(pauseIn(ledger)).toBe(0n);
      ledger = observed(tried(ledger, "unanswered", "2"), minutes(6), {
        runtime: { ...runtime, instance: "3" },
      });
      expect(pauseIn(ledger)).toBe(minutes(59));
    });

    test("doubles as ever if the runtime is restarted only once it is over", () => {
      const tenMinutesBefore = observed(
        tried(observed(aLedger(), hours(0)), "unanswered"),
        minutes(50),
      );
      const restarted = { runtime: { ...runtime, instance: "2" } };
      const due = observed(tenMinutesBefore, hours(1), restarted);
      expect(pauseIn(due)).toBe(0n);
      expect(pauseIn(tried(due, "unanswered", "2"))).toBe(hours(2));
    });

    test("goes on if crigc cannot tell whether the runtime was restarted", () => {
      for (const instance of ["", "2"]) {
        const ledger = tried(
          observed(aLedger(), hours(0)),
          "unanswered",
          instance === "" ? "1" : "",
        );
        const unknown = { runtime: { ...runtime, instance } };
        expect(pauseIn(observed(ledger, minutes(5), unknown))).toBe(minutes(55));
      }
    });
  });

  describe("an image whose removal was answered twice, an hour apart,", () => {
    const first = tried(observed(aLedger(), hours(0)), "answered");
    const final = tried(observed(first, hours(1)), "answered");
    const listedAs = (tag: string) => ({ images: [{ ...image, repoTags: [tag] }] });

    test("is removable once its names change, except those that the removal took", () => {
      const taken = observed(final, hours(1), listedAs("left:1"));
      expect(ghostIn(taken)?.isFinal).toBe(true);
      expect(ghostIn(observed(taken, hours(2), listedAs("left:1")))?.isFinal).toBe(true);
      expect(ghostIn(observed(taken, hours(2), listedAs("other:1")))).toBeNull();
    });

    test("is removable once the runtime has another version", () => {
      const upgraded = { runtime: { ...runtime, version: "2.1.9" } };
      expect(ghostIn(observed(final, hours(2), upgraded))).toBeNull();
    });
  });

  test("an image whose removal was answered is given up only by an answer an hour after the first", () => {
    const unanswered = tried(observed(aLedger(), hours(1)), "unanswered");
    const first = tried(observed(unanswered, hours(2)), "answered");
    expect(ghostIn(first)?.isFinal).toBe(false);
    const soon = tried(observed(first, duration(hours(3) - 1n)), "answered");
    expect(ghostIn(soon)?.isFinal).toBe(false);
    expect(ghostIn(tried(observed(soon, hours(3)), "unanswered"))?.isFinal).toBe(false);
    expect(ghostIn(tried(observed(soon, hours(3)), "answered"))?.isFinal).toBe(true);
  });

  test("a ledger without an observation records no ghost", () => {
    expect(tried(emptyLedger, "answered")).toBe(emptyLedger);
  });
});
