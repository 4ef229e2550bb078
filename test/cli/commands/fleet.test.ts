// crigc fleet: what it prints of nodes and images, and which snapshots it rejects.

import { expect, test } from "bun:test";

import type { Image } from "../../../src/model/snapshot.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import type { RecordedNode } from "../../../src/store/snapshot-file.ts";
import { aLedger, anImage, aSnapshot } from "../../support/build/values.ts";
import { crigc } from "../world.ts";

const [both, left, right] = [anImage("both"), anImage("left"), anImage("right")];

const nodeOf = (bootId: string, images: readonly Image[], host?: RecordedNode["host"]) => ({
  snapshot: aSnapshot({ images, clocks: { ...aSnapshot().clocks, bootId } }),
  ledger: aLedger(),
  ...(host && { host }),
});
const nodes: Readonly<Record<string, RecordedNode>> = {
  "/s/a.json": nodeOf("1", [both, left], { name: "node-a", returnedImages: 2, returnedBytes: 7n }),
  "/s/b.json.gz": nodeOf("2", [both, right]),
  "/again.json": nodeOf("3", [], { name: "node-a", returnedImages: null, returnedBytes: null }),
  "/same-boot.json": nodeOf("2", []),
};

const fleet = (...words: readonly string[]) =>
  crigc(["fleet", ...words], {
    open: {
      filesIn: (path) => ({ "/s": ["/s/a.json", "/s/b.json.gz"], "/empty": [] })[path] ?? [path],
      recorded: async (path) => nodes[path] ?? nodeOf("", []),
    },
  });

test.each([
  ["lists nodes, and images on the fewest nodes first", "/s"],
  ["has all of it in JSON", "/s -o json"],
  ["prints the only copies as a list for a keep directory", "/s --copies 1 -o name"],
  ["prints the only copies of a node as IDs", "/s --only-on b -q"],
  ["shows only the images of a node", "/s --only-on b"],
  ["lists more copies of one node", "/s/b.json.gz --only-on b --copies 9 -o name"],
  // A node that occurs twice would hide its only copies.
  ["rejects two snapshots of a name", "/s /again.json"],
  ["rejects two snapshots of a boot", "/s /same-boot.json"],
  ["rejects two files of a name", "/x.json /y/x.json.gz"],
  ["rejects a directory without snapshots", "/s /empty --copies 1"],
  ["rejects an unknown node", "/s --only-on c"],
  ["rejects no copies", "/s --copies 0"],
  ["rejects a number of copies that is none", "/s --copies x"],
])("fleet %s", async (what, line) => {
  const ran = await fleet(...line.split(" "));
  expect(ran).toMatchSnapshot();
  if (what.startsWith("rejects")) expect(ran).toMatchObject({ stdout: "" });
  if (line.endsWith("-o name") || line.endsWith("-q"))
    expect(parseKeepFile(ran.stdout, "/keep.d/last.list").problems).toEqual([]);
});
