// The keep commands: the rules with what they keep, the check of the files, and the baseline.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/agent/openers.ts";
import { HostError, RuntimeError, StoreError } from "../../../src/model/errors.ts";
import { imageId } from "../../../src/model/ids.ts";
import type { KeepRules } from "../../../src/model/snapshot.ts";
import type { ArchivedImage } from "../../../src/node/archive.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { aLedger, anImage, aRecord, aSandbox, aSnapshot, NOW } from "../../support/build/values.ts";
import { openNodeOf, type SeenNode } from "../open-node.ts";
import { crigc } from "../world.ts";

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });
const pinned = anImage("pinned", { pinned: true });

const noRules: KeepRules = { rules: [], problems: [], directoriesRead: [] };
const rulesOf = (text: string): KeepRules => ({
  ...noRules,
  ...parseKeepFile(text, "/etc/crigc/keep.d/a.list"),
});

describe("keep test", () => {
  const tried = async (...words: readonly string[]) => {
    const { node } = openNodeOf({
      snapshot: { images: [app, pinned], keep: rulesOf("registry.example/app\n") },
    });
    return crigc(["keep", "test", ...words], { open: { node } });
  };

  test("lists what a pattern matches and what keeps each image now", async () => {
    const { code, stdout } = await tried("registry.example/*");
    expect(code).toBe(0);
    expect(stdout).toContain("registry.example/* matches 2 images.");
    expect(stdout).toMatch(/app.* keep rule registry.example\/app/);
    expect(stdout).toMatch(/pinned.* pinned in the runtime/);
  });

  test("exits 8 if the pattern matches no image, and 2 if it is invalid", async () => {
    expect(await tried("registry.example/gone")).toMatchObject({ code: 8 });
    expect(await tried("not valid")).toMatchObject({ code: 2 });
  });

  test("finds an image that a rule keeps by an earlier name", async () => {
    const records = new Map([[app.id, aRecord({ earlierNames: ["registry.example/before:v1"] })]]);
    const { node } = openNodeOf({
      snapshot: { images: [app] },
      ledger: aLedger({ images: records }),
    });
    const ran = await crigc(["keep", "test", "registry.example/before"], { open: { node } });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("matches 1 image.") });
  });
});

describe("keep list", () => {
  const list = async (keep: KeepRules, ...words: readonly string[]) => {
    const { node, isClosed } = openNodeOf({ snapshot: { images: [app, pause, pinned], keep } });
    const ran = await crigc(["keep", "list", ...words], { open: { node } });
    expect(isClosed()).toBeTrue();
    return ran;
  };

  test("shows what each rule keeps, which rules keep nothing, and what is kept without a rule", async () => {
    const { code, stdout } = await list(rulesOf("registry.example/app\nregistry.example/gone\n"));
    expect(code).toBe(0);
    expect(stdout).toContain("registry.example/app   /etc/crigc/keep.d/a.list:1  1: ");
    expect(stdout).toContain("no image on this node\n\n1 rule matches no image of this node.");
    expect(stdout).toContain("pinned in the runtime");
    expect(stdout).toMatch(/\*\*\/pause +sandbox image, built in +1: registry.k8s.io\/pause:3.9/);
  });

  test("has rules with their images and other protections in JSON, and patterns as names", async () => {
    const { stdout } = await list(rulesOf("registry.example/app\n"), "-o", "json");
    for (const words of [["-o", "name"], ["-q"]])
      expect((await list(rulesOf("a/b\nc/d\n"), ...words)).stdout).toBe("a/b\nc/d\n");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "KeepRules",
      valid: true,
      rules: [{ pattern: "registry.example/app", images: [{ id: app.id }] }],
      protections: [
        { by: "pin", images: [{ id: pinned.id }] },
        { by: "pattern", pattern: "**/pause", images: [{ id: pause.id }] },
        { by: "pattern", images: [] },
        { by: "pattern", images: [] },
      ],
    });
  });

  test("shows who named the sandbox image: the runtime or the flag", async () => {
    const snapshot = {
      images: [pause],
      runtime: { ...aSnapshot().runtime, sandboxImages: ["a/b:1"] },
      // Each sandbox says the same, which is one row.
      sandboxes: [aSandbox("a")],
      sandboxImages: new Map([[aSandbox("a").id, "a/b:1"]]),
    };
    const words = ["keep", "list", "-o", "json", "--pod-infra-container-image", "c/d:1"];
    const { stdout } = await crigc(words, { open: openNodeOf({ snapshot }) });
    expect(JSON.parse(stdout).protections.slice(0, 2)).toEqual([
      { by: "runtime", pattern: "a/b:1", images: [] },
      { by: "flag", pattern: "c/d:1", images: [] },
    ]);
  });
});

describe("keep check", () => {
  const check = (keep: KeepRules, ...words: readonly string[]) =>
    crigc(["keep", "check", ...words], { open: { keepRules: async () => keep } });

  test("lists the sources of valid rules, without a runtime", async () => {
    expect(await check(rulesOf("nginx\nbusybox\n"))).toEqual({
      code: 0,
      stdout: "2 keep rules in /etc/crigc/keep.d/a.list: all valid.\n",
      stderr: "",
    });
  });

  test("exits 2 and names file and line of every error", async () => {
    const { code, stdout, stderr } = await check(rulesOf("a b\nnginx\nsha256:12\n"));
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.split("\n")).toEqual([
      expect.stringMatching(/^crigc: \/etc\/crigc\/keep\.d\/a\.list:1: /),
      expect.stringMatching(/^crigc: \/etc\/crigc\/keep\.d\/a\.list:3: /),
      "",
    ]);
  });

  test("has errors but no matches in JSON", async () => {
    const { code, stdout } = await check(rulesOf("nginx\na b\n"), "-o", "json");
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "KeepRules",
      valid: false,
      problems: [{ source: "/etc/crigc/keep.d/a.list:2" }],
      rules: [{ pattern: "nginx", images: null }],
      protections: null,
    });
  });
});

interface Surroundings {
  readonly text?: string;
  readonly stamp?: string;
  readonly images?: SeenNode["snapshot"];
  readonly stampFails?: boolean;
  readonly archives?: Readonly<Record<string, readonly ArchivedImage[]>>;
  readonly noRuntime?: boolean;
}

async function baseline(words: readonly string[], around: Surroundings = {}) {
  let text = around.text ?? null;
  let stamp = around.stamp ?? null;
  const file: ReturnType<Openers["keepFile"]> = {
    path: "/etc/crigc/keep.d/baseline.list",
    read: () => text,
    change: (next) => {
      const { text: after, answer } = next(text);
      text = after ?? text;
      return answer;
    },
  };
  const { node } = openNodeOf({ snapshot: around.images ?? { images: [app, pause] } });
  const ran = await crigc(["keep", "baseline", ...words], {
    open: {
      now: () => NOW,
      keepFile: () => file,
      stamp: () => stamp,
      setStamp: (_, next) => {
        if (around.stampFails === true) throw new StoreError("full", "the state directory is full");
        stamp = next;
      },
      node:
        around.noRuntime === true
          ? async () => {
              throw new RuntimeError("absent", "there is no socket");
            }
          : node,
      archivedImages: async (path) => {
        const found = around.archives?.[path];
        if (found === undefined) throw new HostError("parse", `${path} is no archive`);
        return found;
      },
    },
  });
  const patterns = parseKeepFile(text ?? "#\n", "x").rules.map(({ pattern }) => pattern);
  return { ...ran, text, stamp, patterns };
}

const today = [app.id, ...app.repoTags, pause.id, ...pause.repoTags];

describe("keep baseline", () => {
  test("writes the ID and the tags of every image", async () => {
    const { code, stdout, patterns, stamp } = await baseline([]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "/etc/crigc/keep.d/baseline.list now lists 2 images in 4 patterns.\n",
    });
    expect({ patterns, stamp }).toEqual({ patterns: today, stamp: null });
  });

  test.each([
    ["keeps existing entries", [], "gone:1\nregistry.example/app:v1\n", [...today, "gone:1"]],
    ["drops them with --replace", ["--replace"], "gone:1\n", today],
  ])("%s", async (_, words, text, after) => {
    expect((await baseline(words, { text })).patterns).toEqual(after);
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
    expect(ran.code).toBe(1);
    expect(ran.patterns).toEqual(today);
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

  test("writes nothing if an archive cannot be read", async () => {
    const ran = await baseline(["--from", "/a.tar", "/c.tar"], { archives });
    expect(ran).toMatchObject({ code: 2, text: null });
    expect(ran.stderr).toBe("crigc: --from: /c.tar is no archive\n");
  });

  test("rejects an archive without --from", async () => {
    const ran = await baseline(["/a.tar"], { archives });
    expect(ran).toMatchObject({ code: 2, text: null });
    expect(ran.stderr).toContain("use --from ARCHIVE");
  });
});
