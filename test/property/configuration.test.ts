// Whatever stands in files, variables and flags, the answer is a configuration that holds its own rules, or a ConfigError.

import { expect, test } from "bun:test";

import fc from "fast-check";

import type { Config } from "../../src/config/config.ts";
import { variablesOf } from "../../src/config/field.ts";
import { fieldByFlag, fieldNames, fieldOf } from "../../src/config/fields.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { FILE, load, ours, type Sources } from "../config/loading.ts";
import { SAMPLES } from "../config/samples.ts";

/** What is near to right is worth more tries than noise. */
const text = fc.oneof(
  fc.constantFrom(...SAMPLES.map((sample) => sample.text)),
  fc.constantFrom(
    "",
    "0",
    "-1",
    "100",
    "101",
    "0s",
    "off",
    "null",
    "1e9",
    "10%",
    "nodefs.available<1%",
    "[",
    "~",
  ),
  fc.string(),
);
const flags = [...fieldByFlag.keys()].filter((flag) => !flag.startsWith("config"));
const inFiles = fieldNames.filter(
  (name) => fieldOf(name).outsideFiles !== true && !name.includes("."),
);
const jsonValue = fc.oneof(
  fc.constantFrom(...SAMPLES.map((sample) => sample.inFile)),
  fc.jsonValue(),
);

function loaded(sources: Sources): Config | null {
  try {
    return load(sources);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    expect(thrown.issues.length).toBeGreaterThan(0);
    for (const { source, message } of thrown.issues) {
      expect(source).not.toBe("");
      expect(message.length).toBeLessThan(1000);
    }
    return null;
  }
}

function expectRules({ limits, periods, values }: Config): void {
  const { images, memory, pressure } = limits;
  expect(images.lowPercent).toBeLessThan(images.highPercent);
  expect(images.highPercent).toBeLessThanOrEqual(100);
  expect(images.lowPercent).toBeGreaterThanOrEqual(0);
  expect(images.maximumAge === 0n || images.maximumAge > images.minimumAge).toBe(true);
  expect(images.inodeLowPercent === null || images.inodeHighPercent !== null).toBe(true);
  expect((images.inodeLowPercent ?? 0) < (images.inodeHighPercent ?? 1)).toBe(true);
  expect(images.storeBudgetBytes === null || images.storeBudgetBytes > 0n).toBe(true);
  expect(images.maximumImages === null || images.maximumImages > 0).toBe(true);
  for (const span of [
    images.minimumAge,
    images.removalInterval,
    limits.containers.minimumAge,
    memory.bootGrace,
    memory.deadPodTtl,
    pressure.transitionPeriod,
  ])
    expect(span >= 0n).toBe(true);
  for (const span of [...Object.values(periods), values.runtimeRequestTimeout])
    expect(span > 0n).toBe(true);
  for (const { amount, grace } of pressure.thresholds) {
    expect(grace >= 0n).toBe(true);
    if (amount.kind === "quantity") expect(amount.value > 0n).toBe(true);
    else expect(amount.value >= 0 && amount.value <= 1).toBe(true);
  }
}

test("any flags and variables are accepted, or rejected with an error", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...flags), text), { maxLength: 4 }),
      fc.array(fc.tuple(fc.constantFrom(...fieldNames), text), { maxLength: 3 }),
      (given, variables) => {
        const env = Object.fromEntries(
          variables
            .filter(([name]) => !name.startsWith("config"))
            .map(([name, value]) => [variablesOf(fieldOf(name))[0] ?? "", value]),
        );
        const config = loaded({ flags: given, env });
        if (config !== null) expectRules(config);
      },
    ),
    { numRuns: 3000 },
  );
});

test("any values of known fields in a file are accepted, or rejected with an error", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...inFiles), jsonValue), { maxLength: 4 }),
      (entries) => {
        const body = entries.map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`).join("");
        const config = loaded({ files: { [FILE]: ours(body) } });
        if (config !== null) expectRules(config);
      },
    ),
    { numRuns: 2000 },
  );
});
