/** Document `Doctor` and the output of `crigc doctor`: each check with its result and advice. */

import { counted } from "./bytes.ts";
import { document, type JsonObject } from "./document.ts";
import { text, wrapped } from "./table.ts";
import { clean, type Colour, paint, type Screen } from "./terminal.ts";

export interface DoctorCheck {
  /** A short name in lower case with dashes: `socket`, `kubelet-thresholds`. */
  readonly name: string;
  /** `skipped`: a check that it depends on failed. */
  readonly result: "ok" | "warning" | "failed" | "skipped";
  /** The finding as a sentence without a full stop. */
  readonly message: string;
  /** What to do; `null`: nothing. */
  readonly advice: string | null;
}

export interface DoctorReport {
  readonly checks: readonly DoctorCheck[];
}

export const doctorDocument = (report: DoctorReport): JsonObject =>
  document("Doctor", {
    healthy: isHealthy(report),
    checks: report.checks.map((check) => ({ ...check })),
  });

/** Whether no check failed; warnings do not count. */
export const isHealthy = (report: DoctorReport): boolean =>
  report.checks.every((check) => check.result !== "failed");

const SHOWN: Readonly<Record<DoctorCheck["result"], readonly [string, Colour]>> = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  failed: ["FAILED", "red"],
  skipped: ["skipped", "dim"],
};

const MARK_WIDTH = 9;

export function doctorTable(report: DoctorReport, screen: Screen): string {
  const lines = report.checks.flatMap((check) => checkLines(check, screen));
  return text([...lines, "", verdict(report)]);
}

function checkLines(check: DoctorCheck, screen: Screen): readonly string[] {
  const [word, colour] = SHOWN[check.result];
  const indent = " ".repeat(MARK_WIDTH);
  const [first = "", ...rest] = wrapped(`${check.name}: ${clean(check.message)}`, screen, indent);
  return [
    paint(screen, colour, word.padEnd(MARK_WIDTH)) + first.slice(MARK_WIDTH),
    ...rest,
    ...(check.advice === null ? [] : wrapped(`what to do: ${clean(check.advice)}`, screen, indent)),
  ];
}

function verdict(report: DoctorReport): string {
  const failed = report.checks.filter((check) => check.result === "failed").length;
  const warnings = report.checks.filter((check) => check.result === "warning").length;
  if (failed > 0) return `${counted(failed, "check")} of ${report.checks.length} failed.`;
  return warnings === 0
    ? "All checks passed."
    : `No check failed, ${counted(warnings, "warning")}.`;
}
