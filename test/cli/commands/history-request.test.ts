// A moment on a command line: a time, a day, or how long ago.

import { expect, test } from "bun:test";

import { momentOf } from "../../../src/cli/commands/history.ts";
import { ConfigError } from "../../../src/model/errors.ts";
import { fromRfc3339, instant, toRfc3339 } from "../../../src/model/time.ts";

const NOW = fromRfc3339("2026-01-15T12:00:00Z") ?? instant(0n);

test.each([
  ["2026-01-14T08:30:00Z", "2026-01-14T08:30:00Z"],
  ["2026-01-14T08:30:00+02:00", "2026-01-14T06:30:00Z"],
  ["2026-01-14", "2026-01-14T00:00:00Z"],
  ["36h", "2026-01-14T00:00:00Z"],
  ["90m", "2026-01-15T10:30:00Z"],
  ["0", "2026-01-15T12:00:00Z"],
])("the time %s is read as %s", (text, time) => {
  expect(toRfc3339(momentOf(text, "--since", NOW))).toBe(time);
});

test.each([
  "",
  "yesterday",
  "2026-01-32T00:00:00Z",
  "2026-02-30",
  "2025-02-29T00:00:00Z",
  "2026-01-15 12:00",
  "-2h",
  "5",
  "2y",
])("%j is refused with its text and what was expected", (text) => {
  const moment = (): unknown => momentOf(text, "--since", NOW);
  expect(moment).toThrow(ConfigError);
  expect(moment).toThrow(`--since: invalid time "${text}": use`);
});
