// The log: format, verbosity, folding, and what a pass says.

import { expect, test } from "bun:test";

import { journalOf, Log, logListener } from "../../src/engine/log.ts";
import { containerId } from "../../src/model/ids.ts";
import { outcomeItems, type Pass } from "../../src/model/pass.ts";
import { type Instant, minutes, plus, seconds } from "../../src/model/time.ts";
import {
  containerOutcome,
  containerPlan,
  imageOutcome,
  imagePlan,
  MIB,
  NOW,
  pass,
  removedImage,
} from "../report/build.ts";

const journalTo = (log: Log) => journalOf(logListener(log));

/** As the agent does: each removal when it is done, then the pass. */
function logPass(log: Log, it: Pass): void {
  const journal = journalTo(log);
  for (const item of it.images?.items ?? []) journal.imageDone(it.id, item);
  for (const item of it.containers === null ? [] : outcomeItems(it.containers))
    journal.containerDone(it.id, item);
  journal.passEnded(it, null);
}

interface Recorded {
  readonly log: Log;
  readonly lines: string[];
  /** Moves the clock. */
  readonly wait: (count: number) => void;
}

function recorded(
  format: "text" | "json" = "text",
  verbosity = 2,
  startedAt: Instant = NOW,
): Recorded {
  const lines: string[] = [];
  let now = startedAt;
  return {
    lines,
    log: new Log({ format, verbosity, sink: (line) => void lines.push(line), now: () => now }),
    wait: (count) => void (now = plus(now, minutes(count))),
  };
}

test("a line of the text log has severity, time of day in UTC, component, sentence and figures", () => {
  const { log, lines } = recorded();
  log.named("config").info(0, "Read the file", { file: "/etc/a b", sizeBytes: 10n });
  expect(lines).toEqual([
    'I0115 12:00:00.250000 config] Read the file file="/etc/a b" sizeBytes=10',
  ]);
});

test("a line of the JSON log is one object", () => {
  const { log, lines } = recorded("json");
  log.warning("No room", { sizeBytes: 18_446_744_073_709_551_615n });
  expect(lines).toEqual([
    '{"ts":"2026-01-15T12:00:00.25Z","level":"warning","component":"crigc","msg":"No room","sizeBytes":18446744073709551615}',
  ]);
});

test("a message with line ends is still written as one line", () => {
  for (const format of ["text", "json"] as const) {
    const { log, lines } = recorded(format);
    log.warning("a\nb\u001b[2J", { x: "c\r\nd" });
    expect(lines.join("")).not.toMatch(/[\n\r\u001b]/);
  }
});

test("a line above the verbosity is not written", () => {
  const { log, lines } = recorded("text", 2);
  log.info(2, "shown");
  log.info(3, "not shown");
  expect(lines).toHaveLength(1);
  expect([log.enabled(2), log.enabled(3)]).toEqual([true, false]);
});

/** What the log says after its header. */
const sentences = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => line.slice(line.indexOf("] ") + 2));

const fail = (log: Log, ...messages: readonly string[]): void => {
  for (const message of messages) log.failure("pass", message);
};

const series: readonly (readonly [string, (it: Recorded) => void, readonly string[]])[] = [
  [
    "identical failures are one line, and one with their count after the fold window",
    ({ log, wait }) => {
      for (let i = 0; i < 11; i += 1) {
        fail(log, "a");
        wait(1);
      }
    },
    ["a", "a repeated=10"],
  ],
  [
    "another failure of the same topic is written at once",
    ({ log }) => fail(log, "a", "a", "a", "b"),
    ["a", "b"],
  ],
  [
    "a failure that names another temporary file each time is the same one",
    ({ log }) => {
      for (const number of [393028135, 4277012971, 471026183]) fail(log, `no .tmp-${number}`);
    },
    ["no .tmp-393028135"],
  ],
  [
    "the first success after failures says how many there were, and ends the series",
    ({ log, wait }) => {
      fail(log, "a");
      wait(5);
      fail(log, "b");
      for (const _ of [1, 2]) log.success("pass", "Image collection");
      fail(log, "b");
    },
    ["a", "b", "Image collection succeeded after 2 failures in 5m", "b"],
  ],
  [
    "a warning that repeats is no failure to recover from",
    ({ log }) => {
      for (const text of ["idle", "idle"]) log.recurring("pass", text);
      log.success("pass", "Image collection");
      for (const text of ["idle", "idle"]) log.recurring("pass", text);
      fail(log, "a");
      log.recurring("pass", "idle");
      log.success("pass", "Image collection");
    },
    ["idle", "idle", "a", "idle", "Image collection succeeded after 1 failure in 0s"],
  ],
  [
    "failures are still logged when the clock was set back",
    ({ log, wait }) => {
      fail(log, "a");
      wait(-600);
      fail(log, "a");
    },
    ["a", "a"],
  ],
  [
    "failures of pod logs alone are logged in addition to the pass summary, and so is their end",
    ({ log }) => {
      const containers = containerOutcome({ errors: ["logs stay, because of x"] });
      journalTo(log).passEnded(pass({ containers }), null);
      journalTo(log).passEnded(pass(), null);
    },
    [
      expect.stringMatching(/^GC: containers and logs: logs stay, because of x /),
      expect.stringContaining("GC: 5 removed"),
      expect.stringContaining("GC: containers and logs succeeded after 1 failure"),
      expect.stringContaining("GC: 5 removed"),
    ],
  ],
  [
    "a pass that fails each time is logged once, and so is its recovery",
    ({ log }) => {
      const failed = pass({ error: "cannot list images", images: null, containers: null });
      for (let i = 0; i < 5; i += 1) logPass(log, failed);
      logPass(log, pass({ images: imageOutcome({ items: [], end: "stopped" }), containers: null }));
      logPass(log, pass({ images: imageOutcome({ items: [] }), containers: null }));
    },
    [
      expect.stringMatching(/^GC failed: cannot list images passId/),
      expect.stringMatching(/^GC: stopped on request/),
      "GC succeeded after 5 failures in 0s",
      expect.stringMatching(/^GC: target reached/),
    ],
  ],
  [
    "a removal that fails for one instance of a container and not for the next has not succeeded",
    ({ log }) => {
      const [done] = containerOutcome().containers;
      if (done === undefined) throw new Error("an outcome has a container");
      const { planned } = done;
      const container = { ...planned.container, id: containerId("older") };
      const result = { kind: "failed", step: "remove", message: "busy", code: "failed" } as const;
      for (let i = 0; i < 2; i += 1) {
        const failed = { ...done, planned: { ...planned, container }, result };
        journalTo(log).containerDone(pass().id, failed);
        journalTo(log).containerDone(pass().id, done);
      }
    },
    [expect.stringContaining("busy"), ...[1, 2].map(() => expect.stringContaining("removed ("))],
  ],
  [
    "a removal or an event that repeats in every pass is logged once",
    ({ log }) => {
      const item = removedImage(1, { result: { kind: "failed", message: "busy", code: "failed" } });
      const event = {
        reason: "GhostImage",
        message: "x is listed",
        at: NOW,
        passId: null,
      } as const;
      for (let i = 0; i < 5; i += 1) {
        journalTo(log).imageDone(pass().id, item);
        journalTo(log).event(event);
      }
    },
    [expect.stringContaining("app-1:1.1: failed: busy"), 'x is listed event="GhostImage"'],
  ],
];

test.each(series)("%s", (_, act, expected) => {
  const it = recorded();
  act(it);
  expect(sentences(it.lines)).toEqual(expected);
});

test("failures of very many topics take bounded memory", () => {
  const { log, lines } = recorded();
  for (const _ of [1, 2]) log.failure("first", "a");
  for (let i = 0; i < 1000; i += 1) log.failure(`topic ${i}`, "b");
  log.failure("first", "a");
  expect(lines).toHaveLength(1002);
});

const failed = { kind: "failed", step: "remove", message: "busy", code: "failed" } as const;
const [container] = containerOutcome().containers;
const none = { images: null, containers: null };
const nothing = { containers: [], sandboxes: [], logs: [] };
const mixed = [
  removedImage(1),
  removedImage(2, { result: failed }),
  removedImage(3, { result: { kind: "ghost" } }),
  removedImage(4, { result: { kind: "skipped", reason: { kind: "in-use", users: [] } } }),
];
const freedNothing = { measuredFreedBytes: 0n, reportedFreedBytes: 300n * MIB };
const block = { kind: "on-hold", until: null, reason: "an upgrade" } as const;
const held = {
  plan: {
    containers: containerPlan({ blocks: [block] }),
    images: imagePlan({ blocks: [block] }),
  },
  containers: containerOutcome({ end: "blocked", ...nothing }),
  images: imageOutcome({ end: "blocked", items: [] }),
};
const passes: Readonly<Record<string, Pass>> = {
  "removes images": pass({ containers: null }),
  "removes containers, sandboxes and logs": pass({ images: null }),
  "fails in part": pass({
    containers: containerOutcome({
      ...nothing,
      containers: container === undefined ? [] : [{ ...container, result: failed }],
    }),
    images: imageOutcome({ items: mixed }),
  }),
  fails: pass({ ...none, error: "no answer" }),
  "frees nothing": pass({ images: imageOutcome(freedNothing), containers: null }),
  "has nothing to do": pass({
    images: imageOutcome({ end: "nothing-to-do", items: [] }),
    containers: null,
  }),
  "has no part": pass(none),
  "is blocked": pass({ ...held, kind: "container-gc", images: null }),
  "is blocked under pressure": pass({ ...held, kind: "pressure" }),
};

test.each(Object.entries(passes))("a pass that %s is logged as in the snapshot", (_, it) => {
  const { log, lines } = recorded("text", 3);
  logPass(log, it);
  expect(lines.map((line) => line.replace("0115 12:00:00.250000 ", ""))).toMatchSnapshot();
});

test("the JSON log of a pass has its ID and how long it took", () => {
  const { log, lines } = recorded("json", 1);
  logPass(log, pass());
  expect(JSON.parse(lines[0]!)).toMatchObject({
    passId: "20260115T120000Z-0a1b2c",
    tookMs: 1850,
  });
});

test("the log explains every image at level 4 and none below, and leaves out an idle pass at level 1", () => {
  const logged = (verbosity: number, it: Pass): readonly string[] => {
    const { log, lines } = recorded("text", verbosity);
    logPass(log, it);
    return lines;
  };
  const explained = (verbosity: number): number =>
    logged(verbosity, pass(none)).filter((line) => / kept: |: candidate \d/.test(line)).length;
  const plan = imagePlan();
  expect(explained(4)).toBe(plan.kept.length + plan.candidates.length);
  expect(explained(3)).toBe(0);
  expect(logged(1, passes["has nothing to do"] ?? pass())).toEqual([]);
});

const refused = { kind: "failed", message: "it is busy", code: "failed" } as const;
test.each([
  ["that find nothing to remove are one line", [], ": no candidates left"],
  [
    "whose removals are all refused are one line, beside those of the images",
    imageOutcome().items.map((item) => ({ ...item, result: refused })),
    ": 2 removals failed, no candidates left",
  ],
])("passes under pressure %s, and a count", (_, items, words) => {
  const { log, lines } = recorded("text", 1);
  const images = imageOutcome({ end: "candidates-exhausted", items });
  const idle = pass({ kind: "pressure", images, containers: null });
  for (let i = 0; i < 100; i += 1) logPass(log, { ...idle, endedAt: plus(NOW, seconds(i)) });
  expect(lines).toHaveLength(items.length + 1);
  expect(lines.at(-1)).toContain(`Pressure reclaim${words}`);
});
