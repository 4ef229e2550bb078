// The commands of docs/recipes.md, as written, on a node whose disk is full.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, layer, MiB, smallDisk } from "./disk.ts";
import { startNode } from "./node.ts";

const page = await Bun.file(join(import.meta.dir, "../../../docs/recipes.md")).text();
/** Commands of crigc on a line of their own, by the recipe that shows them. */
const recipes = page.split("\n## ").map((text) => ({
  title: text.split("\n")[0] ?? "",
  commands: Array.from(text.matchAll(/^crigc ([^#\n]+)/gm), ([, words = ""]) =>
    words.trim().split(/ +/),
  ),
}));
const commandsOf = (title: string): readonly (readonly string[])[] =>
  recipes.find((recipe) => recipe.title === title)?.commands ?? [];

const fullNode = async () => {
  const disk = await smallDisk(40 * MiB);
  const images = [0, 1, 2].map((at) => ({
    id: imageIdOf(`i${at}`),
    repoTags: [`r.example/i${at}:1`],
    layers: [layer(`own${at}`, 12)],
  }));
  const node = await startNode({
    node: { images },
    store: { directory: join(disk.directory, "store") },
    flags: ["--boot-grace=0s"],
  });
  return { disk, node };
};

describe.skipIf(diskObstacle !== null)("the recipe for a full node", () => {
  test("frees nothing while images are too young, and enough with --force-young", async () => {
    const { disk, node } = await fullNode();
    await using _disk = disk;
    await using it = node;
    const ran: [string, number, number][] = [];
    for (const [command = "", ...words] of commandsOf("My node is full now")) {
      const { exitCode } = await it.crigc(command, ...words);
      ran.push([[command, ...words].join(" "), exitCode, it.removedImages().length]);
    }
    expect(ran).toEqual([
      ["df", 0, 0],
      ["plan", 0, 0],
      ["gc", 4, 0],
      ["gc --force-young", 0, 1],
      ["plan --all-unused", 0, 1],
      ["gc --all-unused", 4, 1],
      ["df", 0, 1],
    ]);
  });
});
