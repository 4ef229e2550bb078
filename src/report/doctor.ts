/** Document `Doctor` and the output of `crigc doctor`: each check with its result and advice. */

import { document, jsonOf } from "./document.ts";
import { clean, type Colour, paint, Printer, type Screen, wrapped } from "./terminal.ts";
import { plural } from "./words.ts";

export interface Verdict {
  readonly result: "ok" | "warning" | "failed";
  /** The finding as a sentence without a full stop. */
  readonly message: string;
  /** What to do; `null`: nothing. */
  readonly advice: string | null;
}

/** By name of the check in lower case with dashes, in display order; `null`: nothing to report. */
export type Verdicts = readonly (readonly [name: string, verdict: Verdict | null])[];

const verdict =
  (result: Verdict["result"]) =>
  (message: string, advice: string | null = null): Verdict => ({ result, message, advice });

export const ok = verdict("ok");
export const warning = verdict("warning");
export const failed = verdict("failed");

/** Healthy: no check failed; warnings do not count. */
export function doctorDocument(verdicts: Verdicts) {
  const checks = verdicts.flatMap(([name, it]) => (it === null ? [] : [{ name, ...it }]));
  return document("Doctor", {
    healthy: countOf(checks, "failed") === 0,
    checks: checks.map((it) => jsonOf(it)),
  });
}

const countOf = (checks: readonly Pick<Verdict, "result">[], result: Verdict["result"]): number =>
  checks.filter((check) => check.result === result).length;

const SHOWN: Readonly<Record<Verdict["result"], readonly [string, Colour]>> = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  failed: ["FAILED", "red"],
};

const MARK_WIDTH = 9;

export function doctorTable({ checks }: ReturnType<typeof doctorDocument>, screen: Screen): string {
  const printer = new Printer(screen);
  const indent = " ".repeat(MARK_WIDTH);
  for (const { name, result, message, advice } of checks) {
    const [word, colour] = SHOWN[result];
    const [first = "", ...rest] = wrapped(`${name}: ${clean(message)}`, screen, indent);
    printer.line(paint(screen, colour, word.padEnd(MARK_WIDTH)) + first.slice(MARK_WIDTH));
    for (const line of rest) printer.line(line);
    if (advice !== null) printer.say(`what to do: ${clean(advice)}`, undefined, indent);
  }
  printer.gap();
  const [failures, warnings] = [countOf(checks, "failed"), countOf(checks, "warning")];
  if (failures > 0) printer.line(`${plural(failures, "check")} of ${checks.length} failed.`);
  else if (warnings === 0) printer.line("All checks passed.");
  else printer.line(`No check failed, ${plural(warnings, "warning")}.`);
  return printer.text();
}
