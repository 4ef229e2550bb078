// A list costs what changed: what has the same bytes is the same object, and what went is forgotten.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { cutEntries } from "../../src/cri/codec.ts";
import { decodeImage } from "../../src/cri/decode.ts";
import { makeList } from "../../src/cri/lists.ts";
import { type ImageMessage, methods } from "../../src/cri/messages.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { byId } from "../../src/model/values.ts";
import { hexId, imageIdOf, type NodeDescription } from "../support/fake-runtime/describe.ts";
import { connected, type Connection, failureOf } from "./connection.ts";
import { declared } from "./declared.ts";

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

const response = fc.record({
  entries: fc.array(
    fc.record({ id: fc.constantFrom("a", "b", "c"), size: fc.constantFrom("1", "2") }),
    { maxLength: 4 },
  ),
  /** How many of the entries come before it fails; `null`: it does not. */
  failsAfter: fc.option(fc.nat(4), { freq: 2 }),
  /** Turns that it takes for each entry, while others are read. */
  turns: fc.nat(2),
});

test("a list has what its own response has, whatever failed before and is read beside it", async () => {
  const property = fc.asyncProperty(fc.array(fc.tuple(response, response)), async (rounds) => {
    let next: (typeof rounds)[number][number] | undefined;
    const cache = makeList<ImageMessage, Image>(
      {
        list: async (_method, _request, { onEntry }) => {
          const { entries = [], failsAfter = null, turns = 0 } = next ?? {};
          for (const [at, entry] of [...entries, null].entries()) {
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            if (at === failsAfter) throw new Error("it breaks off");
            if (entry !== null)
              cutEntries(declared.get("ListImages")!.answer({ images: [entry] }), onEntry);
          }
        },
      },
      {
        stream: methods.StreamImages,
        whole: (ask) => ask(methods.ListImages, {}),
        decode: decodeImage,
        onNewEntry: () => undefined,
        counting: (all) => [...byId(all).values()],
      },
    );
    const list = async (answer: typeof next): Promise<void> => {
      next = answer;
      const items = await cache(new AbortController().signal).catch(() => null);
      if (items === null) return;
      const sizes = new Map(answer?.entries.map(({ id, size }) => [id, size]));
      const found = new Map(items.map((it) => [it.id, String(it.sizeBytes)] as const));
      expect(new Map<string, string>(found)).toEqual(sizes);
      expect(items).toHaveLength(sizes.size);
    };
    for (const [one, other] of rounds) await Promise.all([list(one), list(other)]);
  });
  await fc.assert(property, { numRuns: 1000 });
});
