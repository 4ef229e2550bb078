// crigc fleet: what it prints of nodes and images, and which snapshots it rejects.

import { describe, expect, test } from "bun:test";

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
      filesIn: (path) => (path === "/s" ? ["/s/a.json", "/s/b.json.gz"] : [path]),
      recorded: async (path) => nodes[path] ?? nodeOf("", []),
    },
  });

describe("fleet", () => {
  test("lists nodes, and images on the fewest nodes first, and has all of it in JSON", async () => {
    expect(await fleet("/s")).toMatchSnapshot();
    expect((await fleet("/s", "-o", "json")).stdout).toMatchSnapshot();
  });

  test("prints the only copies as a list for a keep directory", async () => {
    const { stdout } = await fleet("/s", "--copies", "1", "-o", "name");
    const { rules, problems } = parseKeepFile(stdout, "/keep.d/last.list");
    expect(problems).toEqual([]);
    expect(rules.map(({ pattern }) => pattern).toSorted()).toEqual(
      [left, right].flatMap(({ repoTags }) => repoTags).toSorted(),
    );
    expect((await fleet("/s", "--only-on", "b", "-q")).stdout).toBe(
      `# crigc: 1 patterns or more\n${right.id}\n`,
    );
    expect((await fleet("/s", "--only-on", "b")).stdout).not.toContain("NODE ");
    const none = await fleet("/s/b.json.gz", "--only-on", "b", "--copies", "9", "-o", "name");
    expect(parseKeepFile(none.stdout, "x").rules).toHaveLength(2);
  });

  test.each([
    [["/s", "/again.json"], "node-a"],
    [["/s", "/same-boot.json"], "same-boot"],
    [["/x.json", "/y/x.json.gz"], "x"],
  ])("rejects %j: a node that occurs twice would hide its only copies", async (words, name) => {
    const ran = await fleet(...words);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(`are snapshots of one node (${name})`);
  });

  test("exits 8 for an unknown node, and 2 for an invalid number", async () => {
    expect(await fleet("/s", "--only-on", "c")).toMatchObject({ code: 8, stdout: "" });
    for (const copies of ["0", "x", "-1"])
      expect(await fleet("/s", "--copies", copies)).toMatchObject({ code: 2, stdout: "" });
  });
});
