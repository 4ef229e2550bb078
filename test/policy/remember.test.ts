import { describe, expect, test } from "bun:test";

import { containerId, type ImageId, sandboxId } from "../../src/model/ids.ts";
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
  aGhost,
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

const app = anImage("app");
const running = aContainer("c", { imageId: app.id });
/** The ledger after a first look at a node with these images. */
const firstSeen = (...images: readonly Image[]): Ledger => next(aLedger(), aSnapshot({ images }));

describe("images", () => {
  test("an image in use that keeps its names keeps when it was first seen", () => {
    const one = firstSeen(app);
    const two = next(one, later(minutes(5), { images: [app], containers: [running] }));
    expect(recordOf(two, app)).toMatchObject({
      firstSeenAt: NOW,
      firstSeenWatched: one.watched,
      lastUsedWatched: two.watched,
      ageRestartedWatched: null,
    });
  });

  test("an unused image whose size changed is recorded with the new size", () => {
    const grown = { ...app, sizeBytes: app.sizeBytes + 1n };
    const two = next(firstSeen(app), later(minutes(5), { images: [grown] }));
    expect(recordOf(two, app).sizeBytes).toBe(grown.sizeBytes);
  });

  test("changed tags or digests restart the minimum age, and leave first seen and last used as they are", () => {
    const used = { lastUsedAt: NOW, lastUsedWatched: watched(5n) };
    const record = aRecord({ names: "registry.example/app:v0", ...used });
    const before = aLedger({ images: new Map([[app.id, record]]) });
    const containers = [aContainer("c", { imageId: idOf("x") })];
    const after = next(before, aSnapshot({ images: [app], containers }));
    expect(recordOf(after, app)).toEqual({
      ...record,
      names: "registry.example/app:v1",
      ageRestartedWatched: after.watched,
      sizeBytes: app.sizeBytes,
    });
  });

  test("the minimum age restarts each time that it is due, however soon after the previous one", () => {
    let ledger = firstSeen(app);
    for (let at = 5; at <= 90; at += 5) {
      const image = anImage("app", { repoTags: [`a/x:${at}`] });
      ledger = next({ ...ledger, ageRestartDue: true }, later(minutes(at), { images: [image] }));
      expect(ledger.ageRestartedWatched).toBe(ledger.watched);
      expect(recordOf(ledger, image).ageRestartedWatched).toBe(ledger.watched);
      expect(ledger.ageRestartDue).toBeFalse();
    }
  });

  test("a record ends when its image was removed, or a complete list lacks it", () => {
    const other = anImage("b");
    const one = firstSeen(app, other);
    const left: [ImageId, ImageRecord][] = [[other.id, recordOf(one, other)]];
    expect([...forgetImages(one, [app.id]).images]).toEqual(left);
    expect(forgetImages(one, [idOf("unknown")])).toBe(one);
    expect([...forgetUnlisted(one, [other, anImage("new")]).images]).toEqual(left);
    expect(forgetUnlisted(one, [other, app])).toBe(one);
  });

  test("a record is kept, with later observations, if the removal was refused", () => {
    const one = firstSeen(app);
    const before = recordOf(one, app);
    const forgotten = forgetImages(one, [app.id]);
    const recalled = (ledger: Ledger, known = before) =>
      recallImage(ledger, app.id, known).images.get(app.id);
    expect(recalled(forgotten)).toEqual(before);

    const seen = next(forgotten, later(minutes(5), { images: [app] }));
    expect(recordOf(seen, app).firstSeenAt).toBeGreaterThan(before.firstSeenAt);
    for (const known of [before, { ...before, lastUsedAt: NOW, lastUsedWatched: watched(3n) }])
      expect(recalled(seen, known)).toEqual(known);

    const use = { lastUsedAt: NOW, lastUsedWatched: watched(7n) };
    const inUse = { ...seen, images: new Map([[app.id, { ...recordOf(seen, app), ...use }]]) };
    expect(recalled(inUse)).toEqual({ ...before, ...use });

    const tagged = next(forgotten, later(minutes(5), { images: [{ ...app, repoTags: ["b:1"] }] }));
    expect(recallImage(tagged, app.id, before)).toBe(tagged);
  });
});

describe("the boot grace period", () => {
  const at = (uptime: Duration, wall = instant(NOW + minutes(5))): Snapshot =>
    later(minutes(5), { clocks: { wall, uptime, bootId: "boot-2" }, containers: [running] });
  const rebooted = at(minutes(1));

  test("lasts until the uptime reaches it, whatever the wall clock does", () => {
    const one = next(aLedger(), rebooted);
    expect(one).toMatchObject({
      graceReason: "boot",
      graceUntil: watched(one.watched + minutes(4)),
    });
    expect(next(one, at(minutes(2), instant(NOW + hours(900)))).graceUntil).toBe(one.graceUntil);
    const two = next(one, at(duration(minutes(5) - 1n)));
    expect(two.graceUntil).toBe(one.graceUntil);
    expect(next(two, at(minutes(5)))).toMatchObject({ graceUntil: null, graceReason: null });
    expect(next(aLedger(), at(minutes(5))).graceUntil).toBeNull();
  });

  test("begins again for vanished containers once a boot", () => {
    const one = next(aLedger({ hadContainers: true }), later(minutes(5)));
    const back = next(one, later(minutes(20), { containers: [running] }));
    const again = next(back, later(minutes(25)));
    expect(again.graceUntil).toBe(one.graceUntil);
    const booted = { wall: NOW, uptime: hours(1), bootId: "boot-2" };
    const after = next({ ...again, hadContainers: true }, later(minutes(30), { clocks: booted }));
    expect(after.graceUntil).toBe(watched(after.watched + minutes(5)));
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

  test("begins in a fresh ledger only on a machine that is up for less than the grace", () => {
    const lost = next(emptyLedger, rebooted);
    expect(lost.graceUntil).toBe(watched(lost.watched + minutes(4)));
    expect(next(emptyLedger, at(duration(minutes(5) - 1n))).graceReason).toBe("boot");
    expect(next(emptyLedger, at(minutes(5))).graceUntil).toBeNull();
  });

  test("does not begin if it is off", () => {
    expect(next(aLedger(), rebooted, { bootGrace: seconds(0) }).graceUntil).toBeNull();
  });
});

describe("containers, sandboxes, pods and directories", () => {
  const id = containerId("container-c");

  test("data of a container's status is kept while it is listed", () => {
    const imageVolumes = new Map([[id, { kind: "known" as const, references: ["a/b:1"] }]]);
    const containerEnds = new Map([[id, NOW]]);
    const all = aSnapshot({ containers: [running], imageVolumes, containerEnds });
    const one = next(aLedger(), all);
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
    const sandboxes = [aSandbox("s")];
    const sandboxImages = new Map([[sandbox, ""]]);
    const one = next(aLedger(), aSnapshot({ sandboxes, sandboxImages }));
    const two = next(one, later(minutes(5), { sandboxes }));
    expect(two.sandboxImages).toEqual(new Map([[sandbox, ""]]));
    expect(next(two, later(minutes(10))).sandboxImages.size).toBe(0);
  });
});

test("an observation of an earlier moment does not turn the age clock back", () => {
  const newer = next(aLedger({ observedAt: NOW, uptime: hours(48) }), later(minutes(4)));
  const { uptime, watched: now } = newer;
  expect(next(newer, later(minutes(1)))).toMatchObject({ uptime, watched: now });
});

describe("ghosts", () => {
  // Images that are still listed after their removal: when the next attempt is due, and when there is none any more.

  const record = aRecord();
  const { runtime } = aSnapshot();

  /** One observation this much observed time after the first. */
  const observed = (ledger: Ledger, age: Duration, change: Partial<Snapshot> = {}): Ledger => ({
    ...next(ledger, later(age, { images: [app], ...change })),
    watched: watched(age),
  });

  const tried = (ledger: Ledger, end: GhostAttempt["end"], instance = "1"): Ledger =>
    rememberGhost(ledger, { image: app, record, end, runtime: { ...runtime, instance } });
  const ghostIn = (ledger: Ledger) => ledger.images.get(app.id)?.ghost ?? null;
  const pauseIn = (ledger: Ledger): bigint =>
    (ghostIn(ledger)?.retryWatched ?? 0n) - ledger.watched;

  describe("the pause after each attempt", () => {
    test.each<[string, readonly GhostAttempt["end"][], readonly Duration[]]>([
      [
        "doubles from an hour to a day",
        Array(6).fill("unanswered"),
        [1, 2, 4, 8, 16, 24].map(hours),
      ],
      ["is none after the first cut-off", ["cut-off", "cut-off", "cut-off"], [0, 1, 2].map(hours)],
      ["is none after a cut-off that follows others", ["unanswered", "cut-off"], [1, 0].map(hours)],
      ["is an hour if an answer follows a cut-off", ["cut-off", "answered"], [0, 1].map(hours)],
    ])("%s", (_, ends, pauses) => {
      let ledger = observed(aLedger(), hours(0));
      for (const [index, end] of ends.entries()) {
        ledger = tried(ledger, end);
        expect(pauseIn(ledger)).toBe(pauses[index] ?? -1n);
      }
    });

    const first = tried(observed(aLedger(), hours(0)), "unanswered");
    const restarted = (instance: string) => ({ runtime: { ...runtime, instance } });

    test("ends at once if the runtime was restarted, the first time", () => {
      expect(pauseIn(observed(first, minutes(5)))).toBe(minutes(55));
      const second = observed(first, minutes(5), restarted("2"));
      expect(pauseIn(second)).toBe(0n);
      const third = observed(tried(second, "unanswered", "2"), minutes(6), restarted("3"));
      expect(pauseIn(third)).toBe(minutes(59));
    });

    test("doubles as ever if the runtime is restarted only once it is over", () => {
      const due = observed(observed(first, minutes(50)), hours(1), restarted("2"));
      expect(pauseIn(due)).toBe(0n);
      expect(pauseIn(tried(due, "unanswered", "2"))).toBe(hours(2));
    });

    test.each([
      ["1", ""],
      ["", "2"],
    ])("goes on if the runtime of instance %j now is of %j: it may be the same", (before, now) => {
      const ledger = tried(observed(aLedger(), hours(0)), "unanswered", before);
      expect(pauseIn(observed(ledger, minutes(5), restarted(now)))).toBe(minutes(55));
    });
  });

  describe("an image whose removal was answered twice, an hour apart,", () => {
    const first = tried(observed(aLedger(), hours(0)), "answered");
    const final = tried(observed(first, hours(1)), "answered");
    const listedAs = (tag: string) => ({ images: [{ ...app, repoTags: [tag] }] });

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

  test("a ghost whose record ended with its removal gets its record back", () => {
    const before = aRecord({ lastUsedWatched: watched(7n), ghost: aGhost({ attempts: 3 }) });
    const seen = observed(aLedger(), hours(0), { images: [] });
    const ledger = rememberGhost(seen, { image: app, record: before, end: "unanswered", runtime });
    expect(ledger.images.get(app.id)).toMatchObject({
      lastUsedWatched: watched(7n),
      ghost: { since: NOW, attempts: 4 },
    });
  });

  test("a ledger without an observation records no ghost", () => {
    expect(tried(emptyLedger, "answered")).toBe(emptyLedger);
  });
});
