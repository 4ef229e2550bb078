// The look before a removal: how old its lists may be, and what events add to it.

import { describe, expect, test } from "bun:test";

import { makeLook } from "../../src/loop/look.ts";
import type { EventFeed } from "../../src/loop/ports.ts";
import type { ContainerId } from "../../src/model/ids.ts";
import type { Container, Image } from "../../src/model/snapshot.ts";
import { aContainer, anImage, aSandbox, aSnapshot } from "../support/build/values.ts";
import { fakeEngine, type FakeWorld } from "../support/fake-engine.ts";

const never = new AbortController().signal;

interface Setting {
  /** Milliseconds that a call takes, by method. */
  readonly takes?: Readonly<Record<string, number>>;
  readonly containers?: Container[];
  readonly announced?: (sinceNs: bigint) => readonly Container[];
  readonly version?: string;
  readonly beforeList?: (world: FakeWorld) => void;
  readonly sandboxImage?: string;
  /** Images of the plan's snapshot. */
  readonly planned?: readonly Image[];
}

/** A node whose calls take time on its own clock. */
function lookAt(setting: Setting = {}) {
  const fake = fakeEngine({ images: [anImage("a")], containers: setting.containers ?? [] });
  const { observe, timer } = fake.engine;
  const slow = <T extends (...given: never[]) => Promise<unknown>>(method: string, call: T): T =>
    (async (...given: never[]) => {
      await timer.sleep(setting.takes?.[method] ?? 0, never);
      return call(...given);
    }) as unknown as T;
  const runtime = {
    ...observe.runtime,
    listImages: slow("ListImages", () => observe.runtime.listImages(never)),
    listContainers: slow("ListContainers", async () => {
      setting.beforeList?.(fake.world);
      return observe.runtime.listContainers(never);
    }),
    sandboxImage: async () => setting.sandboxImage ?? null,
    containerDetail: slow("ContainerStatus", (id: ContainerId) =>
      observe.runtime.containerDetail(id, never),
    ),
  };
  const events: EventFeed = { announcedSince: setting.announced ?? (() => []) };
  const first = aSnapshot({ images: setting.planned ?? [] });
  const look = makeLook({
    observe: { runtime, host: observe.host },
    events,
    timer,
    first: { ...first, runtime: { ...first.runtime, version: setting.version ?? "1.7.24" } },
  });
  const lists = (): number => fake.calls.filter((call) => call === "ListContainers").length;
  return { ...fake, look, lists, timer };
}

describe("how old a look may be", () => {
  test("the plan's own lists are never good enough: the first look lists again", async () => {
    const { look, lists } = lookAt();
    await look(never);
    expect(lists()).toBe(1);
  });

  test("lists that cost little are taken again for each removal", async () => {
    const { look, lists, timer } = lookAt({ takes: { ListContainers: 2 } });
    await look(never);
    await timer.sleep(5, never);
    await look(never);
    expect(lists()).toBe(2);
  });

  test("costly lists serve again for as long as they took, and never for more than a second", async () => {
    const { look, lists, timer } = lookAt({ takes: { ListContainers: 30_000 } });
    await look(never);
    await timer.sleep(700, never);
    await look(never);
    expect(lists()).toBe(1);
    await timer.sleep(100, never);
    await look(never);
    expect(lists()).toBe(2);
  });

  test("where asking about one container took longer than a second, containers are listed once more", async () => {
    const { look, lists, world } = lookAt({
      version: "2.1.0",
      takes: { ContainerStatus: 1_500 },
      containers: [aContainer("new")],
    });
    const seen = await look(never);
    expect(lists()).toBe(2);
    expect(seen.containers).toEqual(world.containers);
  });

  test("a node that cannot be looked at within a second gives no look at all", async () => {
    let count = 0;
    const { look, lists } = lookAt({
      version: "2.1.0",
      takes: { ContainerStatus: 1_500 },
      // Each list has one more container whose status takes its time.
      beforeList: (world) => world.containers.push(aContainer(`c${(count += 1)}`)),
    });
    const thrown = await look(never).catch((error: unknown) => error);
    expect(String(thrown)).toContain("within a second");
    expect(lists()).toBeLessThan(10);
  });
});

describe("a pass that lasts", () => {
  test("reads keep rules and pods again when they are older than a minute", async () => {
    const { look, world, timer } = lookAt();
    const rules = [{ pattern: "registry.example/a", source: "base.list:1" }];
    await look(never);
    world.keep = { ...world.keep, rules };
    await timer.sleep(50_000, never);
    expect((await look(never)).keep.rules).toEqual([]);
    await timer.sleep(11_000, never);
    expect((await look(never)).keep.rules).toEqual(rules);
  });

  test("takes an image that went and came back for another one than was planned", async () => {
    const image = anImage("a");
    const { look, world } = lookAt({ planned: [image] });
    const ids = async () => (await look(never)).images.map(({ id }) => id);
    expect(await ids()).toEqual([image.id]);
    world.images = [];
    expect(await ids()).toEqual([]);
    world.images = [image];
    expect(await ids()).toEqual([]);
  });
});

test("a list of containers that is suddenly empty is no list to remove an image on", async () => {
  const { look, world } = lookAt({ containers: [aContainer("c")] });
  await look(never);
  world.containers = [];
  const thrown = await look(never).catch((error: unknown) => error);
  expect(String(thrown)).toContain("named none where it named 1 a moment ago");
});

describe("events between lists", () => {
  const announced = aContainer("announced", { imageName: anImage("a").id });

  test("a container that was announced makes the lists be taken again although they are fresh", async () => {
    let told: readonly Container[] = [];
    const { look, lists } = lookAt({ takes: { ListContainers: 500 }, announced: () => told });
    await look(never);
    told = [announced];
    const seen = await look(never);
    expect(lists()).toBeGreaterThan(1);
    expect(seen.containers.map(({ id }) => id)).toContain(announced.id);
  });

  test("what a list knows already is taken from the list", async () => {
    const listed = { ...announced, state: "running" as const };
    const { look } = lookAt({ containers: [listed], announced: () => [announced] });
    expect((await look(never)).containers).toEqual([listed]);
  });
});

test("a sandbox that came after the plan is asked for the image that it names", async () => {
  const { look, world } = lookAt({ sandboxImage: "registry.k8s.io/pause:3.8" });
  world.sandboxes = [aSandbox("new")];
  const seen = await look(never);
  expect([...seen.sandboxImages.values()]).toEqual(["registry.k8s.io/pause:3.8"]);
});
