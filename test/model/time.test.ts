// Times in RFC 3339.
import { expect, test } from "bun:test";

import { fromRfc3339, toRfc3339 } from "../../src/model/time.ts";

test.each([
  ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"],
  ["0000-01-01T01:00:00+01:00", "0000-01-01T00:00:00Z"],
  ["2026-01-31t23:30:00.250-01:00", "2026-02-01T00:30:00.25Z"],
])("%s is %s in UTC", (text, utc) => {
  const at = fromRfc3339(text);
  expect(at === null ? null : toRfc3339(at)).toBe(utc);
});

test.each([
  ["an hour 24", "9999-12-31T24:00:00Z"],
  ["a year of five digits in UTC", "9999-12-31T23:59:59-01:00"],
  ["a year before 0 in UTC", "0000-01-01T00:00:00+01:00"],
  ["a day that the month lacks", "2026-02-30T00:00:00Z"],
  ["no zone", "2026-01-31T12:00:00"],
])("a time with %s is not read", (_, text) => {
  expect(fromRfc3339(text)).toBeNull();
});
