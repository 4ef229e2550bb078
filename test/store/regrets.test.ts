import { describe, expect, test } from "bun:test";

import { imageId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import { type Instant, instant, minutes, plus, watched } from "../../src/model/time.ts";
import type { Recorder } from "../../src/store/recorder.ts";
import { REMOVED_IMAGES } from "../../src/store/regrets.ts";
import { aRecord } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";
import { now, read, write } from "./fixture.ts";
import { idOf, imageItem } from "./history-fixture.ts";

/** The node as a look at this moment saw it: images by ID, with their names. */
const lookAt = (at: Instant, images: Readonly<Record<string, string>>): Ledger => ({
  ...emptyLedger,
  observedAt: at,
  watched: watched(at - now),
  images: new Map(
    Object.entries(images).map(([id, names]) => [
      imageId(id),
      aRecord({ firstSeenAt: at, firstSeenWatched: watched(at - now), names, sizeBytes: 7_000n }),
    ]),
  ),
});

const removed = imageItem(1, { startedAt: plus(now, minutes(1)) });
const name = "Registry.example/app/Web:1";
const before = lookAt(now, { "sha256:1": name });
const without = lookAt(plus(now, minutes(2)), {});
const later = plus(now, minutes(31));

/** Each is on disk before the next, as the last one's pass ends. */
async function looked(store: Recorder, ...looks: readonly Ledger[]) {
  for (const look of looks) {
    store.saveLedger(look);
    await store.flush();
  }
  store.tidyNext();
  await store.flush();
  return store.regrets();
}

/** What is regretted after an image was removed and the node looked like this. */
async function after(...looks: readonly Ledger[]) {
  const directory = scratch();
  const { store } = await write(directory);
  await looked(store, before);
  store.imageDone(idOf("p"), removed);
  const figures = await looked(store, ...looks);
  await store.close();
  return { directory, figures, regrets: read(directory).reader.regrets({ limit: 10 }) };
}

describe("an image that was removed", () => {
  test.each([
    ["ID", { "sha256:1": "another:name" }, "sha256:1"],
    ["name", { "sha256:9": `another:name\n${name}` }, "sha256:9"],
  ])("and comes back under the same %s is a regret", async (_, images, returnedAs) => {
    const { figures, regrets } = await after(without, lookAt(later, images));
    expect(regrets).toEqual([
      {
        passId: idOf("p"),
        subject: "sha256:1",
        names: [name],
        removedAt: removed.startedAt,
        at: later,
        returnedAs,
        sizeBytes: 7_000n,
        trigger: "space",
        signal: null,
        reason: "space",
      },
    ]);
    expect(figures).toEqual({
      removedImages: 1,
      returned: [{ trigger: "space", count: 1, sizeBytes: 7_000n }],
      soonest: minutes(30),
    });
  });

  test("and comes back twice is regretted once", async () => {
    const back = { "sha256:1": name };
    const again = plus(later, minutes(9));
    const { regrets } = await after(
      without,
      lookAt(later, back),
      lookAt(plus(later, minutes(5)), {}),
      lookAt(again, back),
    );
    expect(regrets).toHaveLength(1);
  });

  test("and was still on a list from before its removal did not come back", async () => {
    const stale = lookAt(instant(removed.startedAt - 1n), { "sha256:1": name });
    const { regrets } = await after({ ...without, observedAt: now }, stale);
    expect(regrets).toEqual([]);
  });

  test("a thousand removals ago is no longer noticed, however long the process lives", async () => {
    const { store } = await write(scratch());
    await looked(store, before);
    const startedAt = plus(now, minutes(1));
    for (let turn = 1; turn <= REMOVED_IMAGES + 1; turn += 1)
      store.imageDone(idOf("p"), imageItem(turn, { startedAt }));
    const back = lookAt(later, { "sha256:1": name, "sha256:2": "another:name" });
    expect(await looked(store, without, back)).toMatchObject({
      removedImages: REMOVED_IMAGES + 1,
      returned: [{ trigger: "space", count: 1 }],
    });
    await store.close();
  });

  test("by another process, or before a restart, is regretted by the next one", async () => {
    const { directory } = await after(without);
    const next = await write(directory);
    const { returned } = await looked(next.store, lookAt(later, { "sha256:9": name }));
    expect(returned).toMatchObject([{ trigger: "space", count: 1 }]);
    await next.store.close();
    const third = await write(directory);
    const back = lookAt(plus(later, minutes(1)), { "sha256:9": name });
    expect(await looked(third.store, without, back)).toMatchObject({
      removedImages: 1,
      returned: [{ count: 1 }],
      soonest: minutes(30),
    });
    await third.store.close();
  });
});
