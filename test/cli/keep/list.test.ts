// The keep commands: the rules with what they keep, a pattern tried out, and the baseline.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/engine/openers.ts";
import { HostError, RuntimeError } from "../../../src/model/errors.ts";
import { imageId } from "../../../src/model/ids.ts";
import type { KeepRules } from "../../../src/model/snapshot.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { anImage, NOW } from "../../support/build/values.ts";
import { openNodeOf, type SeenNode } from "../open-node.ts";
import { crigc } from "../world.ts";

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const rulesOf = (text: string): KeepRules => parseKeepFile(text, "/etc/crigc/keep.d/a.list");
const absent: Openers["node"] = async () => {
  throw new RuntimeError("absent", "there is no socket");
};

test.each<[string, string, number, RegExp]>([
  [
    "lists what it matches",
    "registry.example/*",
    0,
    /^registry.example\/\* +crigc keep test +1: registry.example\/app:v1$/m,
  ],
  [
    "exits 8 if no image matches",
    "registry.example/gone",
    8,
    /^registry.example\/gone +crigc keep test +no image on this node$/m,
  ],
  ["exits 2 if the pattern is invalid", "not valid", 2, /^$/],
])("keep test %s", async (_, pattern, code, words) => {
  const { node } = openNodeOf({ snapshot: { images: [app, pause] } });
  const ran = await crigc(["keep", "test", pattern], { open: { node } });
  expect(ran).toMatchObject({ code, stdout: expect.stringMatching(words) });
});

describe("keep list", () => {
  const { node, isClosed } = openNodeOf({
    snapshot: {
      images: [app, pause],
      keep: rulesOf("registry.example/app\nregistry.example/gone\n"),
    },
  });
  const list = async (...words: readonly string[]) =>
    (await crigc(["keep", "list", ...words], { open: { node } })).stdout;

  test("has rules with their images in JSON, and patterns as names", async () => {
    expect(await list("-o", "name")).toBe("registry.example/app\nregistry.example/gone\n");
    expect(await list("-o", "json")).toMatchSnapshot();
    expect(isClosed()).toBeTrue();
  });

  test("names the rules that match nothing", async () => {
    expect(await list()).toEndWith(
      "1 keep rule matches no image on this node: registry.example/gone.\n",
    );
  });

  test.each([
    ["valid rules", "nginx\n", 0],
    ["rules that were cut off", "nginx\nredis", 2],
  ])("checks the files without a runtime: %s", async (_, text, code) => {
    const open = { node: absent, keepRules: async () => rulesOf(text) };
    const ran = await crigc(["keep", "list"], { open });
    expect(ran.code).toBe(code);
    expect(ran.stderr).toContain("there is no socket");
    expect(ran.stdout).toMatchSnapshot();
  });
});

interface Surroundings {
  readonly text?: string | null;
  readonly stamp?: string;
  readonly images?: SeenNode["snapshot"];
  readonly stampFails?: boolean;
}

async function baseline(words: readonly string[], around: Surroundings = {}) {
  let text = around.text ?? null;
  let stamp = around.stamp ?? null;
  const { node } = openNodeOf({ snapshot: around.images ?? { images: [app, pause] } });
  const ran = await crigc(["keep", "baseline", ...words], {
    open: {
      now: () => NOW,
      node,
      baseline: () => ({
        path: "/etc/crigc/keep.d/baseline.list",
        read: () => text,
        write: (next) => void (text = next),
        stamp: () => stamp,
        setStamp: (at) => {
          if (around.stampFails === true)
            throw new HostError("write", "the state directory is full");
          stamp = at;
        },
      }),
    },
  });
  return { ...ran, text, stamp };
}

const odd = { ...app, id: imageId("odd!"), repoTags: [] };
const nothing = { images: { images: [] }, text: "gone:1\n" };

test.each<[string, string, Surroundings]>([
  ["writes the ID and the tags of every image", "", {}],
  ["keeps existing lines", "", { text: "gone:1\nregistry.example/app:v1\n" }],
  ["drops them with --replace", "--replace", { text: "gone:1\n" }],
  ["does not touch an empty list", "", { text: "" }],
  ["does not touch a damaged list", "", { text: "a b\n" }],
  ["does not touch a list that was cut off", "", { text: "nginx\nredis" }],
  ["replaces a damaged list if told to", "--replace", { text: "a b\n" }],
  ["writes nothing if no image is listed", "", nothing],
  ["sets no stamp if no image is listed", "--once", nothing],
  ["sets its stamp", "--once", {}],
  ["does nothing when run again", "--once", { stamp: "2026-01-01T00:00:00Z" }],
  ["fails if the stamp cannot be written", "--once", { stampFails: true }],
  ["reports an image that it cannot keep", "", { images: { images: [app, odd] } }],
  ["writes nothing in a dry run", "--dry-run --once", {}],
])("keep baseline %s", async (_, line, around) => {
  const words = line.split(" ").filter((word) => word !== "");
  const { code, stdout, stderr, stamp, text } = await baseline(words, around);
  const said = [`exit ${code}, stamp ${stamp}`, stdout, stderr, text ?? "no file"];
  expect(said.join("\n")).toMatchSnapshot();
  if (code !== 0 && around.stampFails !== true) expect(text).toBe(around.text ?? null);
});
