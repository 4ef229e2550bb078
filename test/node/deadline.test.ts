import { describe, expect, test } from "bun:test";

import { Questions } from "../../src/node/disk.ts";

const errorOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => "no error",
    (error: unknown) => String(error),
  );

test("an answer in time is returned, and a late one is an error with the deadline", async () => {
  const questions = new Questions();
  expect(await questions.ask("/a", async () => 3, 50)).toBe(3);
  const never = new Promise(() => undefined);
  expect(await errorOf(questions.ask("/b", () => never, 5))).toContain("within 5 ms");
});

describe("a call that is never answered", () => {
  test("is not repeated, because each would block a thread for ever", async () => {
    const questions = new Questions();
    let asked = 0;
    let answer: (value: number) => void = () => undefined;
    const ask = () =>
      questions.ask(
        "/data",
        () => {
          asked += 1;
          return new Promise<number>((resolve) => {
            answer = resolve;
          });
        },
        5,
      );
    expect(await errorOf(ask())).toContain("within 5 ms");
    expect(await errorOf(ask())).toContain("still pending");
    expect(asked).toBe(1);
    expect(await questions.ask("/other", async () => 7, 5)).toBe(7);
    // Answered at last: from then on it is asked again.
    answer(1);
    await Promise.resolve();
    await Promise.resolve();
    const second = ask();
    answer(2);
    expect(await second).toBe(2);
    expect(asked).toBe(2);
  });

  test("that fails in the end throws nowhere", async () => {
    const questions = new Questions();
    let fail: (error: Error) => void = () => undefined;
    const question = () => new Promise<number>((...settle) => void (fail = settle[1]));
    expect(await errorOf(questions.ask("/data", question, 5))).toContain("within 5 ms");
    fail(new Error("it is gone"));
    await Promise.resolve();
    await Promise.resolve();
    expect(await questions.ask("/data", async () => 1, 5)).toBe(1);
  });
});
