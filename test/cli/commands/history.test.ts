// history on the command line, over a state directory that really has one.

import { describe, expect, test } from "bun:test";

import { parsed } from "../../../src/cli/args.ts";
import { timeBefore } from "../../../src/cli/commands/history.ts";
import { passId } from "../../../src/model/ids.ts";
import type { Pass } from "../../../src/model/pass.ts";
import { hours, type Instant, instant, minutes, plus, toRfc3339 } from "../../../src/model/time.ts";
import { read, write } from "../../state/fixture.ts";
import { containerItem, imageItem, images, pass } from "../../state/history-fixture.ts";
import { NOW } from "../../support/build/values.ts";
import { scratch } from "../../support/scratch.ts";
import { crigc } from "../world.ts";

const at = (hoursAgo: number): Instant => instant(NOW - hours(hoursAgo));

const directory = scratch();
{
  let clock = NOW;
  const { store, close } = await write(directory, { clock: () => clock });
  const ended = (name: string, hoursAgo: number, change: Partial<Pass>): void => {
    const endedAt = plus(at(hoursAgo), minutes(3));
    clock = endedAt;
    const whole = pass(name, { startedAt: at(hoursAgo), endedAt, ...change });
    store.passStarted(whole);
    for (const item of whole.images?.items ?? []) store.done(whole.id, item);
    for (const item of whole.containers?.containers ?? []) store.done(whole.id, item);
    store.passEnded(whole);
  };
  // Two images for space, of which one failed.
  const result = { kind: "failed", code: "failed", message: "it is busy" } as const;
  const failing = imageItem(2, { startedAt: plus(at(48), minutes(2)), result });
  const removed = imageItem(1, { startedAt: plus(at(48), minutes(1)) });
  ended("old", 48, { images: images([removed, failing]) });
  const event = { reason: "ImageGCFailed", message: "it is busy", passId: passId("old") } as const;
  store.event({ ...event, at: plus(at(48), minutes(4)) });
  const trigger = { kind: "pressure", signal: "imagefs.available" } as const;
  const pressed = imageItem(3, { trigger, startedAt: plus(at(5), minutes(1)) });
  ended("pressure", 5, { kind: "pressure", images: images([pressed]) });
  const [sandboxes, logs, errors] = [[], [], []];
  const containers = [containerItem("web")];
  ended("recent", 1, {
    kind: "container-gc",
    containers: { end: "done", containers, sandboxes, logs, measuredFreedBytes: 5n, errors },
  });
  await close();
}

const run = (...words: readonly string[]) =>
  crigc(["history", ...words], {
    open: { now: () => NOW, state: () => read(directory).reader },
  });

async function shown(...words: readonly string[]) {
  const { code, stdout, stderr } = await run(...words, "-o", "json");
  expect(code).toBe(0);
  const document = JSON.parse(stdout) as {
    readonly passes: readonly { readonly passId: string }[];
    readonly removals: readonly { readonly id: string; readonly at: string }[];
    readonly events: readonly { readonly reason: string }[];
  };
  return {
    stderr,
    passes: document.passes.map((row) => row.passId),
    removals: document.removals.map(({ id }) => id),
    events: document.events.map(({ reason }) => reason),
  };
}

const all = ["sha256:1", "sha256:2", "sha256:3", "c-web"];

describe("history", () => {
  test.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ["everything", [], ["old", "pressure", "recent"], all],
    ["since a time", ["--since", "6h"], ["pressure", "recent"], ["sha256:3", "c-web"]],
    ["of two kinds", ["--kind", "container", "--kind=image"], ["old", "pressure", "recent"], all],
    ["by trigger", ["--reason", "pressure"], ["pressure"], ["sha256:3"]],
    ["by reason", ["--reason", "pod-gone"], ["recent"], ["c-web"]],
    ["by tag, in any case", ["--image", "APP/web:3"], ["pressure"], ["sha256:3"]],
    ["by a text that only a container has", ["--image", "c-web"], [], []],
  ])("%s", async (_what, words, passes, removals) => {
    expect(await shown(...words)).toMatchObject({ passes, removals, stderr: "" });
  });

  test("beyond the limit keeps the newest passes, each complete, or removals, and says so", async () => {
    expect(await shown("-n", "2")).toEqual({
      stderr: "crigc: only the newest 2 are shown; -n shows more\n",
      passes: ["pressure", "recent"],
      removals: ["sha256:3", "c-web"],
      events: [],
    });
    expect((await shown("-n", "03")).stderr).toBe("");
    expect((await shown("--kind=image", "-n=1")).removals).toEqual(["sha256:3"]);
  });

  test.each([
    [["-n", "0"], '-n: invalid number "0": use 1 to 100000'],
    [["--kind", "pod"], 'invalid value "pod": use image, container, sandbox, pod-logs, log-link'],
    [["--image", "x", "--kind", "sandbox"], "--image selects images, and --kind excludes them"],
    ...["yesterday", "2026-02-30", "2026-01-15 12:00", "-2h", "5"].map(
      (text) => [[`--since=${text}`], `--since: invalid time "${text}": use`] as const,
    ),
  ])("refuses %j", async (words, message) => {
    const { code, stdout, stderr } = await run(...words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
  });
});

test.each([
  ["2025-12-31T08:30:00Z", "2025-12-31T08:30:00Z"],
  ["2025-12-31T08:30:00+02:00", "2025-12-31T06:30:00Z"],
  ["2025-12-31", "2025-12-31T00:00:00Z"],
  ["36h", "2025-12-30T12:00:00Z"],
  ["0", "2026-01-01T00:00:00Z"],
])("the time %s is read as %s", (text, time) => {
  expect(toRfc3339(parsed(timeBefore(NOW), text, "--since"))).toBe(time);
});
