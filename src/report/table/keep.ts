/** Document `KeepRules` and the output of `crigc keep list`: the rules in force and their matches. */

import type { Image, KeepProblem, KeepRule } from "../../model/snapshot.ts";
import { counted } from "../bytes.ts";
import { document, type JsonObject, picked } from "../document/json.ts";
import { imageJson } from "../document/node.ts";
import { imageName } from "../names.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { text } from "./plan.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

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
    problems: report.problems.map((it) => picked(it, "source", "message")),
    rules: report.rules.map((it) => ({
      ...picked(it.rule, "pattern", "source"),
      images: report.matched ? it.images.map(imageJson) : null,
    })),
    protections: report.matched
      ? report.protections.map((it) => ({
          ...picked(it, "by", "pattern"),
          images: it.images.map(imageJson),
        }))
      : null,
  });

const COLUMNS: readonly Column[] = [
  { title: "PATTERN", minimumWidth: 16, cut: "middle" },
  { title: "SOURCE", minimumWidth: 10, cut: "middle" },
  { title: "KEEPS", minimumWidth: 16 },
];

export function keepRulesTable(report: KeepRulesReport, screen: Screen): string {
  const problems = report.problems.flatMap((it) =>
    wrapped(`${clean(it.source)}: ${clean(it.message)}`, screen, "  "),
  );
  const refusal =
    problems.length === 0
      ? []
      : [paint(screen, "red", "Invalid keep rules, so crigc removes no image:"), ...problems, ""];
  const columns = report.matched ? COLUMNS : COLUMNS.slice(0, 2);
  const rows = report.rules.map((it) => ruleRow(it, screen));
  return text([
    ...refusal,
    ...(rows.length === 0 ? ["No keep rules."] : tableLines(columns, rows, screen)),
    ...idleLines(report, screen),
    ...protectionLines(report, screen),
  ]);
}

const ruleRow = (it: KeepRuleMatches, screen: Screen): readonly string[] => [
  clean(it.rule.pattern),
  clean(it.rule.source),
  imagesShown(it.images, screen),
];

function imagesShown(images: readonly Image[], screen: Screen): string {
  const names = images.map(imageName);
  const shown = screen.width === null ? names : names.slice(0, 2);
  const more = names.length > shown.length ? `, ${names.length - shown.length} more` : "";
  return names.length === 0
    ? "no image on this node"
    : `${names.length}: ${shown.join(", ")}${more}`;
}

const PROTECTION_COLUMNS: readonly Column[] = [
  { title: "ALSO KEPT", minimumWidth: 16, cut: "middle" },
  { title: "BECAUSE" },
  { title: "KEEPS", minimumWidth: 16 },
];

const BECAUSE: Readonly<Record<Protection["by"], string>> = {
  pin: "pinned in the runtime",
  runtime: "sandbox image, by the runtime",
  flag: "sandbox image, by configuration",
  pattern: "sandbox image, built in",
};

function protectionLines(report: KeepRulesReport, screen: Screen): readonly string[] {
  if (report.protections.length === 0) return [];
  const rows = report.protections.map((it) => [
    it.pattern === null ? "-" : clean(it.pattern),
    BECAUSE[it.by],
    imagesShown(it.images, screen),
  ]);
  return ["", ...tableLines(PROTECTION_COLUMNS, rows, screen)];
}

/** A rule that matches nothing may be misspelt. */
function idleLines(report: KeepRulesReport, screen: Screen): readonly string[] {
  const idle = report.rules.filter((it) => it.images.length === 0).length;
  if (!report.matched || idle === 0) return [];
  return [
    "",
    paint(
      screen,
      "yellow",
      `${counted(idle, "rule matches", "rules match")} no image of this node.`,
    ),
  ];
}
