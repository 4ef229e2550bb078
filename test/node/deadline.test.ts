// Questions to the operating system that it may never answer.

import { expect, test } from "bun:test";

import { asked } from "../../src/node/disk.ts";

const errorOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => "no error",
    (error: unknown) => String(error),
  );

test("a late answer is an error with the deadline", async () => {
  expect(await asked("/in-time", async () => 3, 50)).toBe(3);
  const never = new Promise(() => undefined);
  expect(await errorOf(asked("/late", () => never, 5))).toContain("within 5 ms");
});

test.each(["answered", "failed"])(
  "an unanswered call is not repeated until it has %s",
  async (end) => {
    const path = `/${end}`;
    const call = Promise.withResolvers<number>();
    expect(await errorOf(asked(path, () => call.promise, 5))).toContain("within 5 ms");
    let isRepeated = false;
    const repeat = async (): Promise<number> => {
      isRepeated = true;
      return 2;
    };
    expect(await errorOf(asked(path, repeat, 5))).toContain("still pending");
    expect(isRepeated).toBeFalse();
    expect(await asked("/other", async () => 7, 5)).toBe(7);
    if (end === "answered") call.resolve(1);
    else call.reject(new Error("it is gone"));
    await call.promise.catch(() => undefined);
    expect(await asked(path, repeat, 5)).toBe(2);
  },
);
