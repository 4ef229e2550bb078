// Twelve mistakes that other collectors made, each as a test that fails if the program makes it too. Here each one is tried from
// outside, through a whole pass or a real socket; where it is tested in more detail stands beside its number.

import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { join } from "node:path";

import { probeEndpoint } from "../src/cri/discover.ts";
import { Announcer } from "../src/gc/announcer.ts";
import { failureOf } from "../src/gc/pass-events.ts";
import { runPass } from "../src/gc/pass.ts";
import { RuntimeError } from "../src/model/errors.ts";
import type { Limits } from "../src/model/limits.ts";
import type { Pass } from "../src/model/pass.ts";
import type { Purpose } from "../src/model/plan.ts";
import type { Container } from "../src/model/snapshot.ts";
import { hours, instant, minutes, seconds } from "../src/model/time.ts";
import { acquireLock } from "../src/node/lock.ts";
import { faultsOf } from "./config/loading.ts";
import { connected } from "./cri/connection.ts";
import { aRelease, available } from "./sim/node.ts";
import { HOUR, MINUTE, Simulation } from "./sim/simulation.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aRecord,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  idOf,
  NOW,
} from "./support/build/values.ts";
import { type FakeEngine, fakeEngine, type FakeWorld } from "./support/fake-engine.ts";
import { hexId, imageIdOf } from "./support/fake-runtime/describe.ts";
import { scratch } from "./support/scratch.ts";

const never = new AbortController().signal;

/** A full disk, and images that were seen a day ago. */
function aNode(words: readonly string[], change: Partial<FakeWorld> = {}): FakeEngine {
  return fakeEngine({
    images: words.map((word) => anImage(word, { sizeBytes: 4n * GIB })),
    containers: [aContainer("always", { imageName: "registry.example/elsewhere:v1" })],
    filesystem: aFilesystem({ availableBytes: GIB }),
    ledger: aLedger({
      images: new Map(
        words.map((word) => [idOf(word), aRecord({ names: `registry.example/${word}:v1` })]),
      ),
    }),
    ...change,
  });
}

async function collect(
  { engine, world }: FakeEngine,
  purpose: Purpose = { kind: "periodic" },
): Promise<Pass> {
  const { pass } = await runPass(
    engine,
    {
      kind: "gc",
      purpose,
      containers: "all",
      images: true,
      dryRun: false,
      lockWaitMs: 0,
      now: () => world.wall,
      random: () => 0,
      announcer: new Announcer(engine.journal),
    },
    never,
  );
  return pass;
}

const everything: Purpose = { kind: "all-unused" };
const imagesGone = ({ writes }: FakeEngine): readonly string[] =>
  writes.flatMap((write) => (write.startsWith("RemoveImage ") ? [write.slice(12)] : []));

// More in test/policy/keep-pattern.test.ts.
describe("1: a pattern is cut at the first colon, so that a registry's port keeps a whole host", () => {
  test("a rule for one repository keeps that repository and nothing else", async () => {
    const tags = ["host:5000/app:v1", "host:5000/other:v1", "host:6000/app:v1", "host/app:v1"];
    const fake = aNode([], {
      images: tags.map((tag) => anImage(tag, { repoTags: [tag] })),
      keep: {
        rules: [{ pattern: "host:5000/app:*", source: "--keep" }],
        problems: [],
        directoriesRead: [],
      },
      limits: withMinimumAge(0),
    });
    await collect(fake, everything);
    expect(fake.world.images.map(({ repoTags }) => repoTags)).toEqual([["host:5000/app:v1"]]);
  });
});

// More in test/policy/usage.test.ts, test/property/faults.property.test.ts.
describe("2: an unreadable use is taken for unused, and removal errors are swallowed", () => {
  test("a container whose status fails keeps every image, and the pass counts as failed", async () => {
    const fake = aNode(["a", "b"], {
      runtime: { ...aSnapshot().runtime, version: "2.1.0" },
      fails: new Set(["ContainerStatus"]),
    });
    const pass = await collect(fake);
    expect(imagesGone(fake)).toEqual([]);
    expect(failureOf(pass)).toContain("cannot tell which images are in use");
  });

  test("a failed removal is in the history with the runtime's message", async () => {
    const fake = aNode(["a", "b"], { refuses: new Set([idOf("a")]) });
    const pass = await collect(fake);
    expect(failureOf(pass)).toContain("the runtime refuses");
  });
});

// More in test/cri/lists.test.ts.
describe("3: answers of more than 4 MiB are refused by the client's own default", () => {
  test("a node with twenty thousand dead containers is listed completely", async () => {
    await using connection = await connected({
      node: {
        images: [{ id: imageIdOf(0), repoTags: ["a:1"], sizeBytes: 1 }],
        sandboxes: [{ id: hexId("sandbox"), uid: "uid" }],
        containers: Array.from({ length: 20_000 }, (_, at) => ({
          id: hexId(`container ${at}`),
          sandboxId: hexId("sandbox"),
          image: "a:1",
          state: "exited" as const,
        })),
      },
    });
    const containers = await connection.runtime.reader.listContainers(connection.signal);
    expect(containers).toHaveLength(20_000);
  }, 20_000);
});

// More in test/policy/usage.test.ts.
describe("4: images are matched by their names alone", () => {
  test("an image that runs under one of its names, or is known by its ID alone, keeps all of them", async () => {
    const image = anImage("app", { repoTags: ["a.example/app:v1", "b.example/app:latest"] });
    for (const word of [{ imageName: "a.example/app:v1" }, { imageRef: image.id }]) {
      const fake = aNode([], {
        images: [image],
        containers: [aContainer("c", word)],
        limits: withMinimumAge(0),
      });
      await collect(fake, everything);
      expect(imagesGone(fake)).toEqual([]);
    }
  });

  test("a pinned image is kept whatever the trigger", async () => {
    const fake = aNode([], {
      images: [anImage("app", { pinned: true })],
      limits: withMinimumAge(0),
    });
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([]);
  });
});

describe("5: an image in use merely counts as recently used, and is removed last", () => {
  test("a disk that nothing else can relieve costs no image in use", async () => {
    const fake = aNode(["a", "b"], {
      containers: [
        aContainer("runs", { imageId: idOf("a") }),
        aContainer("ended", { name: "other", imageId: idOf("b"), state: "exited" }),
      ],
    });
    await collect(fake);
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([]);
  });
});

// More in test/policy/remember.test.ts and test/loop/detect.test.ts.
describe("6: an unknown image counts as old as the epoch, or is removed at random", () => {
  test("without a ledger every image is new, and none is removed", async () => {
    const fake = aNode(["a", "b", "c"], { ledger: aLedger({ images: new Map() }) });
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([]);
  });

  test("the same node gives the same order, whatever the order of its lists", async () => {
    const words = ["d", "a", "c", "b"];
    const one = aNode(words);
    const other = aNode(words.toReversed());
    await collect(one, everything);
    await collect(other, everything);
    expect(imagesGone(one)).toHaveLength(4);
    expect(imagesGone(other)).toEqual([...imagesGone(one)]);
  });
});

// More in test/gc/collect.test.ts and test/sim.
describe("7: a stale image, a stuck container or a full disk makes it crash or spin", () => {
  test("an image removed by others after the plan is skipped, and the next one is removed", async () => {
    const fake = aNode(["a", "b"]);
    let lists = 0;
    fake.world.before = (method) => {
      if (method === "ListImages" && (lists += 1) === 2)
        fake.world.images = fake.world.images.filter(({ id }) => id !== idOf("a"));
    };
    const pass = await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([idOf("b")]);
    expect(pass.error).toBeNull();
  });

  test("a container that cannot be removed is tried once in a pass", async () => {
    const fake = aNode(["a"], {
      containers: [
        aContainer("web", { name: "web", imageId: idOf("a") }),
        aContainer("stuck", { name: "web", imageId: idOf("a"), state: "exited" }),
      ],
      limits: {
        ...defaultLimits,
        containers: { ...defaultLimits.containers, maximumPerPodContainer: 0 },
      },
    });
    fake.world.before = (method) => {
      if (method === "RemoveContainer") throw new RuntimeError("failed", "it is being removed");
    };
    const pass = await collect(fake);
    expect(fake.writes.filter((write) => write.startsWith("RemoveContainer"))).toHaveLength(1);
    expect(pass.containers?.containers).toMatchObject([{ result: { kind: "failed" } }]);
  });

  test("a full disk without candidates is checked only once per period", async () => {
    const sim = new Simulation();
    sim.node.pull(aRelease("pinned", 1_000, { pinned: true }));
    const disk = sim.node.imageDisk();
    disk.others = available(sim.node, disk) - 1n;
    sim.start();
    await sim.run(10 * MINUTE);
    const before = sim.record.passes.length;
    await sim.run(HOUR);
    // 360 of pressure, 60 of containers, 12 of images.
    expect(sim.record.passes.length - before).toBeLessThanOrEqual(433);
    expect(sim.record.removals).toEqual([]);
  });
});

// More in test/cri/discover.test.ts and test/execute/images.test.ts.
describe("8: it hangs on a socket silently, or calls a removal that did nothing a success", () => {
  test("a socket on which nobody answers is an error that names it, within two seconds", async () => {
    const home = scratch();
    const path = join(home, "silent.sock");
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const startMs = performance.now();
    const thrown = await probeEndpoint(`unix://${path}`).catch((error: unknown) => error);
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(String(thrown)).toContain(path);
    server.close();
  });

  test("an image that is still listed after its removal is a ghost, and none of its bytes count", async () => {
    const fake = aNode(["a"]);
    const { engine } = fake;
    const noop: FakeEngine = {
      ...fake,
      engine: { ...engine, writer: { ...engine.writer, removeImage: async () => undefined } },
    };
    const pass = await collect(noop);
    expect(pass.images?.items.map(({ result }) => result.kind)).toEqual(["ghost"]);
    expect(pass.images?.reportedFreedBytes).toBe(0n);
    expect(fake.events.map(({ reason }) => reason)).toContain("GhostImage");
  });
});

describe("9: content is pruned behind the runtime's back, so that later pulls are corrupt", () => {
  test("images are removed only by one runtime call each, with their full ID", async () => {
    const image = { id: imageIdOf("a"), repoTags: ["a:1", "b:1"], sizeBytes: 5 };
    await using connection = await connected({ node: { images: [image] } });
    const { fake, runtime } = connection;
    const { engine } = fakeEngine({ limits: withMinimumAge(0) });
    const observe = { ...engine.observe, runtime: runtime.reader };
    await collect(
      {
        ...fakeEngine(),
        engine: { ...engine, observe, writer: runtime.writer },
      },
      everything,
    );
    const changes = fake.calls.filter(
      ({ method }) => !/^(List|Stream|Version|Status|ImageFsInfo|ImageStatus)/.test(method),
    );
    expect(changes.map(({ method, request }) => [method, request])).toMatchObject([
      ["RemoveImage", { image: { image: image.id } }],
    ]);
  });
});

// More in test/policy/containers.test.ts and test/host/lock.test.ts.
describe("10: the last init container of a live pod is removed and runs again; two collectors fight", () => {
  const init = (attempt: number): Container =>
    aContainer(`init-${attempt}`, {
      name: "init",
      attempt,
      state: "exited",
      createdAt: instant(NOW - hours(10) + minutes(attempt)),
    });

  test("it is kept with limits of 0 and in reclaim, and older ones are removed", async () => {
    const fake = aNode([], {
      sandboxes: [aSandbox("a")],
      containers: [aContainer("web", { name: "web" }), init(0), init(1)],
      limits: {
        ...defaultLimits,
        containers: {
          ...defaultLimits.containers,
          maximumPerPodContainer: 0,
          maximumContainers: 0,
        },
      },
    });
    await collect(fake);
    await collect(fake, everything);
    await collect(fake, { kind: "pressure", signals: ["nodefs.available"] });
    expect(fake.writes).toEqual(["RemoveContainer container-init-0"]);
  });

  test("two processes never collect at once", async () => {
    const home = scratch();
    const places = {
      systemRun: join(home, "run"),
      runDirectory: join(home, "own"),
      userId: process.getuid?.() ?? 0,
    };
    const request = {
      name: "pass",
      endpoint: "unix:///run/x.sock",
      holder: "a test",
      waitMs: 0,
      signal: never,
    } as const;
    const first = await acquireLock(request, places);
    if (first.kind !== "acquired") throw new Error("the lock is free");
    const fake = aNode(["a"]);
    const acquire = async (): Promise<(() => void) | null> => {
      const attempt = await acquireLock(request, places);
      return attempt.kind === "acquired" ? () => attempt.lock.release() : null;
    };
    const locked = { ...fake, engine: { ...fake.engine, lock: { acquire } } };
    expect((await collect(locked)).error).toContain("another pass");
    expect(fake.writes).toEqual([]);
    first.lock.release();
    expect((await collect(locked)).error).toBeNull();
  });
});

// More in test/config/validate.test.ts.
describe("11: a low threshold that is not below the high one is taken, and it crashes or never stops", () => {
  test.each([
    ["80", "80"],
    ["70", "80"],
  ])("high %s and low %s are refused, with both named", (high, low) => {
    const faults = faultsOf({
      flags: [
        ["image-gc-high-threshold", high],
        ["image-gc-low-threshold", low],
      ],
    });
    expect(faults.join()).toContain("low");
    expect(faults).not.toEqual([]);
  });
});

// More in test/loop/collect.test.ts.
describe("12: a label is set once, and lost after a restart or another import", () => {
  test("protection is read in each pass, not remembered from an earlier one", async () => {
    const fake = aNode(["a"], {
      images: [anImage("a", { pinned: true })],
      limits: withMinimumAge(0),
    });
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([]);
    // The pin was lost; a rule that came since then keeps it all the same.
    fake.world.images = [anImage("a")];
    fake.world.keep = {
      rules: [{ pattern: "registry.example/a", source: "--keep" }],
      problems: [],
      directoriesRead: [],
    };
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([]);
    fake.world.keep = { rules: [], problems: [], directoriesRead: [] };
    await collect(fake, everything);
    expect(imagesGone(fake)).toEqual([idOf("a")]);
  });
});

function withMinimumAge(count: number): Limits {
  return { ...defaultLimits, images: { ...defaultLimits.images, minimumAge: seconds(count) } };
}
