// What explain, images, history, audit, keep list, doctor and status print, and their documents.

import { describe, expect, test } from "bun:test";

import type { AuditFinding } from "../../../src/model/audit.ts";
import type { Forecast } from "../../../src/model/disk-usage.ts";
import type { PassRow, Removal } from "../../../src/model/history.ts";
import { passId } from "../../../src/model/ids.ts";
import type { ImageEnd } from "../../../src/model/outcome.ts";
import type { PassKind } from "../../../src/model/pass.ts";
import { duration, minutes, plus, seconds } from "../../../src/model/time.ts";
import { auditDocument, auditTable } from "../../../src/report/audit.ts";
import { doctorDocument, doctorTable } from "../../../src/report/doctor.ts";
import { type JsonObject, toJson } from "../../../src/report/document.ts";
import { explanationDocument, explanationTable } from "../../../src/report/explanation.ts";
import { historyDocument, historyTable } from "../../../src/report/history.ts";
import {
  entriesOf,
  imageListDocument,
  imageListTable,
  unjudged,
} from "../../../src/report/images.ts";
import { keepRulesDocument, keepRulesTable } from "../../../src/report/keep.ts";
import { statusDocument, type StatusReport, statusTable } from "../../../src/report/status.ts";
import {
  candidate,
  container,
  forecast,
  GIB,
  hex,
  image,
  imagePlan,
  kept,
  measured,
  NOW,
  plainScreen,
  removedContainer,
  runtime,
  sandbox,
  status,
  terminal,
} from "../build.ts";

const parsed = (document: JsonObject): Record<string, unknown> =>
  JSON.parse(toJson(document)) as Record<string, unknown>;

describe("explain", () => {
  const plan = imagePlan();

  test("explain says why an image is kept, and marks the rule that decides", () => {
    const text = explanationTable(
      {
        reference: "x",
        layers: new Map(),
        observedAt: NOW,
        blocks: [],
        matches: [{ kind: "kept-image", kept: plan.kept[2]! }],
      },
      plainScreen,
    );
    expect(text).toContain(
      "Kept: keep rule registry.example/team/* (/etc/crigc/keep.d/base.list:3) matches registry.example/team/app-22:1.22.",
    );
    expect(text).toMatch(/\n {2}last used: \S+ ago \(2026-01-12T\S+Z\)\n/);
    expect(text).toContain("   1. in-use: no\n   2. keep-rule: yes (decides)\n");
  });

  const candidates = [
    [
      "that goes",
      true,
      "Would be removed now as number 3 of 9 in the order of removal: disk usage over",
    ],
    [
      "behind the stop",
      false,
      "Candidate: no rule keeps it, but the pass is expected to stop before it; number 3",
    ],
  ] as const;

  test.each(candidates)("explain says the place of a candidate %s", (_what, expected, words) => {
    const text = explanationTable(
      {
        layers: new Map(),
        reference: "x",
        observedAt: NOW,
        blocks: [],
        matches: [
          {
            kind: "candidate-image",
            candidate: candidate(1, { expected }),
            place: 3,
            candidates: 9,
          },
        ],
      },
      plainScreen,
    );
    expect(text).toContain(words);
    expect(text).not.toContain("this decides");
  });

  test("explain starts with what blocks every removal", () => {
    const text = explanationTable(
      {
        layers: new Map(),
        reference: "x",
        observedAt: NOW,
        blocks: [{ kind: "on-hold", until: null, reason: "" }],
        matches: [{ kind: "container", planned: removedContainer(1) }],
      },
      plainScreen,
    );
    expect(text.split("\n")[0]).toBe(
      "Not removed now: garbage collection is on hold until it is released; crigc release ends the hold.",
    );
    expect(text).toContain("Would be removed: dead, its pod was deleted.");
  });

  test("explain has the verdict, the reason and the rules in JSON", () => {
    const document = parsed(
      explanationDocument({
        layers: new Map(),
        reference: "x",
        observedAt: NOW,
        blocks: [],
        matches: [{ kind: "kept-image", kept: kept(1, { kind: "pinned" }) }],
      }),
    );
    expect(document).toMatchObject({
      kind: "Explanation",
      reference: "x",
      things: [
        {
          kind: "image",
          verdict: "kept",
          text: "kept: pinned in the runtime",
          reason: { code: "pinned" },
          tried: ["in-use", "pinned"],
        },
      ],
    });
  });
});

describe("images", () => {
  test("images are listed by size, with what uses and what keeps them", () => {
    const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };
    const text = imageListTable(report, { ...terminal, width: 120 });
    const lines = text.split("\n");
    expect(lines[1]).toMatch(/app-23:1\.23 +001700170017 +491\.0 MiB .* too young$/);
    expect(text).toMatch(/app-20:1\.20 .* now +shop-0\/web +in use\n/);
    expect(text).toMatch(/app-1:1\.1 .* candidate 1\n/);
    expect(text).toEndWith("\n7 images, 2.2 GiB as reported\n");
  });

  test("images on a narrow terminal lose words of their reasons before letters of their names", () => {
    const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };
    const natural = imageListTable(report, { ...terminal, width: 120 }).split("\n")[1] ?? "";
    const [name = ""] = natural.split(/ {2,}/);
    const narrow = imageListTable(report, { ...terminal, width: 79 });
    expect(narrow).toContain(name);
    expect(narrow).toMatch(/pinned in the \w+…/);
  });

  test("images on a terminal of 80 columns have whole headings, and users next to the reason", () => {
    const report = { observedAt: NOW, entries: entriesOf(imagePlan()) };
    const text = imageListTable(report, { ...terminal, width: 80 });
    expect(text).toMatch(/^IMAGE +SIZE +SEEN +USED +KEPT BY\n/);
    expect(imageListTable(report, { ...terminal, width: 100 })).toContain("in use: shop-0/web\n");
    for (const line of text.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
  });

  test("images in JSON have their users and the rule that keeps them", () => {
    const document = parsed(
      imageListDocument({ observedAt: NOW, entries: entriesOf(imagePlan()) }),
    ) as unknown as { count: number; images: readonly Record<string, unknown>[] };
    expect(document.count).toBe(7);
    expect(
      document.images.find((it) => it["name"] === "registry.example/team/app-20:1.20"),
    ).toMatchObject({
      usedBy: [{ kind: "container", name: "web" }],
      keptBy: { code: "in-use" },
      place: null,
    });
  });

  test("images of equal size are listed by ID in descending order", () => {
    const same = [1, 2, 3].map((seed) => image(seed, { sizeBytes: 5n }));
    expect(unjudged(same).map((it) => it.image.id)).toEqual([
      same[2]!.id,
      same[1]!.id,
      same[0]!.id,
    ]);
  });
});

const passRow = (differences: Partial<PassRow> = {}): PassRow => ({
  id: passId("P1"),
  kind: "image-gc",
  purpose: "periodic",
  signals: [],
  startedAt: NOW,
  endedAt: plus(NOW, seconds(4)),
  dryRun: false,
  error: null,
  imagesEnd: "target-reached",
  containersEnd: null,
  removed: 1,
  failed: 0,
  wantedBytes: GIB,
  reportedFreedBytes: GIB,
  measuredFreedBytes: 2n * GIB,
  availableBeforeBytes: null,
  availableAfterBytes: null,
  capacityBytes: null,
  steps: [{ name: "observe", startedAt: NOW, took: seconds(1), error: null }],
  ...differences,
});

const removalRow = (differences: Partial<Removal> = {}): Removal => ({
  passId: passId("P1"),
  kind: "image",
  subject: `sha256:${hex(1)}`,
  names: ["registry.example/team/app:1"],
  trigger: "space",
  signal: null,
  reason: "space",
  result: "removed",
  message: null,
  reportedBytes: GIB,
  measuredBytes: 2n * GIB,
  chainId: null,
  freesBytes: null,
  freesAtLeastBytes: null,
  freesAtMostBytes: null,
  settled: "at-once",
  at: NOW,
  took: seconds(1),
  ...differences,
});

describe("history", () => {
  test("history shows each pass with what it removed, and events in their place", () => {
    const text = historyTable(
      {
        passes: [passRow()],
        removals: [removalRow()],
        events: [
          { reason: "GhostImage", message: "m", at: plus(NOW, minutes(1)), passId: null },
          { reason: "ImageGCFutile", message: "n", at: plus(NOW, minutes(-1)), passId: null },
        ],
      },
      plainScreen,
    );
    expect(text).toBe(
      `2026-01-15T11:59:00Z  warning ImageGCFutile: n
2026-01-15T12:00:00Z  image GC, P1: 1 removed, 2.0 GiB freed, target reached, in 4s
  KIND   NAME                           FREED  REPORTED  WHY    RESULT
  image  registry.example/team/app:1  2.0 GiB   1.0 GiB  space  removed

2026-01-15T12:01:00Z  warning GhostImage: m
`,
    );
  });

  test("history shows what a failed pass removed", () => {
    const failed = passRow({ error: "cannot open /l" });
    const text = historyTable({ passes: [failed], removals: [], events: [] }, plainScreen);
    expect(text).toContain("P1: 1 removed, 2.0 GiB freed, failed: cannot open /l");
  });

  test("history shows a removal whose pass was not selected", () => {
    const text = historyTable({ passes: [], removals: [removalRow()], events: [] }, plainScreen);
    expect(text).toContain("registry.example/team/app:1");
  });

  test("status says that a loop is running, not that it has not run yet", () => {
    const [loop] = status().loops;
    if (loop === undefined) throw new Error("the status has no loop");
    const row = (change: object): string =>
      statusTable({ ...status(), loops: [{ ...loop, ...change }] }, plainScreen);
    const first = { lastEndedAt: null, nextAt: null };
    expect(row({ ...first, lastStartedAt: null })).toMatch(/image-gc +5m +- +- +not run yet\n/);
    expect(row(first)).toMatch(/image-gc +5m +- +running +-\n/);
    expect(row({ nextAt: null })).toMatch(/image-gc +5m +3m ago +running +ok\n/);
  });

  test("history says that passes with nothing to do are not listed, even if there are no others", () => {
    const rows = { removals: [], events: [], hidesIdle: true };
    const sentence = "Passes with nothing to do are not listed; list them with --all.\n";
    expect(historyTable({ ...rows, passes: [passRow()] }, plainScreen)).toEndWith(`\n${sentence}`);
    expect(historyTable({ ...rows, passes: [] }, plainScreen)).toBe(sentence);
  });

  test.each(["all-unused", "pressure"] as const)(
    "history of a pass over everything unused (%s) says nothing of a target",
    (purpose) => {
      const all = passRow({ purpose, imagesEnd: "candidates-exhausted" });
      const text = historyTable({ passes: [all], removals: [], events: [] }, plainScreen);
      expect(text).toContain("no candidates left, in 4s");
    },
  );

  test("history says of a pass over containers alone that it is done, and that images freed 0 B where nothing was measured", () => {
    const done = passRow({ kind: "gc", imagesEnd: null, containersEnd: "done", removed: 0 });
    const nothing = passRow({ measuredFreedBytes: 0n });
    const all = { ...plainScreen, all: true } as const;
    const rows = { passes: [done, nothing], removals: [], events: [] };
    const text = historyTable(rows, all);
    expect(text).toContain("GC, P1: done, in 4s");
    expect(text).toContain("1 removed, 0 B freed (1.0 GiB reported), target reached");
  });

  test("history says that a pass was interrupted", () => {
    const rows = { passes: [passRow({ endedAt: null })], removals: [], events: [] };
    expect(historyTable(rows, plainScreen)).toContain("interrupted");
  });

  test.each([
    ["container-gc", null, "blocked", "removal is blocked"],
    ["gc", "blocked", "blocked", "removal is blocked"],
    ["gc", "stopped", "stopped", "stopped on request"],
  ] as const)(
    "history words the ends of a pass %s (images %p, containers %p): %s",
    (kind, imagesEnd, containersEnd, words) => {
      const row = passRow({ kind, imagesEnd, containersEnd, removed: 0 });
      const rows = { passes: [row], removals: [], events: [], regrets: [] };
      expect(historyTable(rows, plainScreen)).toContain(`P1: ${words}, in 4s`);
      expect(parsed(historyDocument(rows))).toMatchObject({
        passes: [{ containersEndText: words.split(", ").at(-1) }],
      });
    },
  );

  test("history shows codes of a later version as they are", () => {
    const later = passRow({ kind: "layer-gc" as PassKind, imagesEnd: "moon-full" as ImageEnd });
    const text = historyTable({ passes: [later], removals: [], events: [] }, plainScreen);
    expect(text).toContain("layer-gc, P1: 1 removed, 2.0 GiB freed, moon-full, in 4s");
  });

  test("an empty history says so", () => {
    expect(historyTable({ passes: [], removals: [], events: [] }, plainScreen)).toBe(
      "No records found.\n",
    );
  });

  test("history has exact figures and timed steps in JSON", () => {
    const document = parsed(
      historyDocument({ passes: [passRow()], removals: [removalRow()], events: [], regrets: [] }),
    );
    expect(document).toMatchObject({
      kind: "History",
      passes: [{ passId: "P1", steps: [{ name: "observe", tookMs: 1000 }] }],
      removals: [{ id: `sha256:${hex(1)}`, measuredBytes: 2_147_483_648, tookMs: 1000 }],
    });
  });
});

describe("audit", () => {
  const findings: readonly AuditFinding[] = [
    { kind: "nameless-image", image: image(1), inUse: true, removable: false },
    { kind: "ghost-image", image: image(2), since: NOW, attempts: 2 },
    {
      kind: "unexplained-bytes",
      filesystem: "/data",
      breakdown: {
        capacityBytes: 10n * GIB,
        availableBytes: GIB,
        imagesBytes: GIB,
        imagesAtLeastBytes: 0n,
        containersBytes: null,
        logsBytes: null,
        otherBytes: 8n * GIB,
      },
    },
    { kind: "foreign-container", container: container(1) },
    { kind: "foreign-sandbox", sandbox: sandbox(1) },
    { kind: "stray-log-entry", directory: "/var/log/pods", entry: "lost+found" },
    { kind: "unread-logs", message: "cannot open /l" },
    { kind: "unresolved-reference", reference: "app:2", message: "no such image" },
  ];

  test("audit shows each finding and what to do about it", () => {
    const text = auditTable({ runtime, observedAt: NOW, findings }, plainScreen);
    expect(text).toContain(
      "  image sha256:000100010001 (117.0 MiB) has neither tag nor digest and is in use.",
    );
    expect(text).toContain("is still listed after 2 removals since 2026-01-15T12:00:00.25Z.");
    expect(text).toContain("  8.0 GiB on /data belong to no image, container or pod log");
    expect(text.split("What to do:")).toHaveLength(findings.length + 1);
  });

  test("audit has a code, a sentence, advice and data for each finding in JSON", () => {
    const document = parsed(auditDocument({ runtime, observedAt: NOW, findings })) as unknown as {
      findings: readonly Record<string, unknown>[];
    };
    expect(document.findings.map((it) => it["code"])).toEqual(findings.map((it) => it.kind));
    expect(document.findings[1]).toMatchObject({ attempts: 2, since: "2026-01-15T12:00:00.25Z" });
    for (const it of document.findings) expect(Object.keys(it).length).toBeGreaterThanOrEqual(4);
  });

  test("an audit without findings says so", () => {
    expect(auditTable({ runtime, observedAt: NOW, findings: [] }, plainScreen)).toEndWith(
      "No findings.\n",
    );
  });
});

describe("keep list", () => {
  const report = {
    rules: [
      { rule: { pattern: "nginx", source: "/etc/crigc/keep.d/a.list:1" }, images: [image(1)] },
      { rule: { pattern: "x/**", source: "--keep" }, images: [] },
    ],
    protections: [],
    problems: [],
    matched: true,
  };

  test("keep list shows what each rule keeps, and how many keep nothing", () => {
    expect(keepRulesTable(report, plainScreen)).toBe(
      `PATTERN  SOURCE                      KEEPS
nginx    /etc/crigc/keep.d/a.list:1  1: registry.example/team/app-1:1.1
x/**     --keep                      no image on this node

1 rule matches no image of this node.
`,
    );
  });

  test("keep list shows what is kept without a rule, and why", () => {
    const shielded = {
      ...report,
      rules: [],
      protections: [
        { by: "pin", pattern: null, images: [image(1), image(2)] },
        { by: "pattern", pattern: "**/pause", images: [] },
      ],
    } as const;
    expect(keepRulesTable(shielded, plainScreen)).toBe(
      `No keep rules.

ALSO KEPT  BECAUSE                  KEEPS
-          pinned in the runtime    2: registry.example/team/app-1:1.1, registry.example/team/app-2:1.2
**/pause   sandbox image, built in  no image on this node
`,
    );
    expect(parsed(keepRulesDocument(shielded))).toMatchObject({
      protections: [
        { by: "pin", pattern: null },
        { by: "pattern", images: [] },
      ],
    });
  });

  test("keep list without a node says nothing of matches", () => {
    const text = keepRulesTable({ ...report, matched: false }, plainScreen);
    expect(text).not.toContain("node");
    expect(parsed(keepRulesDocument({ ...report, matched: false }))).toMatchObject({
      rules: [{ images: null }, { images: null }],
    });
  });

  test("keep list starts with invalid rules, which block the removal of images", () => {
    const broken = { ...report, problems: [{ source: "a.list:3", message: "is no pattern" }] };
    expect(keepRulesTable(broken, plainScreen)).toStartWith(
      "Invalid keep rules, so crigc removes no image:\n  a.list:3: is no pattern\n",
    );
    expect(parsed(keepRulesDocument(broken))).toMatchObject({ valid: false });
  });
});

describe("doctor", () => {
  const check = { name: "socket", result: "ok", message: "answers", advice: null } as const;

  test("doctor shows each check, its advice, and a verdict", () => {
    const warned = {
      name: "kubelet",
      result: "warning",
      message: "same threshold",
      advice: "raise it",
    } as const;
    expect(doctorTable({ checks: [check, warned] }, plainScreen)).toBe(
      `ok       socket: answers
warning  kubelet: same threshold
         what to do: raise it

No check failed, 1 warning.
`,
    );
  });

  test("doctor is healthy until a check fails", () => {
    const failed = { checks: [check, { ...check, result: "failed" as const }] };
    expect(doctorTable(failed, plainScreen)).toContain("1 check of 2 failed.");
    expect(parsed(doctorDocument(failed))).toMatchObject({ healthy: false });
    expect(parsed(doctorDocument({ checks: [check] }))).toMatchObject({ healthy: true });
  });
});

describe("status", () => {
  test("status shows disks with their thresholds, loops, passes and values that were set", () => {
    const text = statusTable(status(), terminal);
    expect(text).toContain("low 80% ┘  └ high 85%");
    expect(text).toContain("image-gc     5m  3m ago  in 2m  ok");
    expect(text).toContain("keep   a, b   /etc/crigc/crigc.yaml:3");
    expect(text).not.toContain("imageGCHighThresholdPercent");
  });

  test("status writes thresholds as their flag takes them", () => {
    const value = { "nodefs.available": "10%", "imagefs.inodesFree": "5%" };
    const values = [
      { field: "evictionHard", value, source: "default" },
      { field: "evictionMinimumReclaim", value, source: "default" },
    ];
    const text = statusTable(status({ values }), plainScreen);
    expect(text).toMatch(/evictionHard +nodefs.available<10%,imagefs.inodesFree<5% /);
    expect(text).toMatch(/evictionMinimumReclaim +nodefs.available=10%,imagefs.inodesFree=5% /);
  });

  test("status shows every value if there is no terminal", () => {
    expect(statusTable(status(), plainScreen)).toContain("imageGCHighThresholdPercent  85");
  });

  const troubles: readonly (readonly [string, Partial<StatusReport>])[] = [
    ["The runtime does not answer: no socket.", { runtimeError: "no socket" }],
    ["The configuration files differ from what is in force: x.", { configurationError: "x" }],
    ["The ledger is not on disk: full.", { ledgerError: "full" }],
    [
      "On hold until 2026-01-15T12:00:00Z (night).",
      { hold: { kind: "held", until: NOW, since: null, reason: "night" } },
    ],
    ["Grace period after a boot: nothing is removed for another 2m.", { bootGrace: minutes(2) }],
    [
      "Pod source kubelet-api is not ready: status 500.",
      { podSource: { kind: "not-ready", source: "kubelet-api", why: "status 500" } },
    ],
    [
      "Disk pressure: imagefs.available at / is 1.0 GiB, below 2.0 GiB.",
      {
        underPressure: true,
        pressure: [
          {
            signal: "imagefs.available",
            mountpoint: "/",
            available: GIB,
            limit: 2n * GIB,
            due: true,
          },
        ],
      },
    ],
    [
      "Disk pressure: nodefs.inodesFree at / is 5 inodes, below 9 inodes, within its grace period.",
      {
        underPressure: true,
        pressure: [
          { signal: "nodefs.inodesFree", mountpoint: "/", available: 5n, limit: 9n, due: false },
        ],
      },
    ],
    [
      "Disk pressure has ended; it is still reported during the transition period.",
      { underPressure: true },
    ],
  ];

  test.each(troubles)("status shows right after its head: %s", (line, differences) => {
    expect(statusTable(status(differences), plainScreen).split("\n")[2]).toBe(line);
  });

  test("status in JSON has values by their configuration name, with their source", () => {
    expect(parsed(statusDocument(status()))).toMatchObject({
      kind: "Status",
      hold: null,
      values: {
        imageGCHighThresholdPercent: { value: 85, source: "default" },
        keep: { value: ["a", "b"], source: "/etc/crigc/crigc.yaml:3" },
      },
      filesystems: [
        {
          lowPercent: 80,
          highPercent: 85,
          usedPercent: 88,
          availableBytes: 6_442_450_944,
          measuredAt: "2026-01-15T12:00:00.25Z",
        },
        { lowPercent: null },
      ],
      lastPasses: [{ passId: "20260115T120000Z-0a1b2c", passKind: "gc" }],
    });
  });

  test("status says how long ago each disk was measured", () => {
    const filesystems = [{ filesystem: measured(), thresholds: null, forecast: null }];
    const text = statusTable(status({ filesystems, now: plus(NOW, seconds(8)) }), plainScreen);
    expect(text).toContain("6.0 GiB of 50.0 GiB free, measured 8s ago");
  });

  test.each([
    [
      forecast,
      "Reaches 85% in 6h, full in 21h if nothing is removed, at 1.0 GiB/h (measured over 18h)",
    ],
    [
      { ...forecast, untilHigh: duration(0n) },
      "Full in 21h if nothing is removed, at 1.0 GiB/h (measured over 18h)",
    ],
    [
      { ...forecast, untilFull: null },
      "Reaches 85% in 6h, not full within 7d12h, at 1.0 GiB/h (measured over 18h)",
    ],
    [
      { ...forecast, untilHigh: null, untilFull: null },
      "Does not reach 85% within 7d12h, at 1.0 GiB/h (measured over 18h)",
    ],
    [
      { ...forecast, untilHigh: duration(0n), untilFull: null },
      "Not full within 7d12h, at 1.0 GiB/h (measured over 18h)",
    ],
  ])("status says in words when a disk reaches its threshold and is full (%#)", (it, words) => {
    const thresholds = { lowPercent: 80, highPercent: 85 };
    const filesystems = [{ filesystem: measured(), thresholds, forecast: it }];
    const text = statusTable(status({ filesystems }), plainScreen);
    expect(text.split("\n")).toContain(words);
  });

  test("status of a disk without a threshold says when it is full, and without a forecast nothing", () => {
    const filesystems = [
      { filesystem: measured(), thresholds: null, forecast: { ...forecast, untilHigh: null } },
    ];
    expect(statusTable(status({ filesystems }), plainScreen)).toContain(
      "\nFull in 21h if nothing is removed, at 1.0 GiB/h (measured over 18h)\n",
    );
    expect(statusTable(status(), plainScreen)).not.toContain("measured over");
  });

  test("status in JSON has the forecast of each filesystem", () => {
    const of = (it: Forecast | null) => ({
      filesystem: measured(),
      thresholds: null,
      forecast: it,
    });
    const filesystems = [of(forecast), of({ ...forecast, untilHigh: null }), of(null)];
    const shown = {
      bytesPerHour: 1_073_741_824,
      measuredOverMs: 64_800_000,
      horizonMs: 648_000_000,
      untilHighThresholdMs: 21_600_000,
      untilFullMs: 75_600_000,
    };
    expect(parsed(statusDocument(status({ filesystems })))).toMatchObject({
      filesystems: [
        { forecast: shown },
        { forecast: { ...shown, untilHighThresholdMs: null } },
        { forecast: null },
      ],
    });
  });

  test("status in JSON has the amounts of a signal in its own unit", () => {
    const pressure = [
      { signal: "nodefs.inodesFree", mountpoint: "/", available: 5n, limit: 9n, due: false },
      { signal: "nodefs.available", mountpoint: "/", available: 5n, limit: 9n, due: true },
    ];
    expect(parsed(statusDocument(status({ pressure })))).toMatchObject({
      pressure: [
        { availableInodes: 5, limitInodes: 9 },
        { availableBytes: 5, limitBytes: 9 },
      ],
    });
  });
});
