// The keep commands: the rules with what they keep, the check of the files, and the baseline.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/agent/openers.ts";
import { HostError, RuntimeError, StoreError } from "../../../src/model/errors.ts";
import { imageId } from "../../../src/model/ids.ts";
import type { KeepRules } from "../../../src/model/snapshot.ts";
import { plus, seconds } from "../../../src/model/time.ts";
import type { ArchivedImage } from "../../../src/node/archive.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { aLedger, anImage, aRecord, aSandbox, aSnapshot, NOW } from "../../support/build/values.ts";
import { openNodeOf, type SeenNode } from "../open-node.ts";
import { crigc, keepFileOf } from "../world.ts";

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });
const pinned = anImage("pinned", { pinned: true });

const noRules: KeepRules = { rules: [], problems: [], directoriesRead: [] };
const rulesOf = (text: string): KeepRules => ({
  ...noRules,
  ...parseKeepFile(text, "/etc/crigc/keep.d/a.list"),
});

test.each<[string, string, number, RegExp]>([
  ["lists what it matches", "registry.example/*", 0, /^registry.example\/\* matches 2 images\./],
  [
    "says what keeps an image now",
    "registry.example/*",
    0,
    /app.* keep rule registry.example\/app/,
  ],
  ["finds an image by an earlier name", "registry.example/before", 0, /matches 1 image\./],
  ["exits 8 if no image matches", "registry.example/gone", 8, /^/],
  ["exits 2 if the pattern is invalid", "not valid", 2, /^$/],
])("keep test %s", async (_, pattern, code, words) => {
  const { node } = openNodeOf({
    snapshot: { images: [app, pinned], keep: rulesOf("registry.example/app\n") },
    ledger: aLedger({
      images: new Map([[pinned.id, aRecord({ earlierNames: ["registry.example/before:v1"] })]]),
    }),
  });
  const ran = await crigc(["keep", "test", pattern], { open: { node } });
  expect(ran).toMatchObject({ code, stdout: expect.stringMatching(words) });
});

describe("keep list", () => {
  test("has rules with their images and other protections in JSON, and patterns as names", async () => {
    const { node, isClosed } = openNodeOf({
      snapshot: {
        images: [app, pause, pinned],
        keep: rulesOf("registry.example/app\nregistry.example/gone\n"),
        runtime: { ...aSnapshot().runtime, sandboxImages: ["a/b:1"] },
        // Each sandbox says the same, which is one row.
        sandboxes: [aSandbox("a")],
        sandboxImages: new Map([[aSandbox("a").id, "a/b:1"]]),
      },
    });
    const list = async (...words: readonly string[]) =>
      (await crigc(["keep", "list", ...words], { open: { node } })).stdout;
    for (const words of [["-o", "name"], ["-q"]])
      expect(await list(...words)).toBe("registry.example/app\nregistry.example/gone\n");
    const flag = ["--pod-infra-container-image", "c/d:1"];
    expect(await list("-o", "json", ...flag)).toMatchSnapshot();
    expect(isClosed()).toBeTrue();
  });

  test("shows when a lease ended; it keeps no image, and is not counted as misspelt", async () => {
    const key = "/etc/crigc/keep.d/a.list registry.example/app until used or 36h";
    const { watched: startedWatched } = aLedger();
    const lease = { startedAt: NOW, startedWatched, usedAt: plus(NOW, seconds(5)) };
    const { node } = openNodeOf({
      snapshot: {
        images: [app],
        keep: rulesOf("registry.example/app # crigc: until used or 36h\n"),
      },
      ledger: aLedger({ leases: new Map([[key, lease]]) }),
    });
    const { stdout } = await crigc(["keep", "list"], { open: { node } });
    expect(stdout).toMatch(/lease ended with its first use at 20.*:05Z, since 20.*no image/);
    expect(stdout).not.toContain("1 rule matches");
  });
});

describe("keep check", () => {
  const check = (keep: KeepRules, ...words: readonly string[]) =>
    crigc(["keep", "check", ...words], { open: { keepRules: async () => keep } });

  test("lists the sources of valid rules, without a runtime", async () => {
    expect(await check(rulesOf("nginx\nbusybox\n"))).toMatchSnapshot();
  });

  test("exits 2 and has every error with its line in JSON, but no matches", async () => {
    const words = ["-o", "json"];
    expect(await check(rulesOf("a b\nnginx\nsha256:12\n"), ...words)).toMatchSnapshot();
  });
});

interface Surroundings {
  readonly text?: string | null;
  readonly stamp?: string;
  readonly images?: SeenNode["snapshot"];
  readonly stampFails?: boolean;
  readonly archives?: Readonly<Record<string, readonly ArchivedImage[]>>;
  readonly noRuntime?: boolean;
}

async function baseline(words: readonly string[], around: Surroundings = {}) {
  const { keepFile, text: now } = keepFileOf(
    "/etc/crigc/keep.d/baseline.list",
    around.text ?? null,
  );
  let stamp = around.stamp ?? null;
  const { node } = openNodeOf({ snapshot: around.images ?? { images: [app, pause] } });
  const absent: Openers["node"] = async () => {
    throw new RuntimeError("absent", "there is no socket");
  };
  const ran = await crigc(["keep", "baseline", ...words], {
    open: {
      now: () => NOW,
      keepFile,
      stamp: () => stamp,
      setStamp: (_, next) => {
        if (around.stampFails === true) throw new StoreError("full", "the state directory is full");
        stamp = next;
      },
      node: around.noRuntime === true ? absent : node,
      archivedImages: async (path) => {
        const found = around.archives?.[path];
        if (found === undefined) throw new HostError("parse", `${path} is no archive`);
        return found;
      },
    },
  });
  const text = now();
  const patterns = parseKeepFile(text ?? "#\n", "x").rules.map(({ pattern }) => pattern);
  return { ...ran, text, stamp, patterns };
}

const today = [app.id, ...app.repoTags, pause.id, ...pause.repoTags];

describe("keep baseline", () => {
  test.each([
    ["writes the ID and the tags of every image", [], null, today],
    ["keeps existing entries", [], "gone:1\nregistry.example/app:v1\n", [...today, "gone:1"]],
    ["drops them with --replace", ["--replace"], "gone:1\n", today],
  ])("%s", async (_, words, text, after) => {
    const ran = await baseline(words, { text });
    expect(ran).toMatchObject({ code: 0, patterns: after, stamp: null });
    expect(ran.text).toStartWith(`# crigc: ${after.length} patterns or more\n`);
    expect(ran.stdout).toMatch(
      /^\/etc\/crigc\/keep.d\/baseline.list now lists 2 images in \d patterns/,
    );
  });

  test.each(["", "a b\n", "# crigc: 9 patterns or more\nnginx\n"])(
    "does not touch a damaged list (%j), and replaces it with --replace",
    async (text) => {
      const refused = await baseline([], { text });
      expect(refused).toMatchObject({ code: 2, text });
      expect(refused.stderr).toContain("repair the file, or replace it with --replace");
      expect((await baseline(["--replace"], { text })).patterns).toEqual(today);
    },
  );

  test.each([
    [[], 0, "lists no image"],
    [["--once"], 3, "waits for the first image"],
  ])("%j writes nothing, and sets no stamp, if no image is listed", async (words, code, why) => {
    const ran = await baseline(words, { images: { images: [] }, text: "gone:1\n" });
    expect(ran).toMatchObject({ code, stdout: "", text: "gone:1\n", stamp: null });
    expect(ran.stderr).toContain(why);
  });

  test("with --once writes the list and sets its stamp, and does nothing when run again", async () => {
    const first = await baseline(["--once"]);
    expect(first.stamp).toBe("2026-01-01T00:00:00Z");
    expect(first.patterns).toEqual(today);
    const second = await baseline(["--once"], { stamp: first.stamp ?? "" });
    expect(second).toMatchObject({
      code: 0,
      text: null,
      stdout: "Baseline already written at 2026-01-01T00:00:00Z; nothing to do.\n",
    });
  });

  test("with --once writes the list but fails if the stamp cannot be written", async () => {
    const ran = await baseline(["--once"], { stampFails: true });
    expect(ran).toMatchObject({ code: 1, patterns: today });
  });

  test("reports an image that it cannot keep", async () => {
    const odd = { ...app, id: imageId("odd!"), repoTags: [] };
    const { stderr, stdout } = await baseline([], { images: { images: [app, odd] } });
    expect(stderr).toContain("image odd! is not in the baseline");
    expect(stdout).toContain("now lists 1 image");
  });
});

describe("keep baseline from archives", () => {
  const id = `sha256:${"a".repeat(64)}`;
  const archives = {
    "/a.tar": [{ id, names: ["app:1"] }],
    "/b.tar": [{ id: `sha256:${"b".repeat(64)}`, names: [] }],
  };

  test.each([
    ["each behind --from", ["--from", "/a.tar", "--from", "/b.tar"]],
    ["as a shell expands them behind one --from", ["--from", "/a.tar", "/b.tar"]],
  ])("needs no runtime; archives are given %s", async (_how, words) => {
    const ran = await baseline(words, { archives, noRuntime: true });
    expect(ran.code).toBe(0);
    expect(ran.patterns).toEqual([id, "app:1", `sha256:${"b".repeat(64)}`]);
  });

  test.each([
    [["--from", "/a.tar", "/c.tar"], "crigc: --from: /c.tar is no archive\n"],
    [["/a.tar"], "use --from ARCHIVE"],
  ])("%j writes nothing", async (words, why) => {
    const ran = await baseline(words, { archives });
    expect(ran).toMatchObject({ code: 2, text: null, stderr: expect.stringContaining(why) });
  });
});
