// What tables say beyond their snapshots: widths, long lists, and words that depend on the input.

import { describe, expect, test } from "bun:test";

import type { ImageEnd } from "../../src/model/outcome.ts";
import type { PassKind } from "../../src/model/pass.ts";
import type { Plan } from "../../src/model/plan.ts";
import { duration, minutes, seconds } from "../../src/model/time.ts";
import { explanationDocument, explanationTable } from "../../src/report/explanation.ts";
import { gcDocument, gcTable } from "../../src/report/gc.ts";
import { historyDocument, type HistoryReport, historyTable } from "../../src/report/history.ts";
import { entriesOf, imageListDocument, imageListTable, unjudged } from "../../src/report/images.ts";
import { passSummary } from "../../src/report/pass-words.ts";
import { planTable } from "../../src/report/plan-table.ts";
import { candidateJson, planDocument } from "../../src/report/plan.ts";
import { statusDocument, statusTable } from "../../src/report/status.ts";
import type { Screen } from "../../src/report/terminal.ts";
import {
  candidate,
  containerOutcome,
  containerPlan,
  forecast,
  image,
  imageOutcome,
  imagePlan,
  kept,
  measured,
  NOW,
  pass,
  passRow,
  plainScreen,
  removedContainer,
  removedImage,
  runtime,
  status,
  terminal,
  usage,
} from "./build.ts";

const shown = (plan: Partial<Plan>, screen: Screen = terminal): string =>
  planTable(
    planDocument({ plan: { images: null, containers: null, ...plan }, runtime, observedAt: NOW }),
    screen,
  );

describe("a plan", () => {
  test("a plan names the mount point of its target, as above it, not the runtime's path below it", () => {
    const filesystem = { ...usage().filesystem, path: "/var/lib/containerd", mountpoint: "/data" };
    const text = shown({ images: imagePlan({ usage: [usage({ filesystem })] }) });
    expect(text).toContain("Target: free 4.0 GiB on /data (to 10.0 GiB available)");
  });

  test("a plan says that no threshold is exceeded only if none is, not where removal is blocked", () => {
    const idle = { candidates: [], targets: [], triggers: [] };
    const words = "No threshold exceeded, no image is removed.";
    expect(shown({ images: imagePlan(idle) })).toContain(words);
    const futile = imagePlan({ ...idle, triggers: [{ kind: "space" }] });
    expect(shown({ images: futile })).not.toContain(words);
  });

  test("a plan and an explanation in the order frequent show uses and keys", () => {
    const frequency = { uses: 12, agingTerm: 30, dayBegunWatched: null };
    const one = candidate(1, { expected: true });
    const counted = { ...one, record: { ...one.record, frequency }, orderKey: 42 };
    const images = imagePlan({ candidates: [counted] });
    expect(shown({ images })).toMatch(/ USES +KEY +UNUSED FOR[^]* 12 +42 /);
    expect(shown({ images: imagePlan({ candidates: [one] }) })).not.toMatch(/USES|KEY/);
    expect(candidateJson(counted, 1)).toMatchObject({ uses: 12, orderKey: 42 });
    const match = { kind: "candidate-image", candidate: counted, place: 1, candidates: 1 } as const;
    const report = { reference: "x", layers: new Map(), observedAt: NOW, blocks: [] };
    expect(
      explanationTable(explanationDocument({ ...report, matches: [match] }), terminal),
    ).toContain("uses since it came: 12; key in the order of removal: 42");
  });

  test("a plan on a terminal shows five candidates after the stop and counts the rest, and in a pipe all", () => {
    const candidates = Array.from({ length: 20 }, (_, index) =>
      candidate(index + 1, { expected: index < 3 }),
    );
    const text = shown({ images: imagePlan({ candidates }) });
    expect(text).toContain("app-8:1.8");
    expect(text).not.toContain("app-9:1.9");
    expect(text).toContain("12 more after them (--all or -o json shows all)");
    const piped = shown({ images: imagePlan({ candidates }) }, plainScreen);
    for (const it of candidates) expect(piped).toContain(` ${it.image.repoTags[0]!} `);
  });

  test("a group of 30 kept images names ten of them if there is no terminal, and all with --all", () => {
    const keeps = Array.from({ length: 30 }, (_, index) => kept(100 + index, { kind: "pinned" }));
    const images = imagePlan({ kept: keeps });
    const named = (screen: Screen): number =>
      keeps.filter((it) => shown({ images }, screen).includes(it.image.repoTags[0]!)).length;
    expect([named(plainScreen), named({ ...plainScreen, all: true })]).toEqual([10, 30]);
  });

  test.each([terminal, plainScreen])(
    "a plan of 5,000 candidates shows the first ones, those around the stop and how many lie between (%j)",
    (screen) => {
      const candidates = Array.from({ length: 5000 }, (_, index) =>
        candidate(index + 1, { expected: index < 4000, image: image((index % 9000) + 1) }),
      );
      const text = shown({ images: imagePlan({ candidates }) }, screen);
      const places = text.split("\n").flatMap((line) => /^ *(\d+)  registry/.exec(line)?.[1] ?? []);
      expect(places.map(Number)).toEqual([
        ...Array.from({ length: 40 }, (_, index) => index + 1),
        ...Array.from({ length: 10 }, (_, index) => 3996 + index),
      ]);
      expect(text).toContain("3955 more between (--all or -o json shows all");
      expect(text).toContain("995 more after them (--all or -o json shows all");
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
        expect(Bun.stringWidth(line)).toBeLessThanOrEqual(Math.max(width, 66));
    }
  });
});

describe("a pass", () => {
  test("gc without a trigger says so, and nothing of removed images", () => {
    const images = imageOutcome({ end: "nothing-to-do", items: [], wantedBytes: null });
    const text = gcTable(gcDocument(pass({ images, containers: null })), plainScreen);
    expect(text).toEndWith("\nImages: no threshold exceeded.\n");
  });

  test.each([
    ["nothing to remove", []],
    ["done", [removedImage(1)]],
  ])("gc for images by hand ends with: %s", (words, items) => {
    const images = imageOutcome({ end: "candidates-exhausted", items, wantedBytes: null });
    const purpose = { kind: "all-unused", only: [] } as const;
    const text = gcTable(gcDocument(pass({ purpose, images, containers: null })), plainScreen);
    expect(text).toContain(`\nImages: ${words}`);
    expect(text.includes("removed")).toBe(items.length > 0);
  });

  test("a pass over 5,500 containers prints under 10 kB: failures, the first rows, and counts by reason", () => {
    const containers = Array.from({ length: 5500 }, (_, index) => ({
      planned: removedContainer(index),
      reason: { kind: "pod-gone" } as const,
      result:
        index === 5000
          ? ({ kind: "failed", step: "remove", message: "device busy", code: "failed" } as const)
          : ({ kind: "removed" } as const),
      stopped: false,
      logFiles: [],
      logBytes: 0n,
      logError: null,
    }));
    const large = pass({ containers: containerOutcome({ containers }), images: null });
    const text = gcTable(gcDocument(large), plainScreen);
    expect(text.length).toBeLessThan(10_000);
    expect(text).toContain("failed to remove: device busy");
    expect(text).toContain(
      "5452 more rows (--all or -o json shows all):\n  5450  container removed: dead, its pod was deleted\n",
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
    expect(gcDocument(short)["images"]).toMatchObject({
      end: "candidates-exhausted",
      endText: expect.stringContaining(words),
    });
    expect(shown(short.plan)).toContain("\n2 images (251.0 MiB) become removable in 1m48s.\n");
  });
});

describe("images", () => {
  const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };

  test("images on a terminal of 80 columns have whole names and headings, and users next to the reason", () => {
    const text = imageListTable(imageListDocument(report), { ...terminal, width: 80 });
    expect(text).toMatch(
      /^IMAGE +SIZE +SEEN +USED +KEPT BY\nregistry\.example\/team\/app-23:1\.23 /,
    );
    expect(text).toMatch(/pinned in the \w+/);
    expect(imageListTable(imageListDocument(report), { ...terminal, width: 100 })).toContain(
      "in use: shop-0/web\n",
    );
    for (const line of text.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
  });

  test("an image that no rule keeps is kept by nothing, with its place in the order of removal", () => {
    const places = Array.from({ length: 23 }, (_, index) => candidate(index + 1));
    const entries = entriesOf(imagePlan({ candidates: places }));
    const text = imageListTable(imageListDocument({ ...report, entries }), plainScreen);
    for (const place of [
      "1st",
      "2nd",
      "3rd",
      "4th",
      "11th",
      "12th",
      "13th",
      "21st",
      "22nd",
      "23rd",
    ])
      expect(text).toContain(`nothing (${place} to go)`);
  });

  test("images of equal size are listed by ID in descending order", () => {
    const same = [1, 2, 3].map((seed) => image(seed, { sizeBytes: 5n }));
    expect(unjudged(same).map((it) => it.image.id)).toEqual(same.map(({ id }) => id).toReversed());
  });
});

describe("history", () => {
  test("history says that passes with nothing to do are not listed, even if there are no others", () => {
    const words = (report: Partial<HistoryReport>): string =>
      historyTable(
        historyDocument({ removals: [], events: [], regrets: [], passes: [], ...report }),
        plainScreen,
      );
    const sentence = "Passes with nothing to do are not listed; list them with --all.\n";
    expect(words({ passes: [passRow()], hidesIdle: true })).toEndWith(`\n${sentence}`);
    expect(words({ hidesIdle: true })).toBe(sentence);
    expect(words({})).toBe("No records found.\n");
  });

  const all = { purpose: "all-unused", imagesEnd: "candidates-exhausted" } as const;
  const idle = { removed: 0 } as const;
  test.each([
    ["image GC, P1: 1 removed, 2.0 GiB freed, no candidates left, in 4s", all],
    ["P1: no candidates left, in 4s", { ...all, ...idle, purpose: "pressure" }],
    ["GC, P1: done, in 4s", { ...idle, kind: "gc", imagesEnd: null, containersEnd: "done" }],
    ["1 removed, 0 B freed (1.0 GiB reported), target reached", { measuredFreedBytes: 0n }],
    ["P1: removal is blocked, in 4s", { ...idle, imagesEnd: null, containersEnd: "blocked" }],
    ["P1: stopped on request, in 4s", { ...idle, imagesEnd: "stopped", containersEnd: "stopped" }],
    [
      "layer-gc, P1: 1 removed, 2.0 GiB freed, moon-full, in 4s",
      { kind: "layer-gc" as PassKind, imagesEnd: "moon-full" as ImageEnd },
    ],
  ] as const)("history words a pass as: %s", (words, difference) => {
    const rows = { passes: [passRow(difference)], removals: [], events: [], regrets: [] };
    const document = historyDocument(rows);
    expect(historyTable(document, plainScreen)).toContain(words);
    const [row] = document.passes;
    expect(words).toContain(row?.imagesEndText ?? row?.containersEndText ?? "no end");
  });
});

describe("status", () => {
  test("status says that a loop is running, not that it has not run yet", () => {
    const [loop] = status().loops;
    if (loop === undefined) throw new Error("the status has no loop");
    const row = (change: object): string =>
      statusTable(statusDocument({ ...status(), loops: [{ ...loop, ...change }] }), plainScreen);
    const first = { lastEndedAt: null, nextAt: null };
    expect(row({ ...first, lastStartedAt: null })).toMatch(/image-gc +5m +- +- +not run yet\n/);
    expect(row(first)).toMatch(/image-gc +5m +- +running +-\n/);
    expect(row({ nextAt: null })).toMatch(/image-gc +5m +3m ago +running +ok\n/);
  });

  test("status shows every value if there is no terminal", () => {
    expect(statusTable(statusDocument(status()), plainScreen)).toContain(
      "imageGCHighThresholdPercent  85",
    );
  });

  const thresholds = { lowPercent: 80, highPercent: 85 };
  const full = "full in 21h if nothing is removed";
  test.each([
    [`Reaches 85% in 6h, ${full}`, thresholds, {}],
    ["Full in 21h if nothing is removed", thresholds, { untilHigh: duration(0n) }],
    ["Reaches 85% in 6h, not full within 7d12h", thresholds, { untilFull: null }],
    ["Does not reach 85% within 7d12h", thresholds, { untilHigh: null, untilFull: null }],
    ["Not full within 7d12h", thresholds, { untilHigh: duration(0n), untilFull: null }],
    ["Full in 21h if nothing is removed", null, { untilHigh: null }],
  ])("status of a disk says: %s", (words, limits, change) => {
    const disk = { filesystem: measured(), thresholds: limits };
    const filesystems = [{ ...disk, forecast: { ...forecast, ...change } }];
    expect(statusTable(statusDocument(status({ filesystems })), plainScreen).split("\n")).toContain(
      `${words}, at 1.0 GiB/h (measured over 18h)`,
    );
    expect(statusTable(statusDocument(status()), plainScreen)).not.toContain("measured over");
  });
});
