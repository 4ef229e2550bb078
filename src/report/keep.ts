/** Document `KeepRules` and the output of `crigc keep list`: the rules in force and their matches. */

import type { Image, KeepProblem, KeepRule } from "../model/snapshot.ts";
import { counted } from "./bytes.ts";
import { document, imageJson, type JsonObject, jsonOf } from "./document.ts";
import { imageName } from "./names.ts";
import { type Column, column, NAME, Printer } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";

export interface KeepRuleMatches {
  readonly rule: KeepRule;
  /** Images of this node that the rule keeps. */
  readonly images: readonly Image[];
}

/** What keeps images besides rules: the runtime's pins and the names of the sandbox image. */
export interface Protection {
  /** `pin`: by the runtime. Otherwise who names the sandbox image; `pattern` is built in. */
  readonly by: "pin" | "runtime" | "flag" | "pattern";
  /** `null` for a pin. */
  readonly pattern: string | null;
  readonly images: readonly Image[];
}

export interface KeepRulesReport {
  readonly rules: readonly KeepRuleMatches[];
  /** Empty if the node was not read. */
  readonly protections: readonly Protection[];
  /** If not empty, no image is removed. */
  readonly problems: readonly KeepProblem[];
  /** `false`: the node was not read, so matches are unknown. */
  readonly matched: boolean;
}

export const keepRulesDocument = (report: KeepRulesReport): JsonObject =>
  document("KeepRules", {
    valid: report.problems.length === 0,
    problems: report.problems.map((it) => jsonOf(it, "source", "message")),
    rules: report.rules.map(({ rule, images }) => ({
      ...jsonOf(rule, "pattern", "source"),
      images: report.matched ? images.map(imageJson) : null,
    })),
    protections: report.matched
      ? report.protections.map((it): JsonObject => ({
          ...jsonOf(it, "by", "pattern"),
          images: it.images.map(imageJson),
        }))
      : null,
  });

export function keepRulesTable(report: KeepRulesReport, screen: Screen): string {
  const { rules, protections, problems, matched } = report;
  const printer = new Printer(screen);
  if (problems.length > 0) printer.line("Invalid keep rules, so crigc removes no image:", "red");
  for (const it of problems)
    printer.say(`${clean(it.source)}: ${clean(it.message)}`, undefined, "  ");
  printer.gap();
  if (rules.length === 0) printer.line("No keep rules.");
  printer.table<KeepRuleMatches>(
    [
      column("PATTERN", ({ rule }) => clean(rule.pattern), NAME),
      column("SOURCE", ({ rule }) => clean(rule.source), { minimumWidth: 10, cut: "middle" }),
      ...(matched ? [keepsColumn(screen)] : []),
    ],
    rules,
  );
  printer.gap();
  // A rule that matches nothing may be misspelt.
  const idle = matched ? rules.filter(({ images }) => images.length === 0).length : 0;
  if (idle > 0)
    printer.line(
      `${counted(idle, "rule matches", "rules match")} no image of this node.`,
      "yellow",
    );
  printer.gap();
  printer.table<Protection>(
    [
      column("ALSO KEPT", ({ pattern }) => (pattern === null ? "-" : clean(pattern)), NAME),
      column("BECAUSE", ({ by }) => BECAUSE[by]),
      keepsColumn(screen),
    ],
    protections,
  );
  return printer.text();
}

const BECAUSE: Readonly<Record<Protection["by"], string>> = {
  pin: "pinned in the runtime",
  runtime: "sandbox image, by the runtime",
  flag: "sandbox image, by configuration",
  pattern: "sandbox image, built in",
};

const keepsColumn = (screen: Screen): Column<{ readonly images: readonly Image[] }> =>
  column(
    "KEEPS",
    ({ images }) => {
      const names = images.map(imageName);
      const shown = screen.width === null ? names : names.slice(0, 2);
      const more = names.length > shown.length ? `, ${names.length - shown.length} more` : "";
      return names.length === 0
        ? "no image on this node"
        : `${names.length}: ${shown.join(", ")}${more}`;
    },
    { minimumWidth: 16 },
  );
