// A list costs what changed: what has the same bytes is the same object, and what went is forgotten.

import { describe, expect, test } from "bun:test";

import { hexId, imageIdOf, type NodeDescription } from "../support/fake-runtime/describe.ts";
import { connected, type Connection, failureOf } from "./connection.ts";

const node: NodeDescription = {
  images: [0, 1, 2].map((index) => ({ id: imageIdOf(index), repoTags: [`a:${index}`] })),
  sandboxes: [0, 1, 2].map((index) => ({ id: hexId(`sandbox ${index}`), uid: `uid-${index}` })),
  containers: [0, 1, 2].map((index) => ({
    id: hexId(`container ${index}`),
    sandboxId: hexId(`sandbox ${index}`),
    image: "a:0",
  })),
};

type Lists = "listImages" | "listContainers" | "listSandboxes";
const lists: readonly Lists[] = ["listImages", "listContainers", "listSandboxes"];
const ways: readonly (readonly [Lists, boolean])[] = lists.flatMap((list) => [
  [list, false],
  [list, true],
]);

const listed = async ({ runtime, signal }: Connection, list: Lists) =>
  new Map<string, object>((await runtime.reader[list](signal)).map((item) => [item.id, item]));

/** Turns the order of every list around. */
const reversed = (answer: object): object =>
  Object.fromEntries(
    Object.entries(answer).map(([field, items]) => [field, (items as object[]).toReversed()]),
  );

function changeOne({ fake }: Connection): void {
  const [image] = fake.node.images;
  if (image !== undefined) fake.node.images[0] = { ...image, pinned: true };
  fake.node.setContainerState(hexId("container 0"), "exited");
  fake.node.stopSandbox(hexId("sandbox 0"));
}

describe.each(ways)("%s (streams: %p)", (list, streams) => {
  const traits = { runtimeStreams: streams, imageStreams: streams, batchSize: 2 };

  test("returns the same array while nothing changed, in any order", async () => {
    await using connection = await connected({ node, traits });
    const { runtime, signal, fake } = connection;
    const first = await runtime.reader[list](signal);
    expect(first).toHaveLength(3);
    fake.fail("*", { kind: "edit", edit: reversed });
    expect(await runtime.reader[list](signal)).toBe(first);
  });

  test("returns a new object for what changed, and the same ones for the rest", async () => {
    await using connection = await connected({ node, traits });
    const before = await listed(connection, list);
    changeOne(connection);
    const after = await listed(connection, list);
    expect([...after].filter(([id, item]) => before.get(id) === item)).toHaveLength(2);
    expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted());
  });

  test("decodes an entry again that was missing in one list", async () => {
    await using connection = await connected({ node, traits });
    const before = await listed(connection, list);
    const lift = connection.fake.fail("*", {
      kind: "edit",
      edit: (answer) =>
        Object.fromEntries(
          Object.entries(answer).map(([field, items]) => [field, (items as object[]).slice(0, 1)]),
        ),
    });
    const without = await listed(connection, list);
    expect(without.size).toBe(streams ? 2 : 1);
    lift();
    const after = await listed(connection, list);
    const same = [...after].filter(([id, item]) => before.get(id) === item);
    expect(same.map(([id]) => id)).toEqual([...without.keys()]);
  });

  test("keeps its cache when a list fails", async () => {
    await using connection = await connected({ node, traits });
    const { runtime, signal, fake } = connection;
    const first = await runtime.reader[list](signal);
    const lift = fake.fail("*", { kind: "garbage" });
    expect((await failureOf(runtime.reader[list](signal))).kind).toBe("malformed");
    lift();
    expect(await runtime.reader[list](signal)).toBe(first);
  });

  test("has what a list that failed was the first to name", async () => {
    await using connection = await connected({ node, traits });
    const { runtime, signal, fake } = connection;
    /** Of so many items, with one behind them that is none. */
    const shortened = async (count: number, ...faults: readonly object[]) => {
      let left = count;
      const edit = (answer: object): object => {
        const [field, items] = Object.entries(answer)[0] as [string, object[]];
        const named = items.slice(0, left);
        left -= named.length;
        return { [field]: left === 0 ? [...named, ...faults] : named };
      };
      const lift = fake.fail("*", { kind: "edit", edit });
      const items = await runtime.reader[list](signal).catch(() => null);
      lift();
      return items?.length;
    };
    for (const count of [1, 2, 3]) {
      expect(await shortened(count, {})).toBeUndefined();
      expect(await shortened(count)).toBe(count);
    }
  });
});

test("an image listed twice counts in the order of the list, which may change", async () => {
  const twin = { id: imageIdOf("twin"), sizeBytes: 1 };
  await using connection = await connected({ node: { images: [{ ...twin, pinned: true }, twin] } });
  const { runtime, signal, fake } = connection;
  const pins = async () => (await runtime.reader.listImages(signal)).map(({ pinned }) => pinned);
  expect(await pins()).toEqual([true, false]);
  fake.fail("ListImages", { kind: "edit", edit: reversed });
  expect(await pins()).toEqual([false, true]);
});
