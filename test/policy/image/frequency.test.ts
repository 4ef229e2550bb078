import { describe, expect, test } from "bun:test";

import { type ImageId, podUid } from "../../../src/model/ids.ts";
import { type Ledger } from "../../../src/model/ledger.ts";
import type { ImageTrigger } from "../../../src/model/reason.ts";
import { frequencyOf } from "../../../src/model/records.ts";
import type { Container, Image } from "../../../src/model/snapshot.ts";
import { duration, hours, instant, minutes, watched } from "../../../src/model/time.ts";
import { countUses, newContainersOf, raiseAgingTerm } from "../../../src/policy/image/rank.ts";
import { usageOf } from "../../../src/policy/image/usage.ts";
import { recallImage, remember } from "../../../src/policy/remember.ts";
import {
  aCandidate,
  aContainer,
  aLedger,
  anImage,
  aRecord,
  aSnapshot,
  defaultLimits,
  idOf,
} from "../../support/build/values.ts";

const app = anImage("app");
const web = aContainer("web", { imageId: idOf("app") });
const job = aContainer("job", { imageId: idOf("app"), state: "exited" });

/** The ledger after another observation, `passed` later. */
function seen(
  ledger: Ledger,
  containers: readonly Container[],
  passed = minutes(5),
  images: readonly Image[] = [app],
): Ledger {
  const uptime = duration(ledger.uptime + passed);
  const wall = aSnapshot().clocks.wall;
  const snapshot = aSnapshot({ images, containers, clocks: { wall, uptime, bootId: "boot-1" } });
  const limits = defaultLimits.memory;
  const its = { ledger, snapshot, usage: usageOf(snapshot), limits, pods: ledger.pods };
  return remember(its);
}

const usesIn = (ledger: Ledger, id: ImageId = app.id): number =>
  frequencyOf(ledger.images.get(id) ?? { frequency: null }).uses;

describe("the uses of an image", () => {
  test("each container not seen before is one, in any state, and none counts again", () => {
    const one = seen(aLedger(), [web, job]);
    expect(usesIn(one)).toBe(3);
    const two = seen(one, [web, job]);
    expect(two.images.get(app.id)?.frequency).toBe(one.images.get(app.id)?.frequency ?? null);
    const three = seen(two, [web, aContainer("other", { imageId: idOf("app") })]);
    expect(usesIn(three)).toBe(4);
    expect([...three.containers.keys()]).toHaveLength(2);
  });

  test("a day in use is added up over the times in use, without those between them", () => {
    let ledger = seen(aLedger(), [web]);
    for (let day = 1; day <= 3; day += 1) {
      ledger = seen(ledger, [web], hours(10));
      ledger = seen(ledger, [], hours(1));
      ledger = seen(ledger, [], hours(40));
      expect(usesIn(ledger)).toBe(day < 3 ? 1 + day : 5);
      ledger = seen(ledger, [web], hours(1));
    }
    expect(usesIn(ledger)).toBe(6);
  });

  test("a day that begins in the future, as in a damaged file, takes nothing away", () => {
    const frequency = { uses: 2, agingTerm: 0, dayBegunWatched: watched(hours(500)) };
    const record = aRecord({ frequency, lastUsedWatched: watched(1n) });
    const ledger = { watched: watched(1n), agingTerm: null };
    const now = { inUseAt: watched(hours(1)), newContainers: 0 };
    expect(countUses(ledger, record, now)).toBe(frequency);
  });

  test("a use takes the aging term as it is then, time in use alone does not", () => {
    const ledger = { ...seen(aLedger(), [web]), agingTerm: 9 };
    expect(seen(ledger, [web], hours(1)).images.get(app.id)?.frequency?.agingTerm).toBe(0);
    expect(seen(ledger, [web], hours(24)).images.get(app.id)?.frequency).toMatchObject({
      uses: 3,
      agingTerm: 9,
    });
    expect(seen(ledger, [web, job]).images.get(app.id)?.frequency?.agingTerm).toBe(9);
    const unused = seen(ledger, [], hours(1));
    expect(seen(unused, [web], hours(1)).images.get(app.id)?.frequency?.agingTerm).toBe(9);
  });

  test("a user that is not a new container extends the day in use and adds no use", () => {
    const frequency = { uses: 2, agingTerm: 0, dayBegunWatched: watched(1n) };
    const record = aRecord({ frequency, lastUsedWatched: watched(3n) });
    const ledger = { watched: watched(5n), agingTerm: 9 };
    expect(countUses(ledger, record, { inUseAt: watched(9n), newContainers: 0 })).toEqual({
      ...frequency,
      dayBegunWatched: watched(7n),
    });
  });

  test("those during a removal that failed are added to those before it, except an arrival that was none", () => {
    const frequency = { uses: 5, agingTerm: 1, dayBegunWatched: watched(1n) };
    const recalled = (containers: readonly Container[], names = "registry.example/app:v1") => {
      const during = seen(aLedger({ agingTerm: 3 }), containers);
      const { images } = recallImage(during, app.id, aRecord({ names, frequency }));
      return images.get(app.id)?.frequency;
    };
    expect(recalled([web, job])).toMatchObject({ uses: 7, agingTerm: 3 });
    expect(recalled([])).toBe(frequency);
    // Under other names it is another image.
    expect(recalled([web], "")?.uses).toBe(2);
  });
});

describe("containers not seen before", () => {
  const base = anImage("base");
  const mounting = (reference: string) => ({
    containers: [web],
    imageVolumes: new Map([[web.id, { kind: "known" as const, references: [reference] }]]),
  });
  const running = (change: Partial<Container>) => ({ containers: [aContainer("web", change)] });
  const counts = (
    change: Parameters<typeof aSnapshot>[0],
    known: Ledger["containers"] = new Map(),
  ) => {
    const runtime = { ...aSnapshot().runtime, version: "2.1.0" };
    const snapshot = aSnapshot({ images: [app, base], runtime, ...change });
    const ledger = aLedger({ observedAt: null, containers: known });
    return [...newContainersOf(ledger, snapshot, usageOf(snapshot))];
  };

  const specs = { pods: [{ uid: podUid("u"), images: [base.id] }], error: null };
  const named = { imageName: "registry.example/base:v1" };
  test.each([
    ["none, with no container", {}, {}],
    ["none that a pod's specification names", { pods: { kind: "none", why: "", specs } }, {}],
    ["its own image", { containers: [web, job] }, { app: 2 }],
    ["the image of a volume", mounting(base.id), { app: 1, base: 1 }],
    ["once, an image that it runs and mounts", mounting(app.id), { app: 1 }],
    [
      "not an image that its name has moved to since",
      running({ imageId: app.id, ...named }),
      { app: 1 },
    ],
    ["the image of its name, if no ID is listed", running(named), { base: 1 }],
  ] as const)("count for %s", (_, change, expected) => {
    const uses = Object.entries(expected).map(([word, count]) => [idOf(word), count]);
    expect(counts(change)).toEqual(uses as never);
  });
});

test.each([
  ["long before the last observation, which missed it", minutes(61), 0],
  ["not long before it, since clocks are set", minutes(60), 1],
  ["at a time that is not known", null, 1],
])("a container that was created %s", (_, before, added) => {
  const ledger = aLedger();
  const observedAt = ledger.observedAt ?? instant(0n);
  const createdAt = before === null ? instant(0n) : instant(observedAt - before);
  const snapshot = aSnapshot({
    images: [app],
    containers: [aContainer("web", { imageId: app.id, createdAt })],
  });
  const counts = newContainersOf(ledger, snapshot, usageOf(snapshot));
  expect(counts.get(app.id) ?? 0).toBe(added);
});

describe("the aging term", () => {
  const removed = (key: number | undefined, kind: ImageTrigger["kind"] = "space") => ({
    candidate: aCandidate("app", key === undefined ? {} : { orderKey: key }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest of a trigger does not count
    trigger: { kind } as ImageTrigger,
  });

  test.each([
    ["rises to the key of what was removed", null, removed(3), 3],
    ["rises with each", 3, removed(4), 4],
    ["does not fall", 4, removed(3), 4],
    ["rises under pressure", 1, removed(2, "pressure"), 2],
    ["stays after a removal for age", 1, removed(2, "age"), 1],
    ["stays after a removal by hand", 1, removed(2, "all-unused"), 1],
    ["stays in the order of last use", null, removed(undefined), null],
  ])("%s", (_, agingTerm, item, expected) => {
    const ledger = aLedger({ agingTerm });
    const after = raiseAgingTerm(ledger, item);
    expect(after.agingTerm).toBe(expected);
    expect(after === ledger).toBe(expected === agingTerm);
  });
});
