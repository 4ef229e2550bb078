// One parser under test: what it is fed, what must hold of every input, and how long one input may take.

import fc from "fast-check";

import { encoded } from "./inputs.ts";

export interface Target {
  readonly name: string;
  /** Bytes as they would arrive; those of a failure are a file of the corpus. */
  readonly inputs: fc.Arbitrary<Uint8Array>;
  /** Throws where a rule is broken. */
  readonly check: (input: Uint8Array) => void | Promise<void>;
}

/** A parser of text. */
export const textTarget = (
  name: string,
  inputs: fc.Arbitrary<string>,
  check: (text: string) => void | Promise<void>,
): Target => ({
  name,
  inputs: inputs.map(encoded),
  check: (input) => check(new TextDecoder("utf-8", { ignoreBOM: true }).decode(input)),
});

/** Of the processor's time, as other programs may hold the machine: no input is larger than some hundred kilobytes. */
const INPUT_MS_MAX = 400;

/** Checks one input, and that it took no longer than any input may. */
export async function checkInput(
  { check }: Target,
  input: Uint8Array,
  msMax = INPUT_MS_MAX,
): Promise<void> {
  const startedMs = performance.now();
  await check(input);
  if (performance.now() - startedMs < msMax) return;
  // Twice more, warm: what is slow by its nature is slow again, whatever else the machine does.
  const tookMs = Math.min(await processorMs(check, input), await processorMs(check, input));
  if (tookMs > msMax)
    throw new Error(`${input.length} bytes took ${Math.round(tookMs)} ms of the processor`);
}

async function processorMs(check: Target["check"], input: Uint8Array): Promise<number> {
  const before = process.cpuUsage();
  await check(input);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

export interface Run {
  readonly seed: number;
  readonly inputsMax: number;
  readonly ms: number;
}

export interface Fuzzed {
  readonly inputs: number;
  /** The smallest input that was found to fail, and why. */
  readonly failure: { readonly input: Uint8Array; readonly message: string } | null;
}

const SHRINK_MS = 3_000;

/** Random inputs until there are enough or the time is over; a failure is shrunk. */
export async function fuzz(target: Target, { seed, inputsMax, ms }: Run): Promise<Fuzzed> {
  let inputs = 0;
  let hasFailed = false;
  const endMs = performance.now() + ms;
  const property = fc.asyncProperty(target.inputs, async (input) => {
    // What is left of shrinking passes then, so that the smallest failure so far is it.
    if (hasFailed && performance.now() > endMs + SHRINK_MS) return;
    inputs += 1;
    try {
      await checkInput(target, input);
    } catch (thrown) {
      hasFailed = true;
      throw thrown;
    }
  });
  const ended = await fc.check(property, {
    seed,
    numRuns: inputsMax,
    interruptAfterTimeLimit: ms,
    markInterruptAsFailure: false,
  });
  const [input] = ended.counterexample ?? [];
  if (!ended.failed || input === undefined) return { inputs, failure: null };
  return { inputs, failure: { input, message: reasonOf(ended.errorInstance) } };
}

const reasonOf = (thrown: unknown): string =>
  thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);

/** What `act` throws must be of a class that the parser may throw; `null`: it threw so. */
export function refusedOr<Result>(
  act: () => Result,
  ...classes: readonly (new (...args: never[]) => Error)[]
): Result | null {
  try {
    return act();
  } catch (thrown) {
    if (classes.some((each) => thrown instanceof each)) return null;
    throw thrown;
  }
}

export function holds(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

export function same(one: unknown, other: unknown, what: string): void {
  if (!Bun.deepEquals(one, other, true))
    throw new Error(`${what}:\n${Bun.inspect(one, shown)}\n${Bun.inspect(other, shown)}`);
}

const shown = { depth: 20, sorted: true };
