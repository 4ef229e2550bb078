// Every parser on inputs that once failed and on random ones, for half a second each in CI; scripts/fuzz does so for as long as told.

import { afterAll, describe, expect, test } from "bun:test";

import { SEED } from "../support/random.ts";
import { corpusNames, pastFailures } from "./corpus.ts";
import { textOf } from "./inputs.ts";
import { checkInput, fuzz, holds, textTarget } from "./target.ts";
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

describe("a faulty parser is found", () => {
  const language = { words: ["a", "b", "!", " "], samples: ["a b a b"] };
  const wrong = (check: (text: string) => void) =>
    fuzz(textTarget("wrong", textOf(language), check), { seed: 1, inputsMax: 20_000, ms: 4_000 });

  test("and its failing input is shrunk", async () => {
    const { failure } = await wrong((text) => holds(!text.includes("!"), "it cannot read !"));
    const input = Buffer.from(failure?.input ?? []).toString();
    expect(input).toContain("!");
    expect(input.length).toBeLessThan(4);
    expect(failure?.message).toContain("it cannot read !");
  });

  test("by the processor time it takes", async () => {
    const slow = textTarget("slow", textOf(language), () => {
      const before = process.cpuUsage();
      while (process.cpuUsage(before).user < 40_000);
    });
    expect(checkInput(slow, new Uint8Array(1), 20)).rejects.toThrow("ms of the processor");
    await checkInput(slow, new Uint8Array(1), 2_000);
  });
});
