// Every parser on inputs that once failed and on random ones, for half a second each in CI; scripts/dev fuzz does so for as long as told.

import { afterAll, describe, expect, test } from "bun:test";

import { SEED } from "../support/random.ts";
import { corpusNames, pastFailures } from "./corpus.ts";
import { checkInput, fuzz } from "./target.ts";
import { targets } from "./targets.ts";

const MS = process.env["CI"] === "true" ? 500 : 250;
let inputs = 0;
afterAll(() => console.log(`fuzz: ${inputs} inputs, seed ${SEED} (CRIGC_SIM_SEED)`));

test("every directory of the corpus belongs to a parser", () => {
  const names = targets.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(corpusNames().filter((name) => !names.includes(name))).toEqual([]);
});

describe.each(targets.map((target) => [target.name, target] as const))("%s", (name, target) => {
  for (const past of pastFailures(name))
    test(`keeps its rules on ${past.name}`, async () => checkInput(target, past.input));

  test("keeps its rules on any input", async () => {
    // The first input pays for code that is compiled then.
    await fuzz(target, { seed: SEED, inputsMax: 1, ms: 10_000 });
    const ended = await fuzz(target, { seed: SEED, inputsMax: 20_000, ms: MS });
    inputs += ended.inputs;
    const { failure } = ended;
    if (failure !== null)
      throw new Error(
        `on ${JSON.stringify(Buffer.from(failure.input).toString())}: ${failure.message}`,
      );
    expect(ended.inputs).toBeGreaterThan(1);
  });
});
