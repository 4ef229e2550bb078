import { describe, expect, test } from "bun:test";

import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
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
  recallImage,
  remember,
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
  test("a new image is first seen now and never used", () => {
    const ledger = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    expect(ledger.images.get(idOf("app"))).toEqual({
      firstSeenAt: NOW,
      firstSeenWatched: watched(hours(24) + minutes(5)),
      lastUsedAt: null,
      lastUsedWatched: null,
      names: "registry.example/app:v1",
      earlierNames: [],
      sizeBytes: anImage("app").sizeBytes,
      ageRestartedWatched: null,
      ghost: null,
    });
  });

  test("last used is recorded by both clocks and survives the container", () => {
    const one = next(
      aLedger(),
      later(minutes(0), { images: [anImage("app")], containers: [running] }),
    );
    const two = next(one, later(minutes(5), { images: [anImage("app")] }), {
      bootGrace: seconds(0),
    });
    expect(two.images.get(idOf("app"))).toMatchObject({
      lastUsedAt: instant(NOW + seconds(1)),
      lastUsedWatched: one.watched,
    });
  });

  test("an image in use that keeps its names keeps when it was first seen", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const two = next(one, later(minutes(5), { images: [anImage("app")], containers: [running] }));
    expect(two.images.get(idOf("app"))).toMatchObject({
      firstSeenAt: NOW,
      firstSeenWatched: one.watched,
      lastUsedWatched: two.watched,
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

  test("a restart of the minimum age counts from the next observation, not from before a gap", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const two = next({ ...one, ageRestartDue: true }, later(minutes(8)));
    expect(two.ageRestartedWatched).toBe(two.watched);
    expect(two.watched).toBe(watched(one.watched + minutes(8)));
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

  test("the order of tags does not matter", () => {
    const image = anImage("app", { repoTags: ["b/x:1", "a/x:1"] });
    const one = next(aLedger(), aSnapshot({ images: [image] }));
    const two = next(
      one,
      later(minutes(5), { images: [{ ...image, repoTags: ["a/x:1", "b/x:1"] }] }),
    );
    expect(two.images.get(image.id)?.firstSeenAt).toBe(NOW);
  });

  test("a record ends when its image is no longer listed, so that one that comes back is new", () => {
    const one = next(aLedger(), aSnapshot({ images: [anImage("app")] }));
    const two = next(one, later(minutes(5)));
    const three = next(two, later(minutes(10), { images: [anImage("app")] }));
    expect(two.images.size).toBe(0);
    expect(three.images.get(idOf("app"))?.firstSeenAt).toBe(instant(NOW + minutes(10)));
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

  test("image volumes are recorded as read, and an empty list is not an unknown one", () => {
    const before = (imageVolumes: readonly string[] | null) =>
      aLedger({ containers: new Map([[id, { imageVolumes, finishedAt: null }]]) });
    for (const references of [[], ["a/b:1"]]) {
      const imageVolumes = new Map([[id, { kind: "known" as const, references }]]);
      for (const ledger of [before(null), before([]), before(["x"])])
        expect(
          next(ledger, aSnapshot({ containers: [running], imageVolumes })).containers.get(id),
        ).toEqual({ imageVolumes: references, finishedAt: null });
    }
  });

  test("a container is recorded before its status is known, so that the next list must include it", () => {
    const snapshot = aSnapshot({
      containers: [running],
      imageVolumes: new Map([[id, { kind: "unknown", message: "x" }]]),
    });
    expect(next(aLedger(), snapshot).containers).toEqual(
      new Map([[id, { imageVolumes: null, finishedAt: null }]]),
    );
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

  test("a sandbox whose image was not read is not recorded as naming none", () => {
    const snapshot = aSnapshot({ sandboxes: [aSandbox("s")] });
    expect(next(aLedger(), snapshot).sandboxImages.size).toBe(0);
  });

  test("pods are recorded as given, keep directories add up", () => {
    const before = aLedger({
      keepDirectories: ["/b"],
    });
    const pods = new Map([
      [podUid("u"), { absentSinceWatched: watched(1n), deadSinceWatched: null, origin: null }],
    ]);
    const snapshot = aSnapshot({
      keep: { rules: [], problems: [], directoriesRead: ["/a", "/b"] },
    });
    const after = remember({
      ledger: before,
      snapshot,
      usage: usageOf(snapshot),
      limits: defaultLimits.memory,
      pods,
    });
    expect(after).toMatchObject({ pods, keepDirectories: ["/a", "/b"] });
  });
});

describe("compat kubelet", () => {
  test("first seen does not change while the image is listed, whatever its names", () => {
    const before = aLedger({ images: new Map([[idOf("app"), aRecord({ names: "old" })]]) });
    const after = next(before, aSnapshot({ images: [anImage("app")] }), { compat: "kubelet" });
    expect(after.images.get(idOf("app"))?.firstSeenAt).toBe(aRecord().firstSeenAt);
  });
});

test("an observation that another process overtook does not turn the clock back, so no time counts twice", () => {
  const start = aLedger({ observedAt: NOW, uptime: hours(48) });
  const newer = next(start, later(minutes(4)));
  const older = next(newer, later(minutes(1)));
  expect(older.watched).toBe(newer.watched);
  expect(next(older, later(minutes(5))).watched).toBe(watched(start.watched + minutes(5)));
});

test("a keep directory stays recorded while it is absent, so that its absence is still reported", () => {
  const ledger = aLedger({ keepDirectories: ["/etc/crigc/keep.d"] });
  const absent = next(ledger, aSnapshot());
  expect(absent.keepDirectories).toEqual(["/etc/crigc/keep.d"]);
  const keep = { rules: [], problems: [], directoriesRead: ["/keep"] };
  expect(next(absent, aSnapshot({ keep })).keepDirectories).toEqual(["/etc/crigc/keep.d", "/keep"]);
});
