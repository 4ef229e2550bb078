// One removal whose ID did nothing: an OCI artifact of CRI-O goes by name only, and never by a name of another image.
import { describe, expect, test } from "bun:test";

import { removeImage } from "../../src/execute/image/image-removal.ts";
import { timer } from "../../src/host/time/timer.ts";
import { volatileMemory } from "../../src/loop/ports.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { aCandidate, aLedger, anImage, aRecord } from "../support/build/values.ts";

const names = ["registry.example/artifact:v1", "registry.example/artifact:v2"];
const artifact = anImage("artifact", { repoTags: names });

interface World {
  /** What a name means by now, where it is another image. */
  readonly means?: Readonly<Record<string, Image>>;
  /** Names whose removal is refused. */
  readonly refused?: readonly string[];
  /** The name whose removal takes the image. */
  readonly goesBy?: string;
  readonly image?: Image;
  /** How often the rules still allow it after its removal by ID. */
  readonly allowed?: number;
}

async function removal(world: World) {
  const { means = {}, refused = [], goesBy, image = artifact, allowed = Infinity } = world;
  let judged = 0;
  const asked: string[] = [];
  let isThere = true;
  const memory = volatileMemory(aLedger({ images: new Map([[image.id, aRecord()]]) }));
  const removed = await removeImage(
    {
      memory,
      timer,
      mayStillGo: async () => {
        judged += 1;
        return judged <= allowed;
      },
      runtime: { imageStatus: async (reference) => means[reference] ?? (isThere ? image : null) },
      writer: {
        removeImage: async (_, name) => {
          if (name === undefined) return;
          asked.push(name);
          if (name === goesBy) isThere = false;
          if (refused.includes(name)) throw new RuntimeError("failed", "refused");
        },
      },
    },
    aCandidate("artifact", { image }),
    new AbortController().signal,
  );
  return { asked, kind: removed.kind, record: memory.current().images.get(image.id) };
}

test("an image that cannot be removed by ID is removed by the first name that works", async () => {
  expect(await removal({ goesBy: names[0] ?? "" })).toEqual({
    asked: names.slice(0, 1),
    kind: "gone",
    record: undefined,
  });
  for (const refused of [[], names])
    expect(await removal({ goesBy: names[1] ?? "", refused })).toMatchObject({
      asked: names,
      kind: "gone",
    });
});

test("a name that now belongs to another image is not removed", async () => {
  const means = { [names[0] ?? ""]: anImage("other") };
  const { asked, kind } = await removal({ means, goesBy: names[1] ?? "" });
  expect(asked).toEqual(names.slice(1));
  expect(kind).toBe("gone");
});

test("an answer with another image removes nothing by the names of that one", async () => {
  const other = anImage("other", { repoTags: ["registry.example/other:v1"] });
  const means = { [artifact.id]: other, "registry.example/other:v1": other };
  expect(await removal({ means, goesBy: "registry.example/other:v1" })).toMatchObject({
    asked: [],
    kind: "ghost",
  });
});

test("an image whose names are refused or removed in vain is a ghost", async () => {
  expect(await removal({ refused: names })).toMatchObject({
    asked: names,
    kind: "ghost",
    record: { ghost: { attempts: 1 } },
  });
  expect(await removal({})).toMatchObject({ asked: names, kind: "ghost" });
});

test("an image that a rule keeps by now is not removed by any name, nor by the next one", async () => {
  for (const allowed of [0, 1])
    expect(await removal({ allowed, goesBy: names[1] ?? "" })).toMatchObject({
      asked: names.slice(0, allowed),
      kind: "ghost",
    });
});

test("an image is not removed by name while the node cannot be listed", async () => {
  const asked: (string | undefined)[] = [];
  const removed = await removeImage(
    {
      memory: volatileMemory(aLedger()),
      timer,
      mayStillGo: () => Promise.reject(new RuntimeError("unreachable", "the runtime went away")),
      runtime: { imageStatus: async () => artifact },
      writer: { removeImage: async (_, name) => void asked.push(name) },
    },
    aCandidate("artifact", { image: artifact }),
    new AbortController().signal,
  );
  expect(asked).toEqual([undefined]);
  expect(removed.kind).toBe("ghost");
});

test("at most eight names of an image are tried", async () => {
  const repoTags = Array.from({ length: 20 }, (_, index) => `registry.example/artifact:${index}`);
  const { asked } = await removal({ image: { ...artifact, repoTags } });
  expect(asked).toEqual(repoTags.slice(0, 8));
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
      mayStillGo: async () => true,
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
        mayStillGo: async () => true,
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
        mayStillGo: async () => true,
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
