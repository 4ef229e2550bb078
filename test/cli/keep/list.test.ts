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

test.each([
  ["keep list", 51, "/etc/crigc/keep.d/site.baseline.list"],
  ["keep test registry.example/**", 50, "too young"],
  ["keep missing", 51, "not on this node"],
])("%s shortens a long table, and says how to see the rest", async (line, more, title) => {
  const names = Array.from({ length: 101 }, (_, at) => `registry.example/a${at}`);
  const file = "/etc/crigc/keep.d/site.baseline.list";
  const present = names.slice(0, line === "keep missing" ? 0 : 100);
  const machine = () => ({ directory: () => ({ kind: "absent", creatable: true }) }) as never;
  const { node } = openNodeOf({
    snapshot: {
      images: present.map((name) => anImage(name, { repoTags: [`${name}:1`] })),
      keep: line.startsWith("keep test")
        ? noRules
        : { ...noRules, ...parseKeepFile(`${names.join("\n")}\n`, file) },
    },
  });
  const words = line.split(" ");
  const { stdout } = await crigc(words, { open: { node, machine } });
  const rest = `${more} more rows (--all or -o json shows all):\n  ${more}  ${title}\n`;
  expect(stdout).toContain(rest);
  const all = await crigc([...words, "--all"], { open: { node, machine } });
  expect(all.stdout).not.toContain("more row");
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
  return { ...ran, text: now(), stamp };
}

const id = `sha256:${"a".repeat(64)}`;
const archives = {
  "/a.tar": [{ id, names: ["app:1"] }],
  "/b.tar": [{ id: `sha256:${"b".repeat(64)}`, names: [] }],
};
const odd = { ...app, id: imageId("odd!"), repoTags: [] };
const nothing = { images: { images: [] }, text: "gone:1\n" };
const offline = { archives, noRuntime: true };

test.each<[string, string, Surroundings?]>([
  ["writes the ID and the tags of every image", ""],
  ["keeps existing entries", "", { text: "gone:1\nregistry.example/app:v1\n" }],
  ["drops them with --replace", "--replace", { text: "gone:1\n" }],
  ["does not touch an empty list", "", { text: "" }],
  ["does not touch a damaged list", "", { text: "a b\n" }],
  ["does not touch a list that was cut off", "", { text: "# crigc: 9 patterns or more\nnginx\n" }],
  ["replaces a damaged list if told to", "--replace", { text: "a b\n" }],
  ["writes nothing if no image is listed", "", nothing],
  ["sets no stamp if no image is listed", "--once", nothing],
  ["sets its stamp", "--once"],
  ["does nothing when run again", "--once", { stamp: "2026-01-01T00:00:00Z" }],
  ["fails if the stamp cannot be written", "--once", { stampFails: true }],
  ["reports an image that it cannot keep", "", { images: { images: [app, odd] } }],
  ["reads archives without a runtime", "--from /a.tar --from /b.tar", offline],
  // As a shell expands them.
  [
    "reads archives behind one --from, an image of both counts once",
    "--from /a.tar /b.tar /a.tar",
    offline,
  ],
  ["writes nothing if an archive is unreadable", "--from /a.tar /c.tar", { archives }],
  ["rejects an archive without --from", "/a.tar", { archives }],
])("keep baseline %s", async (_, line, around) => {
  const words = line.split(" ").filter((word) => word !== "");
  const { code, stdout, stderr, stamp, text } = await baseline(words, around);
  const said = [`exit ${code}, stamp ${stamp}`, stdout, stderr, text ?? "no file"];
  expect(said.join("\n")).toMatchSnapshot();
  if (code !== 0 && around?.stampFails !== true) expect(text).toBe(around?.text ?? null);
});
