// A runtime that does not answer is asked little, and left alone for a while.

import { describe, expect, spyOn, test } from "bun:test";

import { Backoff, hurried, HURRY } from "../../src/gc/calls.ts";
import {
  knownFromLedger,
  readContainerDetails,
  readOrigins,
  readSandboxImages,
} from "../../src/gc/details.ts";
import { LogUsers } from "../../src/gc/log-users.ts";
import { makePassId, Steps } from "../../src/gc/steps.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { containerId, podUid, type SandboxId } from "../../src/model/ids.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import type { ContainerDetail } from "../../src/model/ports.ts";
import type { Container } from "../../src/model/snapshot.ts";
import { toMs } from "../../src/model/time.ts";
import { ownership } from "../../src/policy/container/ownership.ts";
import { SimClock } from "../sim/clock.ts";
import { dead } from "../support/build/pods.ts";
import { anImage, aSandbox, NOW } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

const { signal } = new AbortController();

describe("a container that timed out", () => {
  const LATER = (minutes: number): string =>
    `the runtime did not answer; crigc tries again in ${minutes} min`;

  test("is left alone for five minutes, each time twice as long, and an hour at most", () => {
    let ms = 7_000;
    const backoff = new Backoff({ monotonicNs: () => BigInt(ms) * 1_000_000n });
    expect(backoff.leftAlone("a")).toBeUndefined();
    for (const minutes of [5, 10, 20, 40, 60, 60]) {
      backoff.note("a", true);
      expect(backoff.leftAlone("a")).toBe(LATER(minutes));
      ms += (minutes - 1) * 60_000;
      expect(backoff.leftAlone("a")).toBe(LATER(1));
      ms += 60_000;
      expect(backoff.leftAlone("a")).toBeUndefined();
    }
  });

  test.each([
    ["answers", (backoff: Backoff) => backoff.note("a", false)],
    ["is no longer listed", (backoff: Backoff) => backoff.retain(() => new Set(["b"]))],
  ])("and then %s is left alone no longer, and others still are", (_, happens) => {
    const backoff = new Backoff({ monotonicNs: () => 0n });
    for (const id of ["a", "b"]) backoff.note(id, true);
    happens(backoff);
    expect(["a", "b"].map((id) => backoff.leftAlone(id))).toEqual([undefined, LATER(5)]);
  });

  test("is tried again at once after the first restart of the runtime, but not after each", () => {
    const backoff = new Backoff({ monotonicNs: () => 1n });
    const after = (instance: string) => {
      backoff.observed(instance);
      const left = backoff.leftAlone("a");
      if (left === undefined) backoff.note("a", true);
      return left;
    };
    expect(["1", "1", "", "2", "2", "3"].map(after)).toEqual([
      undefined,
      LATER(5),
      LATER(5),
      undefined,
      LATER(10),
      LATER(10),
    ]);
  });
});

/** Records the IDs asked for, and answers a turn later. */
function asking<T>(answer: (count: number) => T) {
  const asked: string[] = [];
  const call = async (id: string): Promise<T> => {
    asked.push(id);
    const count = asked.length;
    await new Promise((resolve) => void setImmediate(resolve));
    return answer(count);
  };
  return { asked, call };
}

const fails = (kind: "failed" | "deadline" | "unreachable") => (): never => {
  throw new RuntimeError(kind, "no status");
};
const many = (count: number): Container[] =>
  Array.from({ length: count }, (_each, index) => dead("a", `c${index}`));

describe("statuses of containers", () => {
  const known = knownFromLedger(emptyLedger);
  const need = { volumes: true, ends: false };
  const silent = new Backoff({ monotonicNs: () => 0n });

  test.each([
    ["hang, no more are asked than are under way, and the volumes of all are unknown", "deadline"],
    ["are refused, all are asked, and the volumes of all are unknown", "failed"],
  ] as const)("that %s", async (_, kind) => {
    const { asked, call } = asking(fails(kind));
    const input = { containers: many(100), known, need, silent };
    const { imageVolumes } = await readContainerDetails({ containerDetail: call }, input, signal);
    if (kind === "deadline") expect(asked.length).toBeLessThanOrEqual(17);
    else expect(asked).toHaveLength(100);
    expect([...imageVolumes.values()].filter((one) => one.kind === "unknown")).toHaveLength(100);
  });

  test("name their image volumes", async () => {
    const [one, two] = many(2);
    if (one === undefined || two === undefined) throw new Error("there are two");
    const data = ["r.example/data:1"];
    const volumesOf = (id: string) => (id === one.id ? data : []);
    const { runtime } = fakeEngine({
      containers: [one, two],
      detail: (id) => ({ imageVolumes: volumesOf(id) }),
    }).engine.observe;
    const input = { containers: [one, two], known, need, silent };
    const { imageVolumes } = await readContainerDetails(runtime, input, signal);
    expect([...imageVolumes.values()]).toEqual([
      { kind: "known", references: data },
      { kind: "known", references: [] },
    ]);
  });

  describe("where a rule counts from a container's end", () => {
    const ends = { volumes: true, ends: true };
    const running = { ...dead("a", "running"), state: "running" as const };
    const [old, recent] = [dead("a", "old"), dead("a", "recent")];
    const containers = [running, old, recent];
    const volumes = { kind: "known", references: ["r.example/data:1"] } as const;
    const all = {
      imageVolumes: new Map(containers.map(({ id }) => [id, volumes])),
      containerEnds: new Map([[old.id, NOW]]),
    };

    test("crigc asks only about the dead container whose end is unknown", async () => {
      const { observe } = fakeEngine({ containers }).engine;
      const { asked, call } = asking(() => null);
      const containerDetail: typeof observe.runtime.containerDetail = async (id) =>
        (await call(id)) ?? observe.runtime.containerDetail(id, signal);
      const input = { containers, known: all, need: ends, silent };
      const { containerEnds } = await readContainerDetails({ containerDetail }, input, signal);
      expect(asked).toEqual([recent.id]);
      expect([...containerEnds.keys()]).toEqual([old.id, recent.id]);
    });

    test("one that hangs is repeated after five minutes, and delays no pass until then", async () => {
      const { asked, call } = asking(fails("deadline"));
      let nowNs = 0n;
      const own = new Backoff({ monotonicNs: () => nowNs });
      const input = { containers, known: all, need: ends, silent: own };
      for (const [atNs, count] of [
        [0n, 1],
        [1n, 1],
        [300_000_000_000n, 2],
      ] as const) {
        nowNs = atNs;
        const read = await readContainerDetails({ containerDetail: call }, input, signal);
        expect(read.imageVolumes).toBe(all.imageVolumes);
        expect(asked).toHaveLength(count);
      }
    });

    test("its image volumes stay known if it does not answer", async () => {
      const { call } = asking(fails("failed"));
      const input = { containers, known: all, need: ends, silent };
      const { imageVolumes } = await readContainerDetails({ containerDetail: call }, input, signal);
      expect(imageVolumes).toBe(all.imageVolumes);
    });
  });
});

describe("statuses of sandboxes", () => {
  const sandboxes = [aSandbox("one")];

  test.each([
    ["hangs is repeated after five minutes, and delays no pass until then", "deadline", 1],
    ["is refused is repeated each time", "failed", 2],
  ] as const)("one that %s", async (_, kind, count) => {
    const { asked, call } = asking(fails(kind));
    let nowNs = 0n;
    const silent = new Backoff({ monotonicNs: () => nowNs });
    const look = () =>
      readSandboxImages(
        { sandboxImage: call },
        { sandboxes, known: new Map(), silent, notAsked: new Set() },
        signal,
      );
    expect((await look()).size).toBe(0);
    await look();
    expect(asked).toHaveLength(count);
    nowNs = 300_000_000_000n;
    await look();
    expect(asked).toHaveLength(count + 1);
  });

  test("after two timeouts the remaining sandboxes wait for the next pass", async () => {
    const { asked, call } = asking(fails("deadline"));
    const silent = new Backoff({ monotonicNs: () => 0n });
    const all = Array.from({ length: 40 }, (_, index) => aSandbox(`s${index}`));
    const look = (notAsked: Set<SandboxId>) =>
      readSandboxImages(
        { sandboxImage: call },
        { sandboxes: all, known: new Map(), silent, notAsked },
        signal,
      );
    const left = new Set<SandboxId>();
    await look(left);
    const first = asked.length;
    expect(first + left.size).toBe(40);
    await look(left);
    expect(asked).toHaveLength(first);
    await look(new Set());
    expect(asked.length).toBeGreaterThan(first);
    expect(new Set(asked).size).toBe(asked.length);
  });

  test("a lost connection backs off no sandbox: every pass asks all of them", async () => {
    const { asked, call } = asking(fails("unreachable"));
    const silent = new Backoff({ monotonicNs: () => 0n });
    const input = {
      sandboxes: ["a", "b", "c"].map((id) => aSandbox(id)),
      known: new Map(),
      silent,
      notAsked: new Set<SandboxId>(),
    };
    for (const count of [3, 6]) {
      await readSandboxImages({ sandboxImage: call }, input, signal);
      expect(asked).toHaveLength(count);
    }
  });

  test("one that came in place of another is asked; it may name no image", async () => {
    const { asked, call } = asking(() => null);
    const silent = new Backoff({ monotonicNs: () => 0n });
    const known = new Map(["a", "b"].map((id) => [aSandbox(id).id, "r.example/pause:1"]));
    const input = {
      sandboxes: [aSandbox("b"), aSandbox("c")],
      known,
      silent,
      notAsked: new Set<SandboxId>(),
    };
    for (const count of [1, 2]) {
      expect([...(await readSandboxImages({ sandboxImage: call }, input, signal))]).toEqual([
        [aSandbox("b").id, "r.example/pause:1"],
        [aSandbox("c").id, ""],
      ]);
      expect(asked).toEqual(Array(count).fill(aSandbox("c").id));
    }
  });
});

describe("a stop ends the look while", () => {
  const stop = new AbortController();
  const call = async (): Promise<never> => {
    stop.abort();
    throw new RuntimeError("cancelled", "the call was cancelled");
  };
  const known = knownFromLedger(emptyLedger);
  const silent = new Backoff({ monotonicNs: () => 0n });
  const need = { volumes: true, ends: false };
  const containers = { containers: many(1), known, need, silent };
  const notAsked = new Set<SandboxId>();
  const sandboxes = { sandboxes: [aSandbox("one")], known: new Map(), silent, notAsked };
  const images = { images: [anImage("a")], known: new Map() };

  test.each<[string, () => Promise<unknown>]>([
    [
      "the statuses of containers are read",
      () => readContainerDetails({ containerDetail: call }, containers, stop.signal),
    ],
    [
      "those of sandboxes are read",
      () => readSandboxImages({ sandboxImage: call }, sandboxes, stop.signal),
    ],
    ["layers are read", () => readOrigins({ imageOrigin: call }, images, stop.signal)],
  ])("%s", async (_, look) => {
    expect(String(await look().catch((thrown: unknown) => thrown))).toContain("was cancelled");
  });
});

describe("log paths of containers", () => {
  const path = "/var/log/pods/default_pod-a_uid-a/c/0.log";
  const one = dead("a", "c");

  /** `answer`: what the status says beside its defaults, by how many were asked for. */
  function usersOf(
    containers: readonly Container[],
    answer: (count: number) => Partial<ContainerDetail>,
  ) {
    const clock = { ns: 1_000_000_000n };
    const { asked, call } = asking(answer);
    const users = new LogUsers(
      {
        containerDetail: async (id) => {
          const detail = { id, imageVolumes: [], finishedAt: null, logPath: path };
          const change = await call(id);
          return { ...detail, state: "exited", labels: {}, annotations: {}, ...change };
        },
        sandboxLogDirectory: async () => null,
      },
      { monotonicNs: () => clock.ns },
    );
    const owners = ownership({ sandboxes: [] }, "none");
    const ask = (stop = signal) => users.ofContainers(containers, owners, stop);
    return { users, ask, asked, clock };
  }

  test("that failed are read again after a minute, and not before", async () => {
    const { ask, asked, clock } = usersOf([one], fails("failed"));
    for (const seconds of [0n, 59n, 60n]) {
      clock.ns = 1_000_000_000n * (1n + seconds);
      expect(await ask()).toMatchObject([{ use: { kind: "pod" } }]);
    }
    expect(asked).toHaveLength(2);
  });

  test.each([
    ["at once", 4n, 2],
    ["after a minute if it had hung", 5n, 1],
  ])("whose reading was cut off are read again %s", async (_, seconds, times) => {
    const stop = new AbortController();
    const { ask, asked, clock } = usersOf([one], () => {
      clock.ns += 1_000_000_000n * seconds;
      stop.abort();
      return fails("failed")();
    });
    await ask(stop.signal);
    await ask();
    expect(asked).toHaveLength(times);
  });

  test("are unknown if the runtime answers for another container", async () => {
    const { ask } = usersOf([one], () => ({ id: containerId("another") }));
    expect(await ask()).toMatchObject([{ use: { kind: "pod" } }]);
  });

  test.each([
    ["hangs, no more are asked than are under way", "deadline", 17],
    ["refuses, all are asked", "failed", 21],
  ] as const)(
    "are read first of those that may log anywhere; if the runtime %s",
    async (_, kind, count) => {
      const foreign = dead("b", "foreign", { podUid: podUid("") });
      const { ask, asked } = usersOf([...many(20), foreign], fails(kind));
      expect((await ask()).filter(({ use }) => use.kind === "anywhere")).toHaveLength(1);
      expect(asked[0]).toBe(foreign.id);
      expect(asked).toHaveLength(count);
    },
  );
});

test("the waits of one name within a pass are one step with their total, and waits under a millisecond are none", async () => {
  const clock = new SimClock();
  const steps = new Steps({ ...fakeEngine().engine, timer: clock });
  const removing = steps.run("execute", async () => {
    for (const ms of [300, 400]) {
      await steps.wait("lists", () => clock.sleep(ms));
      await steps.wait("space", () => clock.sleep(0.2));
    }
    await steps.wait("creation", () => clock.sleep(50)).catch(() => undefined);
  });
  await clock.run(1_000);
  await removing;
  expect(steps.list().map(({ name, took }) => [name, toMs(took)])).toEqual([
    ["execute", 750],
    ["lists", 700],
    ["creation", 50],
  ]);
});

test.each([
  ["disk pressure waits", HURRY, 5_000],
  ["the pass was stopped", undefined, 60_000],
])("a removal that begins once %s is awaited accordingly", async (_, reason, expectedMs) => {
  const clock = new SimClock();
  const stop = new AbortController();
  stop.abort(reason);
  const { writer } = fakeEngine().engine;
  const slow = { ...writer, removeContainer: async () => clock.sleep(60_000) };
  const startNs = clock.monotonicNs();
  let tookMs = 0;
  const ended = () => void (tookMs = Number(clock.monotonicNs() - startNs) / 1e6);
  const call = hurried(slow, clock, stop.signal).removeContainer(containerId("a"));
  const removing = call.then(ended, ended);
  await clock.run(61_000);
  await removing;
  expect(tookMs).toBe(expectedMs);
});

test("a pass is named after the second in which it began", () => {
  using random = spyOn(Math, "random").mockReturnValueOnce(1 / 2 ** 24);
  expect(makePassId(NOW)).toMatch(/^20260101T\d{6}Z-000001$/);
  expect(makePassId(NOW)).toMatch(/Z-[0-9a-f]{6}$/);
  expect(random).toHaveBeenCalledTimes(2);
});

test("layers that the runtime refuses to report are read for a few images only", async () => {
  const images = Array.from({ length: 100 }, (_, at) => anImage(`image${at}`));
  let asked = 0;
  const imageOrigin = async (): Promise<never> => {
    asked += 1;
    throw new RuntimeError("failed", "no such snapshot");
  };
  const read = await readOrigins({ imageOrigin }, { images, known: new Map() }, signal);
  expect(asked).toBe(16);
  expect(read.failed).toHaveLength(asked);
});

test("layers that are known are not read again, and images that were not asked have not failed", async () => {
  const images = Array.from({ length: 40 }, (_, at) => anImage(`image${at}`));
  const known = new Map(images.slice(0, 10).map(({ id }) => [id, { chain: null, builtAt: null }]));
  const { asked, call } = asking(fails("deadline"));
  const read = await readOrigins({ imageOrigin: call }, { images, known }, signal);
  expect(asked.filter((id) => images.slice(0, 10).some((image) => image.id === id))).toEqual([]);
  expect(read.failed.map(String)).toEqual(asked);
  expect(asked.length).toBeLessThan(30);
});
