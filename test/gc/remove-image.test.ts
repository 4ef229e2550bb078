// One removal: what its answer, and the look at the image after it, leave in the ledger.
import { describe, expect, test } from "bun:test";

import { OthersRemovals } from "../../src/gc/calls.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { removeImage } from "../../src/gc/remove-image.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { hours } from "../../src/model/time.ts";
import { aCandidate, aLedger, anImage, aRecord, aSnapshot, NOW } from "../support/build/values.ts";

const names = ["registry.example/artifact:v1", "registry.example/artifact:v2"];
const artifact = anImage("artifact", { repoTags: names });

interface Scene {
  /** What the runtime does; by default it answers with success. */
  readonly removal?: (stop: AbortController) => Promise<void>;
  /** The look after it; by default the image is still there. */
  readonly look?: (signal: AbortSignal, stop: AbortController) => Promise<Image | null>;
}

/** A removal on a clock that stands still, and what is left of it. */
async function remove({
  removal = async () => undefined,
  look = async () => artifact,
}: Scene = {}) {
  const stop = new AbortController();
  const asked: unknown[][] = [];
  const waitedMs: number[] = [];
  const timer = {
    monotonicNs: () => 0n,
    sleep: async (ms: number) => void waitedMs.push(ms),
  };
  const memory = volatileMemory(
    aLedger({ observedAt: NOW, images: new Map([[artifact.id, aRecord()]]) }),
  );
  const removed = await removeImage(
    {
      memory,
      timer,
      info: aSnapshot().runtime,
      others: new OthersRemovals(timer, stop.signal),
      runtime: { imageStatus: async (_, signal) => look(signal, stop) },
      writer: {
        removeImage: async (...words) => {
          asked.push(words);
          await removal(stop);
        },
      },
    },
    aCandidate("artifact", { image: artifact }),
    stop.signal,
  );
  stop.abort();
  const { images, watched } = memory.current();
  return { removed, asked, waitedMs, watched, record: images.get(artifact.id) };
}

const failing =
  (kind: RuntimeError["kind"], message = "") =>
  async (): Promise<never> => {
    throw new RuntimeError(kind, message);
  };

test("an image that is still there is a ghost, and is not removed by its names", async () => {
  const { removed, asked, record, watched } = await remove();
  expect(asked).toEqual([[artifact.id]]);
  expect(removed.kind).toBe("ghost");
  expect(record?.ghost).toMatchObject({
    attempts: 1,
    answeredWatched: watched,
    runtime: "containerd/1.7.24",
    instance: "1",
  });
});

test.each<[string, number, "gone" | "busy"]>([
  ["is removed once that one is done", 3, "gone"],
  ["is skipped if that one takes long, and is new if it comes back", Infinity, "busy"],
])("an image that somebody else is removing %s", async (_, looksUntilGone, kind) => {
  let looks = 0;
  const look = async () => ((looks += 1) > looksUntilGone ? null : artifact);
  const { removed, record } = await remove({ removal: failing("busy"), look });
  expect(removed.kind).toBe(kind);
  expect(record).toBeUndefined();
});

test("a stop after a removal is over waits for nothing of it", async () => {
  expect((await remove({ look: async () => null })).waitedMs).toEqual([]);
});

describe("a removal that is refused, of an image whose status", () => {
  const refused = async (status: RuntimeError["kind"], removal = failing("failed")) => {
    const { removed, record } = await remove({ removal, look: failing(status) });
    return { kind: removed.kind, isRemembered: record !== undefined, ghost: record?.ghost };
  };

  test("is refused too has failed, so that the pass goes on with the others", async () => {
    expect(await refused("failed")).toEqual({ kind: "failed", isRemembered: true, ghost: null });
  });

  test("is refused although the removal was not is unknown, and no record of it is left", async () => {
    const { removed, record } = await remove({ look: failing("failed") });
    expect([removed.kind, record]).toEqual(["unseen", undefined]);
  });

  test.each(["absent", "unreachable", "permission"] as const)(
    "cannot be asked for (%s), because the runtime went away, is unknown and tried again by the next pass",
    async (kind) => {
      expect(await refused(kind)).toEqual({ kind: "unseen", isRemembered: true, ghost: null });
    },
  );

  test("is not answered is unknown, and the next pass goes past it", async () => {
    expect(await refused("deadline")).toMatchObject({ kind: "unseen", ghost: { attempts: 1 } });
  });
});

describe("a removal during which a stop is requested", () => {
  const message = "the call was cancelled";
  /** A runtime that froze: neither call is answered by itself. */
  const look: Scene["look"] = (signal, stop) =>
    new Promise((_resolve, reject) => {
      const cancelled = new RuntimeError("cancelled", message);
      if (signal.aborted) reject(cancelled);
      signal.addEventListener("abort", () => reject(cancelled));
      stop.abort();
    });
  const failure = new RuntimeError("deadline", "no answer");

  test("waits ten seconds for what came of it, and one that was not answered may go yet", async () => {
    const removal = async (stop: AbortController): Promise<void> => {
      stop.abort();
      throw failure;
    };
    const { removed, waitedMs, record } = await remove({ removal, look });
    expect(waitedMs).toEqual([10_000]);
    expect(removed).toEqual({ kind: "unseen", failure, isUnanswered: true, message });
    expect(record?.ghost?.attempts).toBe(1);
  });

  test("ends the record of one that was answered with success", async () => {
    const { removed, record } = await remove({ look });
    expect(removed).toMatchObject({ kind: "unseen", failure: null });
    expect(record).toBeUndefined();
  });
});

test("a removal without an answer is tried again at once if the runtime went away during it, an hour later if not", async () => {
  const retriedAfter = async (kind: "unreachable" | "deadline"): Promise<bigint> => {
    const { record, watched } = await remove({ removal: failing(kind) });
    return (record?.ghost?.retryWatched ?? -1n) - watched;
  };
  expect(await retriedAfter("unreachable")).toBe(0n);
  expect(await retriedAfter("deadline")).toBe(hours(1));
});
