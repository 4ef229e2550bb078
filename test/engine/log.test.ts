// The log: format and verbosity, and what a pass says.

import { expect, test } from "bun:test";

import { logTo } from "../../src/engine/log.ts";
import { Journal } from "../../src/gc/journal.ts";
import { outcomeItems, type Pass } from "../../src/model/pass.ts";
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

/** As the agent does: each removal when it is done, then the pass. */
function tellPass(journal: Journal, it: Pass): void {
  for (const item of it.images?.items ?? []) journal.done(it.id, item);
  for (const item of it.containers === null ? [] : outcomeItems(it.containers))
    journal.done(it.id, item);
  journal.passEnded(it, null);
}

function recorded(format: "text" | "json" | "brief" = "text", verbosity = 2) {
  const lines: string[] = [];
  const sink = (line: string): void => void lines.push(line);
  const log = logTo({ format, verbosity, sink, now: () => NOW });
  return { lines, journal: new Journal({ monotonicNs: () => 0n }, [log]) };
}

const event = { reason: "GhostImage", message: "x is listed", at: NOW, passId: null } as const;

test("a line of the text log has severity, time of day in UTC, sentence and figures", () => {
  const { journal, lines } = recorded();
  journal.event(event);
  journal.say("error", "a");
  journal.say(0, "b");
  expect(lines).toEqual([
    'W0115 12:00:00.250 crigc] x is listed event="GhostImage"',
    "E0115 12:00:00.250 crigc] a",
    "I0115 12:00:00.250 crigc] b",
  ]);
});

test("a line of the JSON log is one object", () => {
  const { journal, lines } = recorded("json");
  journal.event(event);
  journal.say(1, "a");
  expect(lines).toEqual([
    '{"ts":"2026-01-15T12:00:00.25Z","level":"warning","msg":"x is listed","event":"GhostImage"}',
    '{"ts":"2026-01-15T12:00:00.25Z","level":"info","v":1,"msg":"a"}',
  ]);
});

test("a message with line ends is still written as one line", () => {
  for (const format of ["text", "json", "brief"] as const) {
    const { journal, lines } = recorded(format);
    journal.say("warning", "a\nb\u001b[2J");
    expect(lines.join("")).not.toMatch(/[\n\r\u001b]/);
  }
});

test("a line above the verbosity is not written", () => {
  const { journal, lines } = recorded("text", 2);
  journal.say(2, "shown");
  journal.say(3, "not shown");
  expect(lines).toHaveLength(1);
});

test("the brief log has removals, and neither the end of the pass nor its events, which the report has", () => {
  const { journal, lines } = recorded("brief");
  tellPass(journal, pass({ images: imageOutcome({ items: [removedImage(1)] }), containers: null }));
  journal.event(event);
  expect(lines).toEqual([
    "Image registry.example/team/app-1:1.1: removed, 234.0 MiB freed (disk usage over the high threshold)",
  ]);
});

test("a container whose logs could not be deleted is a removal and a warning", () => {
  const { journal, lines } = recorded();
  const [item] = containerOutcome().containers;
  journal.done(pass().id, { ...item!, logError: "it is busy" });
  expect(lines).toEqual([
    expect.stringMatching(/^I.* Container default\/pod-1\/worker-1: removed/),
    expect.stringMatching(/^W.* Logs of container default\/pod-1\/worker-1: it is busy/),
  ]);
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
  const { journal, lines } = recorded("text", 3);
  tellPass(journal, it);
  expect(lines.map((line) => line.replace("0115 12:00:00.250 ", ""))).toMatchSnapshot();
});

test("the JSON log of a pass has its ID and how long it took", () => {
  const { journal, lines } = recorded("json", 1);
  tellPass(journal, pass());
  expect(JSON.parse(lines[0]!)).toMatchObject({
    passId: "20260115T120000Z-0a1b2c",
    tookMs: 1850,
  });
});

const refused = { kind: "failed", message: "it is busy", code: "failed" } as const;
const idle = imageOutcome({ end: "nothing-to-do", items: [] });
const busy = imageOutcome({
  end: "candidates-exhausted",
  items: imageOutcome().items.map((item) => ({ ...item, result: refused })),
});
test.each([
  ["pressure", 0, [[], ["W"], [], ["E", "E", "W"], []]],
  ["image-gc", 0, [[], [], [], ["E", "E"], []]],
  ["image-gc", 1, [["I"], [], [], ["E", "E"], []]],
  ["image-gc", 2, [["I", "I", "I"], ["I"], [], ["E", "E", "I"], []]],
  ["image-gc", 3, [["I", "I", "I"], ["I"], ["I"], ["E", "E", "I"], ["I", "I", "I"]]],
] as const)(
  "passes of %s are logged at level %d only as far as they are news",
  (kind, level, expected) => {
    const { journal, lines } = recorded("text", level);
    const of = (images: Pass["images"]) => pass({ kind, images, containers: null });
    const seen = [imageOutcome(), idle, idle, busy, busy].map((images) => {
      lines.length = 0;
      tellPass(journal, of(images));
      return lines.map((line) => line.slice(0, 1));
    });
    expect(seen).toEqual(expected as never);
  },
);
