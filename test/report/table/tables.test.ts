// What `plan` and `gc` print.

import { describe, expect, test } from "bun:test";

import type { Plan } from "../../../src/model/plan.ts";
import { minutes, seconds } from "../../../src/model/time.ts";
import { gcDocument, gcTable } from "../../../src/report/gc.ts";
import { passSummary } from "../../../src/report/pass-words.ts";
import { planTable } from "../../../src/report/plan-table.ts";
import type { Screen } from "../../../src/report/terminal.ts";
import {
  candidate,
  containerOutcome,
  containerPlan,
  GIB,
  image,
  imageOutcome,
  imagePlan,
  kept,
  NOW,
  pass,
  plainScreen,
  removedContainer,
  removedImage,
  runtime,
  terminal,
  usage,
} from "../build.ts";

const shown = (plan: Partial<Plan>, screen: Screen = terminal): string =>
  planTable(
    { plan: { images: null, containers: null, ...plan }, runtime, observedAt: NOW },
    screen,
  );

describe("a plan", () => {
  test("a plan shows the disk, the target, the order of removal, the stop and what is kept", () => {
    expect(shown({ images: imagePlan() })).toBe(
      `containerd 1.7.24 at unix:///run/containerd/containerd.sock, as of 2026-01-15T12:00:00Z

/var/lib/containerd: 88% used, 6.0 GiB of 50.0 GiB free (nodefs, imagefs)
  ▕████████████████████████████████████████████████│██│█░░░░░░░▏
                                           low 80% ┘  └ high 85%

Target: free 4.0 GiB on /var/lib/containerd (to 10.0 GiB available): disk usage over the high
threshold.
1 image (491.0 MiB) becomes removable in 1m20s.

2 of 7 images would be removed, in this order, freeing about 251.0 MiB, less than the target:
#  IMAGE                                 SIZE  UNUSED FOR  LAST USED   WHY
1  registry.example/team/app-1:1.1  117.0 MiB        4d3h  2026-01-12  space
2  registry.example/team/app-2:1.2  134.0 MiB        4d2h  2026-01-12  space
──── estimated stop; the disk is measured after each removal ────
3  registry.example/team/app-3:1.3  151.0 MiB        4d1h  never       space

4 images kept (crigc explain IMAGE shows why):
   1  in use: registry.example/team/app-20:1.20
   1  keep rule: registry.example/team/app-22:1.22
   1  pinned in the runtime: registry.example/team/app-21:1.21
   1  too young: registry.example/team/app-23:1.23
`,
    );
  });

  test("a plan names the mount point of its target, as above it, not the runtime's path below it", () => {
    const filesystem = { ...usage().filesystem, path: "/var/lib/containerd", mountpoint: "/data" };
    const text = shown({ images: imagePlan({ usage: [usage({ filesystem })] }) });
    expect(text).toContain("Target: free 4.0 GiB on /data (to 10.0 GiB available)");
  });

  test("a plan that adds up reported sizes, as the kubelet does, does not speak of measuring the disk", () => {
    const text = shown({ images: imagePlan({ accounting: "reported" }) });
    expect(text).toContain("estimated stop; reported sizes are added up");
    expect(text).not.toContain("measured");
  });

  test("a plan starts with what blocks removal", () => {
    const lines = shown({
      images: imagePlan({
        candidates: [],
        blocks: [{ kind: "on-hold", until: null, reason: "release night" }],
      }),
    }).split("\n");
    expect(lines[2]).toBe(
      "No image is removed now: garbage collection is on hold until it is released (release night); crigc",
    );
  });

  test("a plan explains a hold once, for images, and says that it blocks containers too", () => {
    const blocks = [{ kind: "on-hold", until: null, reason: "night" }] as const;
    const text = shown({
      images: imagePlan({ candidates: [], blocks }),
      containers: containerPlan({ blocks }),
    });
    expect(text.match(/on hold/g)).toHaveLength(1);
    expect(text).toContain("No container, sandbox or log is removed now either.");
  });

  test("a plan says what fills a disk that images cannot relieve", () => {
    const text = shown(
      {
        images: imagePlan({
          futility: [
            {
              filesystem: "/data",
              boundBytes: GIB,
              neededBytes: 3n * GIB,
              futile: true,
              breakdown: {
                capacityBytes: 50n * GIB,
                availableBytes: 2n * GIB,
                imagesBytes: GIB,
                imagesAtLeastBytes: 0n,
                containersBytes: null,
                logsBytes: 0n,
                otherBytes: 47n * GIB,
              },
            },
          ],
        }),
      },
      plainScreen,
    );
    expect(text).toContain(
      "What fills /data: images up to 1.0 GiB, pod logs 0 B, other data 47.0 GiB of 48.0 GiB used.",
    );
  });

  test("a plan says that no threshold is exceeded only if none is, not where removal is blocked", () => {
    const idle = { candidates: [], targets: [], triggers: [] };
    const words = "No threshold exceeded, no image is removed.";
    expect(shown({ images: imagePlan(idle) })).toContain(words);
    const futile = imagePlan({ ...idle, triggers: [{ kind: "space" }] });
    expect(shown({ images: futile })).not.toContain(words);
  });

  test("a plan on a terminal shows five candidates after the stop and counts the rest", () => {
    const candidates = Array.from({ length: 20 }, (_, index) =>
      candidate(index + 1, { expected: index < 3 }),
    );
    const text = shown({ images: imagePlan({ candidates }) });
    expect(text).toContain("app-8:1.8");
    expect(text).not.toContain("app-9:1.9");
    expect(text).toContain("12 more after them (--all or -o json shows all)");
  });

  test("a plan of 40 candidates names each of them if there is no terminal", () => {
    const candidates = Array.from({ length: 40 }, (_, index) => candidate(index + 1));
    const text = shown({ images: imagePlan({ candidates }) }, plainScreen);
    for (const it of candidates) expect(text).toContain(` ${it.image.repoTags[0]!} `);
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
        ...Array.from({ length: places.length - 10 }, (_, index) => index + 1),
        3996,
        3997,
        3998,
        3999,
        4000,
        4001,
        4002,
        4003,
        4004,
        4005,
      ]);
      expect(places.length).toBeLessThanOrEqual(51);
      expect(text).toContain(
        `${4000 - (places.length - 5)} more between (--all or -o json shows all`,
      );
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

  test("a plan names containers, sandboxes and logs that would be removed, with the reason, and what is kept", () => {
    const text = shown({ containers: containerPlan() });
    expect(text).toContain("1 of 3 containers would be removed:");
    expect(text).toContain("default/pod-1/worker-1  exited  dead, its pod was deleted");
    expect(text).toContain("   2  running: default/pod-2/worker-2, default/pod-3/worker-3");
    expect(text).toContain("default_pod-1_uid-1  its pod was deleted");
    expect(text).toContain("Not pod logs, kept: lost+found.");
  });

  test("a plan says that no log is deleted if the log directories cannot be read", () => {
    const text = shown({ containers: containerPlan({ logsError: "cannot open /l" }) });
    expect(text).toContain(
      "No pod log is deleted, not even that of a removed container: cannot open /l",
    );
  });

  test("control characters in a tag do not reach the terminal", () => {
    const evil = candidate(1, { image: image(1, { repoTags: ["a\u001b[2J\u202eb:1"] }) });
    expect(shown({ images: imagePlan({ candidates: [evil] }) })).toContain("a[2Jb:1");
  });
});

describe("a pass", () => {
  test("gc says how each half ended and what it freed, measured and reported", () => {
    const text = gcTable(pass(), plainScreen);
    expect(text).toContain("Pass 20260115T120000Z-0a1b2c: GC, took 1.8s");
    expect(text).toContain(
      "2 images removed, 502.0 MiB freed (251.0 MiB reported), target 4.0 GiB. Disk: 88% used, 6.5 GiB of 50.0 GiB free (6.0 GiB before).",
    );
    expect(text).toContain("registry.example/team/app-1:1.1  117.0 MiB  234.0 MiB  120ms  space");
    expect(text).toContain("Containers: done. 1 container, 1 sandbox, 1 log entry removed");
  });

  test("gc without a trigger says so, and nothing of removed images", () => {
    const images = imageOutcome({ end: "nothing-to-do", items: [], wantedBytes: null });
    const text = gcTable(pass({ images, containers: null }), plainScreen);
    expect(text).toEndWith("\nImages: no threshold exceeded.\n");
  });

  test.each([
    ["nothing to remove", []],
    ["done", [removedImage(1)]],
  ])("gc for images by hand ends with: %s", (words, items) => {
    const images = imageOutcome({ end: "candidates-exhausted", items, wantedBytes: null });
    const purpose = { kind: "all-unused", only: [] } as const;
    const text = gcTable(pass({ purpose, images, containers: null }), plainScreen);
    expect(text).toContain(`\nImages: ${words}`);
    expect(text.includes("removed")).toBe(items.length > 0);
  });

  test("gc shows a removal that failed", () => {
    const failed = removedImage(1, {
      result: { kind: "failed", message: "image is in use", code: "failed" },
    });
    const text = gcTable(pass({ images: imageOutcome({ items: [failed] }) }), plainScreen);
    expect(text).toContain("0 images removed, 1 removal failed, target 4.0 GiB.");
    expect(text).toContain("failed: image is in use");
  });

  test("gc counts ghosts among the removals that failed, and those of containers too", () => {
    const ghost = removedImage(1, { result: { kind: "ghost" } });
    const [one] = containerOutcome().containers;
    if (one === undefined) throw new Error("the outcome has a container");
    const result = { kind: "failed", step: "remove", message: "busy", code: "failed" } as const;
    const containers = containerOutcome({ containers: [{ ...one, result }] });
    const text = gcTable(
      pass({ containers, images: imageOutcome({ items: [ghost] }) }),
      plainScreen,
    );
    expect(text).toContain("0 images removed, 1 removal failed, target 4.0 GiB.");
    expect(text).toContain(
      "0 containers, 1 sandbox, 1 log entry removed, 12.0 MiB freed, 1 removal failed.",
    );
  });

  test("gc shows what it could not judge as well as what it removed", () => {
    const containers = containerOutcome({ errors: ["logs stay, because of x"] });
    const text = gcTable(pass({ containers }), plainScreen);
    expect(text).toContain("1 container, 1 sandbox, 1 log entry removed");
    expect(text).toContain("Failed: logs stay, because of x.");
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
    const text = gcTable(large, plainScreen);
    expect(text.length).toBeLessThan(10_000);
    expect(text).toContain("failed to remove: device busy");
    expect(text).toContain(
      "5452 more rows (--all or -o json shows all):\n  5450  container removed: dead, its pod was deleted\n",
    );
    const all = gcTable(large, { ...plainScreen, all: true });
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
    expect(gcTable(short, plainScreen)).toContain(`Images: no candidates left, ${words}.`);
    expect(passSummary(short)).toContain(words);
    expect(gcDocument(short)["images"]).toMatchObject({
      end: "candidates-exhausted",
      endText: expect.stringContaining(words),
    });
    expect(planTable({ plan: short.plan, runtime, observedAt: NOW }, plainScreen)).toContain(
      "\n2 images (251.0 MiB) become removable in 1m48s.\n",
    );
  });

  test("gc says what blocked it rather than that it was blocked", () => {
    const blocked = pass({
      plan: {
        containers: null,
        images: imagePlan({
          candidates: [],
          blocks: [{ kind: "pods-unknown", message: "status 500" }],
        }),
      },
      images: imageOutcome({ end: "blocked", items: [], availableAfter: null }),
      containers: null,
    });
    expect(gcTable(blocked, plainScreen)).toContain(
      "Images: cannot read the pods of this node, whose images count as in use: status 500.",
    );
  });

  test("gc in a dry run shows the plan", () => {
    const text = gcTable(pass({ dryRun: true }), plainScreen);
    expect(text).toContain("dry run, nothing removed");
    expect(text).toContain("2 of 7 images would be removed");
  });

  test("gc ends with its events", () => {
    const text = gcTable(
      pass({ events: [{ reason: "GhostImage", message: "x is listed", at: NOW, passId: null }] }),
      plainScreen,
    );
    expect(text).toEndWith("Warning GhostImage: x is listed\n");
  });
});
