import { describe, expect, test } from "bun:test";

import { type ContainerId, containerId, type ImageId, sandboxId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../src/model/ledger.ts";
import type { LedgerLimits } from "../../src/model/limits.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import {
  type Duration,
  duration,
  hours,
  instant,
  minutes,
  seconds,
  totalUptime,
} from "../../src/model/time.ts";
import {
  forgetImages,
  forgetRemoved,
  forgetUnlisted,
  recallImage,
  remember,
  seeImages,
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
  listedBefore,
  NOW,
} from "../support/build/values.ts";

function next(ledger: Ledger, snapshot: Snapshot, change: Partial<LedgerLimits> = {}): Ledger {
  const limits = { ...defaultLimits.ledger, ...change };
  return remember({ ledger, snapshot, limits, parts: { containers: "none", images: true } });
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
      lastUsedAt: instant(NOW + minutes(5) + seconds(1)),
      firstSeenAt: NOW,
      firstSeenUptime: one.totalUptime,
      lastUsedUptime: two.totalUptime,
      ageRestartedUptime: null,
    });
  });

  test("a list between observations adds records of new images, and nothing before the first one", () => {
    const one = firstSeen(app);
    const at = {
      wall: instant(NOW + minutes(1)),
      totalUptime: totalUptime(one.totalUptime + minutes(1)),
    };
    const fresh = anImage("fresh");
    const seen = seeImages(one, [app, fresh], at);
    expect(recordOf(seen, app)).toBe(recordOf(one, app));
    expect(recordOf(seen, fresh)).toMatchObject({
      firstSeenAt: at.wall,
      firstSeenUptime: at.totalUptime,
      lastUsedAt: null,
    });
    expect(seeImages(one, [app], at)).toBe(one);
    expect(seeImages(emptyLedger, [app], at)).toBe(emptyLedger);
  });

  test("an unused image whose size changed is recorded with the new size", () => {
    const grown = { ...app, sizeBytes: app.sizeBytes + 1n };
    const two = next(firstSeen(app), later(minutes(5), { images: [grown] }));
    expect(recordOf(two, app).sizeBytes).toBe(grown.sizeBytes);
  });

  test("changed tags or digests restart the minimum age, and leave first seen and last used as they are", () => {
    const used = { lastUsedAt: NOW, lastUsedUptime: totalUptime(5n) };
    const record = aRecord({ names: "registry.example/app:v0", ...used });
    const before = aLedger({ images: new Map([[app.id, record]]) });
    const containers = [aContainer("c", { imageId: idOf("x") })];
    const after = next(before, aSnapshot({ images: [app], containers }));
    expect(recordOf(after, app)).toEqual({
      ...record,
      names: "registry.example/app:v1",
      ageRestartedUptime: after.totalUptime,
      sizeBytes: app.sizeBytes,
    });
  });

  test("the minimum age restarts each time that it is due, however soon after the previous one", () => {
    let ledger = firstSeen(app);
    for (let at = 5; at <= 90; at += 5) {
      const image = anImage("app", { repoTags: [`a/x:${at}`] });
      ledger = next({ ...ledger, ageRestartDue: true }, later(minutes(at), { images: [image] }));
      expect(ledger.ageRestartedUptime).toBe(ledger.totalUptime);
      expect(recordOf(ledger, image).ageRestartedUptime).toBe(ledger.totalUptime);
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
    for (const known of [before, { ...before, lastUsedAt: NOW, lastUsedUptime: totalUptime(3n) }])
      expect(recalled(seen, known)).toEqual(known);

    const use = { lastUsedAt: NOW, lastUsedUptime: totalUptime(7n) };
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
      graceUntil: totalUptime(one.totalUptime + minutes(4)),
    });
    expect(next(one, at(minutes(2), instant(NOW + hours(900)))).graceUntil).toBe(one.graceUntil);
    const two = next(one, at(duration(minutes(5) - 1n)));
    expect(two.graceUntil).toBe(one.graceUntil);
    expect(next(two, at(minutes(5)))).toMatchObject({ graceUntil: null, graceReason: null });
    expect(next(aLedger(), at(minutes(5))).graceUntil).toBeNull();
  });

  const hadOne = aLedger({ containers: listedBefore });

  test("begins again for vanished containers once a boot", () => {
    const one = next(hadOne, later(minutes(5)));
    const back = next(one, later(minutes(20), { containers: [running] }));
    const again = next(back, later(minutes(25)));
    expect(again.graceUntil).toBe(one.graceUntil);
    const booted = { wall: NOW, uptime: hours(1), bootId: "boot-2" };
    const after = next(
      { ...again, containers: listedBefore },
      later(minutes(30), { clocks: booted }),
    );
    expect(after.graceUntil).toBe(totalUptime(after.totalUptime + minutes(5)));
  });

  test("begins when all containers vanished between two observations", () => {
    const one = next(hadOne, later(minutes(5)));
    expect(one.graceReason).toBe("containers-vanished");
    expect(next(hadOne, later(minutes(5), { containers: [running] })).graceUntil).toBeNull();
    expect(next(aLedger(), later(minutes(5))).graceUntil).toBeNull();
  });

  test("does not begin because of containers that we removed ourselves", () => {
    const removed = (...those: readonly ContainerId[]) =>
      forgetRemoved(hadOne, { containers: those, sandboxes: [] });
    expect(next(removed(...listedBefore.keys()), later(minutes(5))).graceUntil).toBeNull();
    expect(next(removed(), later(minutes(5))).graceReason).toBe("containers-vanished");
  });

  test("begins in a fresh ledger only on a machine that is up for less than the grace", () => {
    const lost = next(emptyLedger, rebooted);
    expect(lost.graceUntil).toBe(totalUptime(lost.totalUptime + minutes(4)));
    expect(next(emptyLedger, at(duration(minutes(5) - 1n))).graceReason).toBe("boot");
    expect(next(emptyLedger, at(minutes(5))).graceUntil).toBeNull();
  });

  test("does not begin if it is off", () => {
    const off = { bootGrace: seconds(0) };
    expect(next(aLedger(), rebooted, off).graceUntil).toBeNull();
    const vanished = next(hadOne, later(minutes(5)), off);
    expect(vanished.graceUntil).toBeNull();
  });
});

describe("containers, sandboxes, pods and directories", () => {
  const id = containerId("container-c");

  test("data of a container's status is kept while it is listed", () => {
    const imageVolumes = new Map([[id, { kind: "known" as const, references: ["a/b:1"] }]]);
    const one = next(aLedger(), aSnapshot({ containers: [running], imageVolumes }));
    const two = next(one, later(minutes(5), { containers: [running] }));
    expect(two.containers).toEqual(new Map([[id, { imageVolumes: ["a/b:1"] }]]));
    expect(next(two, later(minutes(10))).containers.size).toBe(0);
    const gone = { containers: [id], sandboxes: [] };
    expect(forgetRemoved(two, gone).containers.size).toBe(0);
  });

  test("the sandboxes of the last list are recorded", () => {
    const sandboxes = [aSandbox("s")];
    const one = next(aLedger(), aSnapshot({ sandboxes }));
    expect(one.sandboxes).toEqual([sandboxId("sandbox-s")]);
    expect(next(one, later(minutes(10))).sandboxes).toEqual([]);
  });
});

test("an observation of an earlier moment does not turn the age clock back", () => {
  const newer = next(aLedger({ observedAt: NOW, uptime: hours(48) }), later(minutes(4)));
  const { uptime, totalUptime: now } = newer;
  expect(next(newer, later(minutes(1)))).toMatchObject({ uptime, totalUptime: now });
});
