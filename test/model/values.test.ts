// Work done side by side.

import { expect, test } from "bun:test";

import { mapBounded } from "../../src/model/values.ts";

test("after the first error of work side by side, no further work begins", async () => {
  const begun: number[] = [];
  const work = async (input: number): Promise<void> => {
    begun.push(input);
    await Promise.resolve();
    if (input === 1) throw new Error("refused");
  };
  const all = mapBounded([0, 1, 2, 3, 4, 5, 6, 7], 2, work);
  expect(await all.catch(String)).toBe("Error: refused");
  await Bun.sleep(0);
  expect(begun).not.toContain(7);
});
