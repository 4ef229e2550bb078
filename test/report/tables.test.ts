// What tables say beyond their snapshots: widths, long lists, and words that depend on the input.

import { expect, test } from "bun:test";

import type { Plan } from "../../src/model/plan.ts";
import { minutes, seconds } from "../../src/model/time.ts";
import { gcDocument, gcTable } from "../../src/report/gc.ts";
import { entriesOf, imageListDocument, imageListTable, unjudged } from "../../src/report/images.ts";
import { passSummary } from "../../src/report/pass-words.ts";
import { planTable } from "../../src/report/plan-table.ts";
import { planDocument } from "../../src/report/plan.ts";
import type { Screen } from "../../src/report/terminal.ts";
import {
  candidate,
  containerOutcome,
  containerPlan,
  image,
  imageOutcome,
  imagePlan,
  kept,
  NOW,
  pass,
  plainScreen,
  removedContainer,
  runtime,
  terminal,
} from "./build.ts";

const shown = (plan: Partial<Plan>, screen: Screen = terminal): string =>
  planTable(
    planDocument({
      plan: { images: null, containers: null, ...plan },
      snapshot: { runtime, observedAt: NOW },
    }),
    screen,
  );

test("a plan says that no threshold is exceeded only if none is, not where removal is blocked", () => {
  const idle = { candidates: [], targets: [], triggers: [] };
  const words = "No threshold that images can relieve is exceeded, so no image is removed.";
  expect(shown({ images: imagePlan(idle) })).toContain(words);
  const futile = imagePlan({ ...idle, triggers: [{ kind: "space" }] });
  expect(shown({ images: futile })).not.toContain(words);
});

test("a group of 30 kept images lists ten names without a terminal, and all of them with --all", () => {
  const keeps = Array.from({ length: 30 }, (_, index) => kept(100 + index, { kind: "pinned" }));
  const images = imagePlan({ kept: keeps });
  const named = (screen: Screen): number =>
    keeps.filter((it) => shown({ images }, screen).includes(it.image.repoTags[0]!)).length;
  expect([named(plainScreen), named({ ...plainScreen, all: true })]).toEqual([10, 30]);
});

test.each([terminal, plainScreen])(
  "a plan of 5,000 candidates shows the first ones, and how many more there are (%j)",
  (screen) => {
    const candidates = Array.from({ length: 5000 }, (_, index) =>
      candidate(index + 1, { expected: index < 4000, image: image((index % 9000) + 1) }),
    );
    const text = shown({ images: imagePlan({ candidates }) }, screen);
    const places = text.split("\n").flatMap((line) => /^ *(\d+)  registry/.exec(line)?.[1] ?? []);
    expect(places.map(Number)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(text).toContain("4000 of 5004 images would be removed");
    expect(text).toMatch(/3950 more [^\n]*\n\S+ estimated stop[^\n]*\n1000 more /);
    const all = shown({ images: imagePlan({ candidates }) }, { ...screen, all: true });
    expect(all.split("\n").length).toBeGreaterThan(5000);
  },
);

test("no line of a plan is wider than the terminal", () => {
  for (const width of [60, 72, 80, 132]) {
    const text = shown(
      { images: imagePlan(), containers: containerPlan() },
      { ...terminal, width },
    );
    for (const line of text.split("\n").slice(2))
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(Math.max(width, 80));
  }
});

test("a pass over 5,500 containers prints under 10 kB: failures, the first rows, and counts by reason", () => {
  const [one] = containerOutcome().containers;
  const failed = {
    kind: "failed",
    step: "remove",
    message: "device busy",
    code: "failed",
  } as const;
  const containers = Array.from({ length: 5500 }, (_, index) => ({
    ...one!,
    planned: removedContainer(index),
    result: index === 5000 ? failed : one!.result,
  }));
  const large = pass({ containers: containerOutcome({ containers }), images: null });
  const text = gcTable(gcDocument(large), plainScreen);
  expect(text.length).toBeLessThan(10_000);
  expect(text).toContain("failed to remove: device busy");
  expect(text).toContain(
    "5452 more rows (--all or -o json shows all):\n  5450  container removed: its pod was deleted\n",
  );
  const all = gcTable(gcDocument(large), { ...plainScreen, all: true });
  expect(all.match(/ removed\n/g)?.length).toBe(5501);
});

test("a pass that runs out of candidates says how many images become removable, and when", () => {
  const young = [1, 2].map((seed) =>
    kept(seed, { kind: "too-young", age: seconds(12), minimumAge: minutes(2) }),
  );
  const short = pass({
    containers: null,
    plan: { containers: null, images: imagePlan({ candidates: [], kept: young }) },
    images: imageOutcome({ end: "candidates-exhausted", items: [] }),
  });
  const words = "target not reached; 2 images (251.0 MiB) become removable in 1m48s";
  expect(gcTable(gcDocument(short), plainScreen)).toContain(
    `Images: no candidates left, ${words}.`,
  );
  expect(passSummary(short)).toContain(words);
  expect(shown(short.plan)).toContain("\n2 images (251.0 MiB) become removable in 1m48s.\n");
});

const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };

test("images on a terminal of 80 columns have whole names and headings, and users next to the reason", () => {
  const [narrow, wide] = [80, 100].map((width) =>
    imageListTable(imageListDocument(report), { ...terminal, width }),
  );
  expect(narrow).toMatchSnapshot("at 80 columns");
  expect(wide).toMatchSnapshot("at 100 columns");
});

test("an image that no rule keeps is kept by nothing, with its place in the order of removal", () => {
  const places = Array.from({ length: 23 }, (_, index) => candidate(index + 1));
  const entries = entriesOf(imagePlan({ candidates: places }));
  const text = imageListTable(imageListDocument({ ...report, entries }), plainScreen);
  for (const [at] of places.entries()) expect(text).toContain(`nothing (place ${at + 1})`);
});

test("images of equal size are listed by ID in descending order", () => {
  const same = [1, 2, 3].map((seed) => image(seed, { sizeBytes: 5n }));
  expect(unjudged(same).map((it) => it.image.id)).toEqual(same.map(({ id }) => id).toReversed());
});
