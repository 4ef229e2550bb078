/** Document `KeepRules` and the output of `crigc keep list`: the rules in force and their matches. */

import type { Image, KeepProblem, KeepRule } from "../model/snapshot.ts";
import { counted } from "./bytes.ts";
import { document, imageJson, type JsonObject, picked } from "./document.ts";
import { imageName } from "./names.ts";
import { column, type ItemColumn, itemLines, NAME, text, wrapped } from "./table.ts";
import { clean, paint, type Screen } from "./terminal.ts";

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

export const keepRulesDocument = ({ rules, protections, problems, matched }: KeepRulesReport) =>
  document("KeepRules", {
    valid: problems.length === 0,
    problems: problems.map((it) => picked(it, "source", "message")),
    rules: rules.map(({ rule, images }) => ({
      ...picked(rule, "pattern", "source"),
      images: matched ? images.map(imageJson) : null,
    })),
    protections: matched
      ? protections.map(({ by, pattern, images }): JsonObject => ({
          by,
          pattern,
          images: images.map(imageJson),
        }))
      : null,
  });

export function keepRulesTable(report: KeepRulesReport, screen: Screen): string {
  const { rules, protections, problems, matched } = report;
  const idle = matched ? rules.filter(({ images }) => images.length === 0).length : 0;
  const refusal = [
    paint(screen, "red", "Invalid keep rules, so crigc removes no image:"),
    ...problems.flatMap((it) => wrapped(`${clean(it.source)}: ${clean(it.message)}`, screen, "  ")),
    "",
  ];
  return text([
    ...(problems.length === 0 ? [] : refusal),
    ...(rules.length === 0
      ? ["No keep rules."]
      : itemLines({ columns: ruleColumns(matched, screen), items: rules }, screen)),
    "",
    // A rule that matches nothing may be misspelt.
    ...(idle === 0
      ? []
      : [
          paint(
            screen,
            "yellow",
            `${counted(idle, "rule matches", "rules match")} no image of this node.`,
          ),
        ]),
    "",
    ...(protections.length === 0
      ? []
      : itemLines({ columns: protectionColumns(screen), items: protections }, screen)),
  ]);
}

const ruleColumns = (matched: boolean, screen: Screen): readonly ItemColumn<KeepRuleMatches>[] => [
  column("PATTERN", ({ rule }) => clean(rule.pattern), NAME),
  column("SOURCE", ({ rule }) => clean(rule.source), { minimumWidth: 10, cut: "middle" }),
  ...(matched ? [keepsColumn(screen)] : []),
];

const BECAUSE: Readonly<Record<Protection["by"], string>> = {
  pin: "pinned in the runtime",
  runtime: "sandbox image, by the runtime",
  flag: "sandbox image, by configuration",
  pattern: "sandbox image, built in",
};

const protectionColumns = (screen: Screen): readonly ItemColumn<Protection>[] => [
  column("ALSO KEPT", ({ pattern }) => (pattern === null ? "-" : clean(pattern)), NAME),
  column("BECAUSE", ({ by }) => BECAUSE[by]),
  keepsColumn(screen),
];

const keepsColumn = (screen: Screen) =>
  column<{ readonly images: readonly Image[] }>(
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
