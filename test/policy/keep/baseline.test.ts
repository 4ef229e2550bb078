// What a baseline names and a node lacks, by lists as crigc writes them.

import { describe, expect, test } from "bun:test";

import { baselineList } from "../../../src/cli/commands/keep-baseline.ts";
import { imageId } from "../../../src/model/ids.ts";
import type { Baseline } from "../../../src/model/reports.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { baselineOf } from "../../../src/policy/keep/baseline.ts";
import { keepLine, parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { anImage, aSnapshot } from "../../support/build/values.ts";

const LIST = "/etc/crigc/keep.d/baseline.list";
const app = anImage("app");
const tools = anImage("tools", {
  repoTags: ["registry.example/tools:1", "registry.example/tools:2"],
});
const pause = anImage("pause", { pinned: true, repoTags: ["registry.k8s.io/pause:3.9"] });
const all = [app, tools, pause];

const listOf = (images: readonly Image[], before: readonly string[] = []): string =>
  baselineList(
    images.map(({ id, repoTags, pinned }) => ({ id, names: repoTags, pinned })),
    before.map((pattern) => ({ pattern, source: "" })),
    "2026-01-15T12:00:00Z",
  ).text;

interface Given {
  readonly text?: string;
  readonly source?: string;
  /** As the runtime names the sandbox image. */
  readonly sandbox?: string;
  readonly flag?: string;
}

function compared(images: readonly Image[], given: Given = {}): Baseline | null {
  const parsed = parseKeepFile(given.text ?? listOf(all), given.source ?? LIST);
  const { runtime } = aSnapshot();
  const sandboxImages = given.sandbox === undefined ? [] : [given.sandbox];
  return baselineOf(
    { images, keep: { ...parsed, directoriesRead: [] }, runtime: { ...runtime, sandboxImages } },
    given.flag === undefined ? [] : [given.flag],
  );
}

const problemsOf = (baseline: Baseline | null) =>
  baseline?.gaps.map(({ kind, name }) => `${kind} ${name}`);

describe("a node compared with its baseline", () => {
  const bare = all.map((image) => ({ ...image, id: imageId(image.id.replace("sha256:", "")) }));
  const oneName = { ...tools, repoTags: tools.repoTags.slice(0, 1) };
  const moved = anImage("new", { repoTags: app.repoTags });
  test.each<[string, readonly Image[], readonly string[]]>([
    ["nothing if each image is there by its ID and names", all, []],
    ["nothing by the IDs of CRI-O, which have no algorithm", bare, []],
    ["a name that an image lost", [app, oneName, pause], ["name-missing registry.example/tools:2"]],
    ["an image whose tag another image has now", [moved, tools, pause], [`missing ${app.id}`]],
  ])("lacks %s", (_, images, problems) => {
    const it = compared(images);
    expect(problemsOf(it)).toEqual([...problems]);
    const missing = problems.length;
    expect(it).toMatchObject({ images: 3, present: 3 - missing, missing });
  });

  test("of CRI-O lacks nothing elsewhere", () => {
    expect(compared(all, { text: listOf(bare) })).toMatchObject({ images: 3, gaps: [] });
  });

  test("lacks every image after CRI-O wiped its store at boot, and no pod starts without the sandbox image", () => {
    const it = compared([], { sandbox: "registry.k8s.io/pause:3.9" });
    expect(it).toMatchObject({ images: 3, present: 0, missing: 3 });
    expect(problemsOf(it)).toEqual([
      "missing registry.example/app:v1",
      "missing registry.example/tools:1",
      "sandbox-image registry.k8s.io/pause:3.9",
    ]);
    expect(it?.gaps[0]).toMatchObject({ patterns: [app.id, ...app.repoTags], source: `${LIST}:3` });
  });

  test("lacks the pins that k3s lost with a restart, and no image", () => {
    const it = compared([app, tools, { ...pause, pinned: false }]);
    expect(it).toMatchObject({ images: 3, present: 3, missing: 0 });
    expect(problemsOf(it)).toEqual(["unpinned registry.k8s.io/pause:3.9"]);
    expect(it?.gaps[0]?.patterns).toEqual([pause.id]);
  });

  test("of an archive for several platforms lacks nothing if one of them is there", () => {
    const [amd64, arm64] = [anImage("amd64", { repoTags: app.repoTags }), anImage("arm64")];
    const names = app.repoTags;
    const { text } = baselineList(
      [
        { id: amd64.id, names },
        { id: arm64.id, names, platformOf: amd64.id },
      ],
      [],
      "2026-01-15T12:00:00Z",
    );
    for (const image of [amd64, { ...arm64, repoTags: names }])
      expect(compared([image], { text })).toEqual({ images: 1, present: 1, missing: 0, gaps: [] });
    expect(problemsOf(compared([], { text }))).toEqual([`missing ${names[0]}`]);
    expect(problemsOf(compared([arm64], { text }))).toEqual([`name-missing ${names[0]}`]);
    expect(compared([], { text, source: "/etc/crigc/keep.d/own.list" })?.images).toBe(0);
    const named = parseKeepFile(`${amd64.id}\n`, LIST).rules;
    const elsewhere = parseKeepFile(
      `${arm64.id} # crigc: another platform of ${amd64.id}`,
      "/etc/crigc/keep.d/own.list",
    ).rules;
    const keep = { rules: [...named, ...elsewhere], problems: [], directoriesRead: [] };
    const { runtime } = aSnapshot();
    expect(baselineOf({ images: [arm64], keep, runtime }, [])?.missing).toBe(1);
  });

  test("lacks a sandbox image that no baseline names, by the runtime or the flag, but no invalid one", () => {
    const named = { sandbox: "registry.k8s.io/pause:3.10", flag: "r.example/pause:1" };
    const it = compared(all, named);
    expect(it).toMatchObject({ images: 3, present: 3, missing: 2 });
    expect(it?.gaps.map(({ patterns, source }) => [...patterns, source])).toEqual([
      ["registry.k8s.io/pause:3.10", "containerd"],
      ["r.example/pause:1", "--pod-infra-container-image"],
    ]);
    expect(compared(all, { sandbox: "" })?.gaps).toEqual([]);
    expect(compared(all, { sandbox: "registry.k8s.io/pause:3.9" })?.gaps).toEqual([]);
  });

  test("keeps apart earlier entries, lines by hand and patterns", () => {
    const earlier = [anImage("gone").id, "registry.example/other:1"];
    const it = compared(all, {
      text: `${listOf(all, earlier)}# By hand:\nregistry.example/**\nr.other/**\n`,
    });
    expect(problemsOf(it)).toEqual(["missing registry.example/other:1", "missing r.other/**"]);
    const alone = `registry.example/x:1\nregistry.example/y:1\n`;
    expect(compared([], { text: alone })).toMatchObject({ images: 2, missing: 2 });
  });

  test("may lack what a line keeps only for a time", () => {
    expect(compared([], { text: "registry.example/x:1 # crigc: until 7d\n" })?.images).toBe(0);
  });

  test("takes an ID and the names after it for one image, a name with a digest too", () => {
    for (const named of [`r.example/app@sha256:${"d".repeat(64)}`, `${"d".repeat(64)}/app:1`])
      expect(compared([], { text: `${app.id}\n${named}\n` })).toMatchObject({ images: 1 });
  });

  test("finds the pin of an image that a line names by a digest, on any image that has it", () => {
    const digest = `registry.example/a@sha256:${"d".repeat(64)}`;
    const text = `${digest} # crigc: pinned\n`;
    const here = (...pins: readonly boolean[]) =>
      pins.map((pinned, at) => anImage(`a${at}`, { pinned, repoDigests: [digest] }));
    expect(problemsOf(compared(here(false, true), { text }))).toEqual([]);
    expect(problemsOf(compared(here(false), { text }))).toEqual([`unpinned ${digest}`]);
  });

  test.each([
    ["/keep.d/site-baseline.list", 3],
    ["/keep.d/site.list", 0],
    ["/keep.d/baseline.list:1/site.list", 0],
    ["--keep", 0],
  ])("reads lists whose names end in baseline.list: %s", (source, images) => {
    expect(compared([], { source })?.images).toBe(images);
  });

  test("is unknown while a keep file is invalid", () => {
    expect(compared([], { text: "a b\n" })).toBeNull();
  });
});

test("a line read from a keep file is written with its note", () => {
  const lines = [
    "registry.example/app:1",
    `${app.id} # crigc: pinned`,
    `${tools.id} # crigc: another platform of ${app.id}`,
    "registry.example/later:1 # crigc: until 7d, added 2026-01-01T00:00:00Z",
  ];
  expect(parseKeepFile(lines.join("\n"), LIST).rules.map(keepLine)).toEqual(lines);
});
