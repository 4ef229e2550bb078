// How long what did not answer is left alone.
import { expect, test } from "bun:test";

import { Backoff } from "../../src/gc/backoff.ts";

const MINUTE_MS = 60_000;

test("what did not answer is left alone for five minutes, each time twice as long, and an hour at most", () => {
  let ms = 7_000;
  const backoff = new Backoff({ monotonicNs: () => BigInt(ms) * 1_000_000n });
  expect(backoff.leftMs("a")).toBe(0);
  for (const minutes of [5, 10, 20, 40, 60, 60]) {
    backoff.unanswered("a");
    expect(backoff.leftMs("a")).toBe(minutes * MINUTE_MS);
    ms += (minutes - 1) * MINUTE_MS;
    expect(backoff.leftMs("a")).toBe(MINUTE_MS);
    ms += 2 * MINUTE_MS;
    expect(backoff.leftMs("a")).toBe(0);
  }
});

test.each([
  ["answers", (backoff: Backoff) => backoff.answered("a")],
  ["is no longer listed", (backoff: Backoff) => backoff.retain(new Set(["b"]))],
])("what %s is left alone no longer, and others are", (_, happens) => {
  const backoff = new Backoff({ monotonicNs: () => 0n });
  for (const id of ["a", "b"]) backoff.unanswered(id);
  happens(backoff);
  expect(["a", "b"].map((id) => backoff.leftMs(id))).toEqual([0, 5 * MINUTE_MS]);
});
