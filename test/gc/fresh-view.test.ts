// The look before a removal: how old its lists may be, and what events add to it.

import { describe, expect, test } from "bun:test";

import { Fresh, freshNode } from "../../src/gc/fresh-view.ts";
import { observerOf } from "../../src/gc/prepare.ts";
import type { Container, Image } from "../../src/model/snapshot.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  recordsOf,
} from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

const never = new AbortController().signal;

interface Setting {
  /** Milliseconds that a call takes, by method. */
  readonly takes?: Readonly<Record<string, number>>;
  readonly containers?: Container[];
  readonly version?: string;
  readonly sandboxImage?: string;
  /** What the runtime finds under every name that it lists for no image. */
  readonly unlisted?: () => Image | null;
  /** Images of the plan's snapshot. */
  readonly planned?: readonly Image[];
}

/** A node whose calls take time on its own clock. */
function lookAt(setting: Setting = {}) {
  const fake = fakeEngine({ images: [anImage("a")], containers: setting.containers ?? [] });
  const { observe, timer } = fake.engine;
  fake.world.before = async (method) => timer.sleep(setting.takes?.[method] ?? 0, never);
  const runtime = {
    ...observe.runtime,
    imageStatus: async () => setting.unlisted?.() ?? null,
    sandboxImage: async () => setting.sandboxImage ?? null,
  };
  const first = aSnapshot({ images: setting.planned ?? [] });
  const engine = { ...fake.engine, observe: { ...observe, runtime } };
  const node = freshNode({
    engine,
    observer: observerOf(engine),
    creations: { settled: async (snapshot) => ({ snapshot, block: null }) },
    steps: { wait: (_, wait) => wait() },
    first: { ...first, runtime: { ...first.runtime, version: setting.version ?? "1.7.24" } },
  });
  const look = async (signal: AbortSignal) => (await node.get(signal)).snapshot;
  const missed = async () => [...(await node.get(never)).missed];
  const lists = (): number => fake.calls.filter((call) => call === "ListContainers").length;
  return { ...fake, look, missed, lists, timer };
}

describe("how old a look may be", () => {
  test("where asking about one container took longer than a second, containers are listed once more", async () => {
    const { look, lists, world, said } = lookAt({
      version: "2.1.0",
      takes: { ContainerStatus: 1_500 },
      containers: [aContainer("new")],
    });
    const seen = await look(never);
    expect(lists()).toBe(2);
    expect(seen.containers).toEqual(world.containers);
    expect(said).toEqual([]);
  });

  test("lists that take three quarters of a second serve as they are", async () => {
    const { look, lists, said } = lookAt({ takes: { ListContainers: 750 } });
    await look(never);
    expect([lists(), said]).toEqual([1, []]);
  });

  test("a node whose lists take three seconds is collected on lists up to a second older than that, and the pass says so once", async () => {
    const { look, lists, said, timer } = lookAt({ takes: { ListContainers: 3_000 } });
    await look(never);
    // Another look would take as long.
    expect(lists()).toBe(1);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("3.0 s");
    await timer.sleep(700, never);
    await look(never);
    expect(lists()).toBe(1);
    await timer.sleep(100, never);
    await look(never);
    expect(lists()).toBe(2);
    expect(said).toHaveLength(1);
  });
});

describe("a pass that lasts", () => {
  test("holds what containers and sandboxes use once, for as long as that is the same", async () => {
    const [one, two] = ["one", "two"].map((name) => aContainer(name, { state: "running" }));
    if (one === undefined || two === undefined) throw new Error("there are two");
    const { look, world, timer } = lookAt({ version: "2.1.0", containers: [one] });
    const next = async () => {
      await timer.sleep(1_000, never);
      const { imageVolumes, sandboxImages } = await look(never);
      return { imageVolumes, sandboxImages };
    };
    const first = await next();
    expect([...first.imageVolumes]).toEqual([[one.id, { kind: "known", references: [] }]]);
    for (let count = 0; count < 3; count += 1) {
      const same = await next();
      expect(same.imageVolumes).toBe(first.imageVolumes);
      expect(same.sandboxImages).toBe(first.sandboxImages);
    }
    world.containers = [one, two];
    expect([...(await next()).imageVolumes.keys()]).toEqual([one.id, two.id]);
    const three = aContainer("three", { state: "running" });
    world.containers = [two, three];
    expect([...(await next()).imageVolumes.keys()]).toEqual([two.id, three.id]);
  });

  test("holds what an unlisted name stands for once, until the name stands for another image", async () => {
    let image: Image | null = anImage("a");
    const { look, timer } = lookAt({
      containers: [aContainer("c", { imageName: "registry.example/unlisted:v1" })],
      unlisted: () => image,
    });
    const next = async () => {
      await timer.sleep(1_000, never);
      return (await look(never)).resolutions;
    };
    const first = await next();
    expect([...first.values()]).toEqual([{ kind: "image", id: anImage("a").id }]);
    expect(await next()).toBe(first);
    image = anImage("b");
    expect([...(await next()).values()]).toEqual([{ kind: "image", id: image.id }]);
    image = null;
    const absent = await next();
    expect([...absent.values()]).toEqual([{ kind: "absent" }]);
    expect(await next()).toBe(absent);
  });

  test("reads pods again when they are older than a minute", async () => {
    const { look, world, timer } = lookAt();
    const before = (await look(never)).pods;
    world.pods = { kind: "failed", source: "kubelet-dir", message: "refused" };
    await timer.sleep(50_000, never);
    expect((await look(never)).pods).toEqual(before);
    await timer.sleep(11_000, never);
    expect((await look(never)).pods).toMatchObject({ kind: "failed", message: "refused" });
  });

  test("reads pods of a directory no sooner because a container is being created", async () => {
    const { look, world, timer } = lookAt();
    const pods = { kind: "ready", source: "kubelet-dir", pods: [] } as const;
    const pod = aSandbox("pod");
    world.sandboxes = [pod];
    world.pods = pods;
    await timer.sleep(61_000, never);
    await look(never);
    world.pods = { ...pods, source: "cri" };
    world.marks = [{ podUid: pod.podUid, name: "web", at: world.wall }];
    await timer.sleep(1_000, never);
    const seen = await look(never);
    expect(seen.creations?.inProgress).toHaveLength(1);
    expect(seen.pods).toBe(pods);
  });

  test("treats an image that was removed and pulled again as another image than planned, which the next pass finds new", async () => {
    const image = anImage("a");
    const { look, missed, world, timer, engine } = lookAt({ planned: [image] });
    engine.memory.replace(aLedger({ images: recordsOf(["a"]) }));
    const seen = async () => {
      await timer.sleep(1_000, never);
      const listed = (await look(never)).images.map(({ id }) => id);
      return { listed, missed: await missed(), known: [...world.ledger.images.keys()] };
    };
    const [none, all] = [[], [image.id]];
    expect(await seen()).toEqual({ listed: all, missed: none, known: all });
    world.images = [];
    expect(await seen()).toEqual({ listed: none, missed: all, known: none });
    world.images = [image];
    expect(await seen()).toEqual({ listed: all, missed: all, known: none });
  });
});

test("what is to be read again is not taken from a reading that began before", async () => {
  const { timer } = fakeEngine().engine;
  const begun: PromiseWithResolvers<number>[] = [];
  const fresh = new Fresh<number>({
    timer,
    say: () => undefined,
    read: async () => {
      const next = Promise.withResolvers<number>();
      begun.push(next);
      return { value: await next.promise, startNs: timer.monotonicNs(), listsNs: 0n };
    },
  });
  const before = fresh.get(never);
  const after = [fresh.again(never), fresh.again(never)];
  begun[0]?.resolve(1);
  expect(await before).toBe(1);
  await new Promise((resolve) => void setImmediate(resolve));
  begun[1]?.resolve(2);
  expect(await Promise.all(after)).toEqual([2, 2]);
  expect(begun).toHaveLength(2);
});

test("a list of containers that is suddenly empty is no list to remove an image on", async () => {
  const { look, world, timer } = lookAt({ containers: [aContainer("c")] });
  await look(never);
  world.containers = [];
  await timer.sleep(1_000, never);
  const thrown = await look(never).catch((error: unknown) => error);
  expect(String(thrown)).toContain("lists no container, but listed 1 a moment ago");
});

test("a sandbox that came after the plan is asked for the image that it names", async () => {
  const { look, world } = lookAt({ sandboxImage: "registry.k8s.io/pause:3.8" });
  world.sandboxes = [aSandbox("new")];
  const seen = await look(never);
  expect([...seen.sandboxImages.values()]).toEqual(["registry.k8s.io/pause:3.8"]);
});
