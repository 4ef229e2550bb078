// How many tests of a suite passed, failed and were skipped, from what the suite left behind.

export type Counts = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
};

/** A suite that broke off, or failed without a failed test, must not pass for a good one. */
export function judged(run: {
  minutesMax: number;
  exitCode: number;
  signal: string | number | null;
  counts: Counts | undefined;
}): Counts & { readonly note: string } {
  const { minutesMax, exitCode, signal, counts } = run;
  const known = counts ?? { passed: 0, failed: 0, skipped: 0 };
  const broken = { ...known, failed: known.failed + 1 };
  if (signal !== null)
    return { ...broken, note: `ended by ${signal}; its limit is ${minutesMax} min` };
  if (counts === undefined) return { ...broken, note: `exit ${exitCode} without counts` };
  if (exitCode !== 0 && known.failed === 0)
    return { ...broken, note: `exit ${exitCode} without a failed test` };
  if (known.passed + known.failed === 0) return { ...broken, note: "no test ran" };
  return { ...known, note: "" };
}

export function countsInJunit(xml: string): Counts | undefined {
  const head = /<testsuites\b[^>]*>/.exec(xml)?.[0];
  if (head === undefined) return undefined;
  const number = (name: string): number =>
    Number(new RegExp(` ${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
  const failed = number("failures") + number("errors");
  return {
    passed: number("tests") - failed - number("skipped"),
    failed,
    skipped: number("skipped"),
  };
}

export function countsInLine(line: string): Counts | undefined {
  const match = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(line);
  if (match === null) return undefined;
  return { passed: Number(match[1]), failed: Number(match[2]), skipped: Number(match[3] ?? 0) };
}

const failureLinesMax = 40;
/** What says that a test failed, among what runners and our own scripts print. */
const failureLine = /^(?:\(fail\)|error:|FAILED |not ok |Expected|Received)/;

/** The lines of a suite's output that say what failed, without colours; at most the first 40. */
export function failuresIn(text: string): readonly string[] {
  return Bun.stripANSI(text)
    .split("\n")
    .filter((line) => failureLine.test(line))
    .slice(0, failureLinesMax);
}
