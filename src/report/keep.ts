/** The document and the table of `crigc keep list` and `keep test`: keep rules, and the images that each keeps. */

import type { Image, KeepProblem, KeepRule } from "../model/snapshot.ts";
import { document, imageJson, jsonOf } from "./document.ts";
import { andMore, clean, column, Printer, type Screen } from "./terminal.ts";
import { plural } from "./words.ts";

export interface KeepRulesReport {
  readonly rules: readonly KeepRule[];
  /** If not empty, no image is removed. */
  readonly problems: readonly KeepProblem[];
  /** `null`: the node was not read. */
  readonly matches: ReadonlyMap<KeepRule, readonly Image[]> | null;
}

export type KeepRulesDocument = ReturnType<typeof keepRulesDocument>;

export const keepRulesDocument = ({ rules, problems, matches }: KeepRulesReport) =>
  document("KeepRules", {
    valid: problems.length === 0,
    problems: problems.map((it) => jsonOf(it)),
    rules: rules.map((rule) => ({
      ...jsonOf(rule),
      images: matches === null ? null : (matches.get(rule) ?? []).map(imageJson),
    })),
  });

export function keepRulesTable({ rules, problems }: KeepRulesDocument, screen: Screen): string {
  const printer = new Printer(screen);
  if (problems.length > 0) printer.line("Invalid keep rules, so crigc removes no image:", "red");
  for (const it of problems)
    printer.say(`${clean(it.source)}: ${clean(it.message)}`, undefined, "  ");
  printer.gap();
  if (rules.length === 0) printer.line("No keep rules.");
  printer.table<(typeof rules)[number]>(
    [
      column("PATTERN", ({ pattern }) => clean(pattern)),
      column("SOURCE", ({ source }) => clean(source)),
      column("KEEPS", ({ images }) => keptWords(images)),
    ],
    rules,
  );
  printer.gap();
  const unmatched = rules.filter(({ images }) => images?.length === 0);
  if (unmatched.length > 0)
    printer.say(`${unmatchedWords(unmatched.map(({ pattern }) => pattern))}.`, "yellow");
  return printer.text();
}

type RuleImages = KeepRulesDocument["rules"][number]["images"];

function keptWords(images: RuleImages): string {
  if (images === null) return "unknown";
  if (images.length === 0) return "no image on this node";
  return `${images.length}: ${images.map(({ name }) => name).join(", ")}`;
}

const MAX_NAMED = 3;

/** For logs, notes and `keep list`: a misspelt pattern keeps nothing. */
export const unmatchedWords = (patterns: readonly string[]): string =>
  `${plural(patterns.length, "keep rule matches", "keep rules match")} no image on this node: ${andMore(patterns.slice(0, MAX_NAMED).map(clean), patterns.length)}`;
