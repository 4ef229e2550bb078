// What lasts is told when it begins, when it changes, and when it ends.

import { expect, test } from "bun:test";

import { Journal } from "../../src/gc/journal.ts";
import { containerId } from "../../src/model/ids.ts";
import type { Level } from "../../src/model/ports.ts";
import { containerOutcome, imageOutcome, pass, removedImage } from "../report/build.ts";

const MINUTE_NS = 60_000_000_000n;

interface Told {
  readonly journal: Journal;
  readonly lines: string[];
  readonly wait: (minutes: bigint) => void;
}

function told(): Told {
  let now = 0n;
  const lines: string[] = [];
  const listener = {
    say: (level: Level, message: string) => void lines.push(`${level} ${message}`),
  };
  return {
    journal: new Journal({ monotonicNs: () => now }, [listener]),
    lines,
    wait: (minutes) => void (now += minutes * MINUTE_NS),
  };
}

const lives: readonly (readonly [string, (it: Told) => void, readonly string[]])[] = [
  [
    "is told once, however long it lasts",
    ({ journal, wait }) => {
      for (let i = 0; i < 100; i += 1) {
        journal.begins("loop", "a");
        wait(1n);
      }
    },
    ["error a"],
  ],
  [
    "is told again once its words change",
    ({ journal }) => ["a", "a", "b", "b", "a"].forEach((words) => journal.begins("loop", words)),
    ["error a", "error b", "error a"],
  ],
  [
    "is not told again if only numbers change",
    ({ journal }) =>
      [39, 4277, 47].forEach((n) => journal.begins("loop", `no .tmp-${n}, 3.${n} GiB`)),
    ["error no .tmp-39, 3.39 GiB"],
  ],
  [
    "ends with how long it lasted, once, also if its words changed, and begins anew",
    ({ journal, wait }) => {
      journal.begins("loop", "a");
      wait(5n);
      journal.begins("loop", "b");
      wait(1n);
      for (const _ of [1, 2]) journal.ends("loop", "image-gc succeeded");
      journal.begins("loop", "b");
    },
    ["error a", "error b", "0 image-gc succeeded after 6m", "error b"],
  ],
  [
    "that did not begin does not end",
    ({ journal }) => journal.ends("loop", "image-gc succeeded"),
    [],
  ],
  [
    "ends with those below its key, and leaves others",
    ({ journal }) => {
      for (const key of ["pressure/a", "pressure/b", "pressure-b"]) journal.begins(key, key);
      journal.ends("pressure");
      journal.begins("pressure-b", "pressure-b");
    },
    ["error pressure/a", "error pressure/b", "error pressure-b", "0 pressure/a is over after 0s"],
  ],
  [
    "is known to the same journal with another listener",
    ({ journal }) => {
      journal.begins("loop", "a");
      journal.with({}).begins("loop", "a");
    },
    ["error a"],
  ],
  [
    "of a removal ends with its success",
    ({ journal, wait }) => {
      const result = { kind: "failed", message: "busy", code: "failed" } as const;
      journal.done(pass().id, removedImage(1, { result }));
      wait(1n);
      journal.done(pass().id, removedImage(1));
    },
    ["0 removal of image registry.example/team/app-1:1.1 succeeded after 1m"],
  ],
  [
    "of one instance of a container does not end with the removal of the next",
    ({ journal }) => {
      const [done] = containerOutcome().containers;
      const { planned } = done!;
      const container = { ...planned.container, id: containerId("older") };
      const result = { kind: "failed", step: "remove", message: "busy", code: "failed" } as const;
      journal.done(pass().id, { ...done!, planned: { ...planned, container }, result });
      journal.done(pass().id, done!);
    },
    [],
  ],
  [
    "of keep rules that match no image is told when they change, and ends",
    ({ journal }) => {
      for (const unmatchedKeepRules of [["a"], ["a"], ["a", "b"], [], []])
        journal.passEnded(pass(), { unmatchedKeepRules } as never);
    },
    [
      "0 1 keep rule matches no image on this node: a",
      "0 2 keep rules match no image on this node: a, b",
      "0 every keep rule matches an image again after 0s",
    ],
  ],
];

test.each(lives)("a condition %s", (_, act, expected) => {
  const it = told();
  act(it);
  expect(it.lines).toEqual([...expected]);
});

test("very many removals that fail take bounded memory, and nothing else is told again", () => {
  const { journal, lines } = told();
  const count = 30_000;
  journal.begins("pressure", "full");
  for (let i = 0; i < count; i += 1) journal.begins(`removal/${i}`, "a");
  journal.begins("pressure", "full");
  journal.ends("removal/0");
  journal.ends(`removal/${count - 1}`);
  expect(lines.slice(count + 1)).toEqual(["0 a is over after 0s"]);
});

test("ten thousand images that cannot be removed are told once", () => {
  const { journal, lines } = told();
  for (const _ of [1, 2])
    for (let i = 0; i < 10_000; i += 1) journal.begins(`removal/${i}`, "read-only");
  expect(lines).toHaveLength(10_000);
});

test("a pass is news if it ended otherwise than the last of its kind", () => {
  const news: boolean[] = [];
  const journal = new Journal({ monotonicNs: () => 0n }, [
    { passEnded: (_, __, isNews) => void news.push(isNews) },
  ]);
  const idle = pass({
    images: imageOutcome({ end: "nothing-to-do", items: [] }),
    containers: null,
  });
  const failed = pass({ images: null, containers: null, error: "no answer" });
  for (const it of [idle, idle, { ...idle, kind: "pressure" } as const, failed, failed, idle])
    journal.passEnded(it, null);
  expect(news).toEqual([true, false, true, true, false, true]);
});
