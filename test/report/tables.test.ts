// What tables say beyond their snapshots: long lists, and words that depend on the input.

import { expect, test } from "bun:test";

import type { Plan } from "../../src/model/plan.ts";
import { minutes, seconds } from "../../src/model/time.ts";
import { gcDocument, gcTable } from "../../src/report/gc.ts";
import { entriesOf, imageListDocument, imageListTable } from "../../src/report/images.ts";
import { passSummary } from "../../src/report/pass-words.ts";
import { planDocument, planTable } from "../../src/report/plan.ts";
import { passStatus, statusDocument, statusTable } from "../../src/report/status.ts";
import type { Screen } from "../../src/report/terminal.ts";
import {
  candidate,
  image,
  imageOutcome,
  imagePlan,
  kept,
  NOW,
  pass,
  plainScreen,
  removedImage,
  runtime,
  status,
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

test("a plan names each of 30 kept images", () => {
  const keeps = Array.from({ length: 30 }, (_, index) => kept(100 + index, { kind: "pinned" }));
  const text = shown({ images: imagePlan({ kept: keeps }) });
  expect(keeps.filter((it) => text.includes(it.image.repoTags[0]!)).length).toBe(30);
});

test("a plan of 5,000 candidates shows every one, and the estimated stop between them", () => {
  const candidates = Array.from({ length: 5000 }, (_, index) =>
    candidate(index + 1, { expected: index < 4000, image: image((index % 9000) + 1) }),
  );
  const lines = shown({ images: imagePlan({ candidates }) }).split("\n");
  const places = lines.flatMap((line) => /^ *(\d+)  registry/.exec(line)?.[1] ?? []);
  expect(places.map(Number)).toEqual(Array.from({ length: 5000 }, (_, index) => index + 1));
  expect(lines.find((line) => line.startsWith("4000 of 5004 images"))).toBeDefined();
  const stop = lines.findIndex((line) => line.includes("estimated stop"));
  expect(lines[stop - 1]).toMatch(/^4000 /);
  expect(lines[stop + 1]).toMatch(/^4001 /);
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
  expect(gcTable(gcDocument(short), plainScreen)).toContain(`Images: no candidates left, ${words}`);
  expect(passSummary(short)).toContain(words);
  expect(shown(short.plan)).toContain("\n2 images (251.0 MiB) become removable in 1m48s.\n");
});

test.each([
  ["on-hold", "a hold began, so the pass stopped"],
  ["usage-unknown", "removal is blocked: cannot tell which images are in use"],
] as const)("a block by %s that begins during a pass is named", (block, words) => {
  const result = { kind: "skipped", reason: { kind: "blocked", block } } as const;
  const images = imageOutcome({ end: "blocked", items: [removedImage(1, { result })] });
  const plan = { containers: null, images: imagePlan() };
  expect(passSummary(pass({ containers: null, plan, images }))).toContain(words);
});

test("a brief report lists no removal that was printed as it happened", () => {
  const result = { kind: "skipped", reason: { kind: "pinned" } } as const;
  const items = [removedImage(1), removedImage(2, { result })];
  const text = gcTable(
    gcDocument(pass({ images: imageOutcome({ items }), containers: null })),
    terminal,
    true,
  );
  expect(text).not.toContain("app-1:");
  expect(text).toContain("app-2:");
});

test("the status after a hold shows no pass that the hold blocked", () => {
  const hold = { kind: "held", until: NOW, since: NOW, reason: "swap" } as const;
  const images = imagePlan({ blocks: [{ ...hold, kind: "on-hold" }] });
  const held = pass({
    images: imageOutcome({ end: "blocked" }),
    plan: { images, containers: null },
  });
  const lastPasses = [passStatus(held)];
  const words = "crigc release ends the hold";
  const shownOf = (change: object) =>
    statusTable(statusDocument(status({ lastPasses, ...change })), plainScreen);
  expect(shownOf({ hold })).toContain(words);
  expect(shownOf({})).not.toContain(words);
});

const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };

test("an image that no rule keeps is kept by nothing, with its place in the order of removal", () => {
  const places = Array.from({ length: 23 }, (_, index) => candidate(index + 1));
  const entries = entriesOf(imagePlan({ candidates: places }));
  const text = imageListTable(imageListDocument({ ...report, entries }), plainScreen);
  for (const [at] of places.entries()) expect(text).toContain(`nothing (place ${at + 1})`);
});

test("images of equal size are listed by ID in descending order", () => {
  const candidates = [1, 2, 3].map((seed) => candidate(seed));
  const same = candidates.map((it) => ({ ...it, image: { ...it.image, sizeBytes: 5n } }));
  const listed = entriesOf(imagePlan({ kept: [], candidates: same }));
  expect(listed.map((it) => it.image.id)).toEqual(same.map((it) => it.image.id).toReversed());
});
