// Many nodes together: the last copies by an independent count, and a list that keeps them.

import { describe, expect, test } from "bun:test";

import { Fleet } from "../../src/cli/commands/fleet.ts";
import { imageId } from "../../src/model/ids.ts";
import {
  compileKeepRules,
  keepFileHeader,
  matchKeepRules,
  parseKeepFile,
} from "../../src/policy/keep/keep.ts";
import { aContainer, aFilesystem, anImage, aSnapshot, GIB } from "../support/build/values.ts";
import { Random, SEED } from "../support/random.ts";

describe("a fleet", () => {
  test("of two hundred generated nodes has the last copies that counting them gives, and its list keeps each", () => {
    const dice = new Random(SEED);
    const random = (below: number) => dice.between(0, below - 1);
    const pool = Array.from({ length: 600 }, (_, at) => {
      const image = anImage(`app-${at}`, { sizeBytes: BigInt(random(1_000)) });
      return random(5) === 0 ? { ...image, repoTags: [] } : image;
    });
    const all = Array.from({ length: 200 }, (_, node) => {
      // Common images and rare ones.
      const places = Array.from({ length: 12 }, () => random(random(2) === 0 ? 20 : 600));
      const images = [...new Set(places)].flatMap((at) => pool[at] ?? []);
      return { name: `node-${node}`, images, used: images.filter(() => random(3) === 0) };
    });
    const fleet = new Fleet();
    for (const { name, images, used } of all) {
      const containers = used.map(({ id }) => aContainer(`${name}-${id}`, { imageId: id }));
      fleet.add(name, aSnapshot({ images, containers }));
    }
    const found = fleet.images();
    const counted = found.map((it) => `${it.id} ${it.nodes} ${it.usedOn} ${it.onlyOn}`);
    const expected = pool.flatMap((image) => {
      const holders = all.filter(({ images }) => images.includes(image));
      const users = all.filter(({ used }) => used.includes(image)).length;
      const only = holders.length === 1 ? holders[0]?.name : null;
      return holders.length === 0 ? [] : [`${image.id} ${holders.length} ${users} ${only}`];
    });
    expect({ SEED, counted: counted.toSorted() }).toEqual({ SEED, counted: expected.toSorted() });
    const last = found.filter(({ nodes }) => nodes === 1);
    expect(last.length).toBeGreaterThan(20);
    const text = [keepFileHeader(last.length), ...last.map(({ name }) => name), ""].join("\n");
    const { rules, problems } = parseKeepFile(text, "/keep.d/last.list");
    expect(problems).toEqual([]);
    const compiled = compileKeepRules(rules);
    for (const { id, onlyOn } of last) {
      const { images = [] } = all.find(({ name }) => name === onlyOn) ?? {};
      const image = images.find((it) => it.id === id);
      expect(image && matchKeepRules(compiled, image)).toBeTruthy();
    }
  });

  test("takes images for the same whose IDs differ only in the algorithm's name", () => {
    const fleet = new Fleet();
    const image = anImage("app");
    fleet.add("a", aSnapshot({ images: [image] }));
    const bare = { ...image, id: imageId(image.id.replace("sha256:", "")), sizeBytes: GIB };
    fleet.add("b", aSnapshot({ images: [bare] }));
    fleet.add("c", aSnapshot({ images: [{ ...image, id: imageId("by hand") }] }));
    expect(fleet.images()).toMatchObject([
      { id: "by hand", nodes: 1, onlyOn: "c" },
      { id: image.id, nodes: 2, onlyOn: null, sizeBytes: GIB },
    ]);
  });

  test("has a rule for each image that keeps it on every node, though they name it differently", () => {
    const [app, old] = [anImage("app"), anImage("old")];
    const images = [app, old];
    const renamed = [{ ...app, repoTags: ["registry.example/app:v2"] }, old];
    const fleet = new Fleet();
    for (const [at, those] of [images, renamed, images].entries())
      fleet.add(`${at}`, aSnapshot({ images: those }));
    const rules = fleet.images().map(({ pattern }) => ({ pattern, source: "last.list" }));
    const expected: readonly string[] = [...old.repoTags, app.id];
    expect(new Set(rules.map(({ pattern }) => pattern))).toEqual(new Set(expected));
    for (const image of [...images, ...renamed])
      expect(matchKeepRules(compileKeepRules(rules), image)).not.toBeNull();
  });

  test("sums a node up: disk, images, unused ones, and an image listed twice once", () => {
    const image = anImage("app", { sizeBytes: 5n });
    const filesystems = [aFilesystem({ capacityBytes: 100n, availableBytes: 40n })];
    const used = ["b", "c"].map((word) => anImage(word, { sizeBytes: 1n }));
    const containers = used.map(({ id }) => aContainer(id, { imageId: id }));
    const snapshot = aSnapshot({ images: [image, ...used, image], containers, filesystems });
    expect(new Fleet().add("a", snapshot)).toMatchObject({
      name: "a",
      images: 3,
      imagesBytes: 7n,
      unusedImages: 1,
      capacityBytes: 100n,
      availableBytes: 40n,
    });
    expect(new Fleet().add("a", aSnapshot({ filesystems: [] }))).toMatchObject({
      capacityBytes: null,
      availableBytes: null,
    });
  });

  test("sorts by number of nodes, then by size and ID, and names an image by a valid name, else its ID", () => {
    const fleet = new Fleet();
    const big = anImage("big", { sizeBytes: 9n });
    const twins = ["one", "other"].map((it) =>
      anImage(it, { sizeBytes: 1n, repoTags: ["<none>:<none>", "no name"], repoDigests: [] }),
    );
    const both = anImage("both", { sizeBytes: 99n });
    fleet.add("a", aSnapshot({ images: [both, ...twins] }));
    fleet.add("b", aSnapshot({ images: [{ ...both, sizeBytes: 1n }, big] }));
    const ids = twins.map(({ id }): string => id).toSorted();
    expect(fleet.images().map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([
      [big.repoTags[0] ?? "", 9n],
      ...ids.map((id): [string, bigint] => [id, 1n]),
      [both.repoTags[0] ?? "", 99n],
    ]);
  });
});
