// One removal: what its answer, and the look at the image after it, leave in the ledger.
import { describe, expect, test } from "bun:test";

import { OthersRemovals } from "../../src/gc/calls.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { removeImage } from "../../src/gc/remove-image.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { hours } from "../../src/model/time.ts";
import { timer } from "../../src/node/clock.ts";
import { aCandidate, aLedger, anImage, aRecord, aSnapshot, NOW } from "../support/build/values.ts";

const names = ["registry.example/artifact:v1", "registry.example/artifact:v2"];
const artifact = anImage("artifact", { repoTags: names });
const others = new OthersRemovals(timer, new AbortController().signal);
const given = { info: aSnapshot().runtime, others };

test("an image that is still there is a ghost, and is not removed by its names", async () => {
  const asked: unknown[][] = [];
  const memory = volatileMemory(
    aLedger({ observedAt: NOW, images: new Map([[artifact.id, aRecord()]]) }),
  );
  const removed = await removeImage(
    {
      memory,
      timer,
      ...given,
      runtime: { imageStatus: async () => artifact },
      writer: { removeImage: async (...words) => void asked.push(words) },
    },
    aCandidate("artifact", { image: artifact }),
    new AbortController().signal,
  );
  expect(asked).toEqual([[artifact.id]]);
  expect(removed.kind).toBe("ghost");
  expect(memory.current().images.get(artifact.id)?.ghost).toMatchObject({
    attempts: 1,
    answeredWatched: memory.current().watched,
    runtime: "containerd/1.7.24",
    instance: "1",
  });
});

test.each<[string, number, "gone" | "busy"]>([
  ["is removed once that one is done", 3, "gone"],
  ["is skipped if that one takes long, and is new if it comes back", Infinity, "busy"],
])("an image that somebody else is removing %s", async (_, looksUntilGone, kind) => {
  const memory = volatileMemory(aLedger({ images: new Map([[artifact.id, aRecord()]]) }));
  const noTime = { ...timer, sleep: async () => undefined };
  let looks = 0;
  const removed = await removeImage(
    {
      memory,
      timer: noTime,
      info: given.info,
      others: new OthersRemovals(noTime, new AbortController().signal),
      runtime: { imageStatus: async () => ((looks += 1) > looksUntilGone ? null : artifact) },
      writer: {
        removeImage: () => Promise.reject(new RuntimeError("busy", "already being removed")),
      },
    },
    aCandidate("artifact", { image: artifact }),
    new AbortController().signal,
  );
  expect(removed.kind).toBe(kind);
  expect(memory.current().images.size).toBe(0);
});

test("a stop after a removal is over waits for nothing of it", async () => {
  const stop = new AbortController();
  const waitedMs: number[] = [];
  const timerOfTest = {
    monotonicNs: () => 0n,
    sleep: async (ms: number) => {
      waitedMs.push(ms);
    },
  };
  await removeImage(
    {
      memory: volatileMemory(aLedger()),
      timer: timerOfTest,
      ...given,
      runtime: { imageStatus: async () => null },
      writer: { removeImage: async () => undefined },
    },
    aCandidate("artifact", { image: artifact }),
    stop.signal,
  );
  stop.abort();
  expect(waitedMs).toEqual([]);
});

describe("a removal that is refused, of an image whose status", () => {
  async function refused(
    status: RuntimeError,
    failure: RuntimeError | null = new RuntimeError("failed", "layer not known"),
  ) {
    const memory = volatileMemory(aLedger({ images: new Map([[artifact.id, aRecord()]]) }));
    const removed = await removeImage(
      {
        memory,
        timer,
        ...given,
        runtime: { imageStatus: () => Promise.reject(status) },
        writer: {
          removeImage: async () => {
            if (failure !== null) throw failure;
          },
        },
      },
      aCandidate("artifact", { image: artifact }),
      new AbortController().signal,
    );
    const record = memory.current().images.get(artifact.id);
    return { kind: removed.kind, isRemembered: record !== undefined, isGhost: record?.ghost };
  }

  test("is refused too has failed, so that the pass goes on with the others", async () => {
    const status = new RuntimeError("failed", "layer not known");
    expect(await refused(status)).toEqual({ kind: "failed", isRemembered: true, isGhost: null });
  });

  test("is refused although the removal was not is unknown, and no record of it is left", async () => {
    const status = new RuntimeError("failed", "layer not known");
    expect(await refused(status, null)).toMatchObject({ kind: "unseen", isRemembered: false });
  });

  test("cannot be asked for, because the runtime went away, is unknown and tried again by the next pass", async () => {
    for (const kind of ["absent", "unreachable", "permission"] as const) {
      const status = new RuntimeError(kind, "the runtime went away");
      expect(await refused(status)).toEqual({ kind: "unseen", isRemembered: true, isGhost: null });
    }
  });

  test("is not answered is unknown, and the next pass goes past it", async () => {
    const status = new RuntimeError("deadline", "no answer");
    expect(await refused(status)).toMatchObject({
      kind: "unseen",
      isRemembered: true,
      isGhost: { attempts: 1 },
    });
  });
});

describe("a removal during which a stop is requested", () => {
  /** A runtime that froze: neither call is answered by itself. */
  async function stopped(answer: (stop: AbortController) => Promise<void>) {
    const stop = new AbortController();
    const memory = volatileMemory(aLedger({ images: new Map([[artifact.id, aRecord()]]) }));
    const waitedMs: number[] = [];
    const removed = await removeImage(
      {
        memory,
        timer: {
          monotonicNs: () => 0n,
          sleep: async (ms) => {
            waitedMs.push(ms);
          },
        },
        ...given,
        runtime: {
          imageStatus: (_, signal) =>
            new Promise((_resolve, reject) => {
              const cancelled = new RuntimeError("cancelled", "the call was cancelled");
              if (signal.aborted) reject(cancelled);
              signal.addEventListener("abort", () => reject(cancelled));
              stop.abort();
            }),
        },
        writer: { removeImage: async () => answer(stop) },
      },
      aCandidate("artifact", { image: artifact }),
      stop.signal,
    );
    return { removed, waitedMs, record: memory.current().images.get(artifact.id) };
  }

  test("waits ten seconds for what came of it, and one that was not answered may go yet", async () => {
    const failure = new RuntimeError("deadline", "no answer");
    const { removed, waitedMs, record } = await stopped(() => Promise.reject(failure));
    expect(waitedMs).toEqual([10_000]);
    expect(removed).toMatchObject({ kind: "unseen", failure, message: "the call was cancelled" });
    expect(record?.ghost?.attempts).toBe(1);
  });

  test("waits as long if the stop came before the look at what came of it", async () => {
    const failure = new RuntimeError("deadline", "no answer");
    const { removed, waitedMs } = await stopped(async (stop) => {
      stop.abort();
      throw failure;
    });
    expect(waitedMs).toEqual([10_000]);
    expect(removed).toEqual({
      kind: "unseen",
      failure,
      isUnanswered: true,
      message: "the call was cancelled",
    });
  });

  test("ends the record of one that was answered with success", async () => {
    const { removed, record } = await stopped(async () => undefined);
    expect(removed).toMatchObject({ kind: "unseen", failure: null });
    expect(record).toBeUndefined();
  });
});

test("a removal without an answer is tried again at once if the runtime went away during it, an hour later if not", async () => {
  const retriedAfter = async (code: "unreachable" | "deadline"): Promise<bigint> => {
    const memory = volatileMemory(
      aLedger({ observedAt: NOW, images: new Map([[artifact.id, aRecord()]]) }),
    );
    await removeImage(
      {
        memory,
        timer,
        ...given,
        runtime: { imageStatus: async () => artifact },
        writer: { removeImage: () => Promise.reject(new RuntimeError(code, "no answer")) },
      },
      aCandidate("artifact", { image: artifact }),
      new AbortController().signal,
    );
    const { images, watched } = memory.current();
    return (images.get(artifact.id)?.ghost?.retryWatched ?? -1n) - watched;
  };
  expect(await retriedAfter("unreachable")).toBe(0n);
  expect(await retriedAfter("deadline")).toBe(hours(1));
});
