/** The documents and output of `crigc keep list`, the rules in force, and of `keep missing`, what a baseline lacks. */

import type { Lease } from "../model/records.ts";
import { type Baseline, type BaselineGap, isMissing } from "../model/reports.ts";
import type { Image, KeepProblem, KeepRule, RuntimeInfo } from "../model/snapshot.ts";
import { toMs } from "../model/time.ts";
import { document, imageJson, jsonOf, runtimeJson, timeOf } from "./document.ts";
import { type LeaseTimes, leaseWords } from "./image-reasons.ts";
import { type Column, column, type Columns, NAME, Printer } from "./printer.ts";
import { andMore, clean, type Screen } from "./terminal.ts";
import { counted } from "./words.ts";

export interface KeepRuleMatches {
  readonly rule: KeepRule;
  /** Images of this node that the rule keeps. */
  readonly images: readonly Image[];
  /** Absent: it does not end, or the node was not read. */
  readonly lease?: LeaseTimes | null;
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

export type KeepRulesDocument = ReturnType<typeof keepRulesDocument>;

export const keepRulesDocument = (report: KeepRulesReport) =>
  document("KeepRules", {
    valid: report.problems.length === 0,
    problems: report.problems.map((it) => jsonOf(it, "source", "message")),
    rules: report.rules.map(({ rule, images, lease = null }) => ({
      ...jsonOf(rule, "pattern", "source"),
      lease: rule.lease && leaseJson(rule.lease, lease),
      images: report.matched ? images.map(imageJson) : null,
    })),
    protections: report.matched
      ? report.protections.map((it) => ({
          ...jsonOf(it, "by", "pattern"),
          images: it.images.map(imageJson),
        }))
      : null,
  });

const leaseJson = ({ untilUsed, lasts }: Lease, times: LeaseTimes | null) => ({
  untilUsed,
  lastsMs: toMs(lasts),
  startedAt: timeOf(times?.since ?? null),
  usedAt: timeOf(times?.usedAt ?? null),
  remainingMs: times?.remaining === undefined ? null : toMs(times.remaining),
  text: times && leaseWords(times),
});

export function keepRulesTable(keep: KeepRulesDocument, screen: Screen): string {
  const { rules, protections, problems } = keep;
  const isMatched = protections !== null;
  const printer = new Printer(screen);
  if (problems.length > 0) printer.line("Invalid keep rules, so crigc removes no image:", "red");
  for (const it of problems)
    printer.say(`${clean(it.source)}: ${clean(it.message)}`, undefined, "  ");
  printer.gap();
  if (rules.length === 0) printer.line("No keep rules.");
  // A rule that matches nothing may be misspelt.
  const isIdle = ({ images, lease }: (typeof rules)[number]): boolean =>
    images?.length === 0 && lease?.remainingMs !== 0;
  printer.table<(typeof rules)[number]>(
    [
      column("PATTERN", ({ pattern }) => clean(pattern), NAME),
      column("SOURCE", ({ source }) => clean(source), { minimumWidth: 10, cut: "middle" }),
      column("LEASE", ({ lease }) => lease?.text ?? "-", { minimumWidth: 16, optional: true }),
      ...(isMatched ? [keepsColumn(screen)] : []),
    ],
    rules,
    { groupOf: ({ source }) => clean(source.replace(/:\d+$/, "")), matters: isIdle },
  );
  printer.gap();
  const idle = rules.filter(isIdle).length;
  if (idle > 0)
    printer.line(
      `${counted(idle, "rule matches", "rules match")} no image of this node.`,
      "yellow",
    );
  printer.gap();
  printer.table<NonNullable<typeof protections>[number]>(
    [
      column("ALSO KEPT", ({ pattern }) => (pattern === null ? "-" : clean(pattern)), NAME),
      column("BECAUSE", ({ by }) => BECAUSE[by]),
      keepsColumn(screen),
    ],
    protections ?? [],
  );
  return printer.text();
}

const BECAUSE: Readonly<Record<Protection["by"], string>> = {
  pin: "pinned in the runtime",
  runtime: "sandbox image, by the runtime",
  flag: "sandbox image, by configuration",
  pattern: "sandbox image, built in",
};

interface Keeps {
  readonly images: readonly { readonly name: string }[] | null;
}

const keepsColumn = (screen: Screen): Column<Keeps> =>
  column(
    "KEEPS",
    ({ images: all }) => {
      const images = all ?? [];
      const shown = screen.width === null ? images : images.slice(0, 2);
      return images.length === 0
        ? "no image on this node"
        : `${images.length}: ${andMore(
            shown.map(({ name }) => name),
            images.length,
          )}`;
    },
    { minimumWidth: 16 },
  );

export interface MissingImage {
  readonly gap: BaselineGap;
  /** Archives that have it, the best first; empty if none was given. */
  readonly archives: readonly string[];
  /** What brings it back; `null`: no command does. */
  readonly command: string | null;
}

export interface MissingReport {
  readonly runtime: RuntimeInfo;
  readonly baseline: Baseline;
  readonly images: readonly MissingImage[];
}

export type MissingDocument = ReturnType<typeof missingDocument>;

export const missingDocument = ({ runtime, baseline, images }: MissingReport) =>
  document("MissingImages", {
    text: baselineWords(baseline),
    runtime: runtimeJson(runtime),
    baselineImages: baseline.images,
    presentImages: baseline.present,
    images: images.map(({ gap, archives, command }) => ({
      ...jsonOf(gap, "name", "patterns", "source"),
      problem: gap.kind,
      archives,
      command,
    })),
  });

/** For `status`. */
export const baselineJson = ({ gaps, ...counts }: Baseline) => ({
  ...counts,
  gaps: gaps.map((gap) => ({ name: gap.name, problem: gap.kind })),
});

const PROBLEMS: Readonly<Record<BaselineGap["kind"], string>> = {
  missing: "not on this node",
  "name-missing": "on this node, but not by this name",
  "sandbox-image": "not on this node, so no pod can start",
  unpinned: "no longer pinned in the runtime",
};

const COLUMNS: Columns<MissingDocument["images"][number]> = [
  column("IMAGE", ({ name }) => clean(name), NAME),
  column("PROBLEM", ({ problem }) => PROBLEMS[problem], { minimumWidth: 16 }),
  column("ARCHIVE", ({ archives }) => clean(archives[0] ?? "-"), {
    minimumWidth: 16,
    cut: "middle",
    optional: true,
  }),
];

export function missingTable({ text, images }: MissingDocument, screen: Screen): string {
  if (images.length === 0) return `${text}.\n`;
  const commands = [...new Set(images.flatMap(({ command }) => command ?? []))];
  const printer = new Printer(screen);
  printer.table(COLUMNS, images, { groupOf: ({ problem }) => PROBLEMS[problem] });
  printer.gap();
  printer.say(`${text}.`, "red");
  if (commands.length > 0) printer.line("To bring them back:");
  // Never wrapped, for copying.
  for (const command of commands) printer.line(`  ${clean(command)}`);
  return printer.text();
}

export const BRING_BACK = "crigc keep missing shows how to restore them";

export const baselineProblem = (it: Baseline | null): string | false =>
  it !== null && it.gaps.length > 0 && `${baselineWords(it)}; ${BRING_BACK}`;

const NAMES_SHOWN = 3;

/** One sentence, for `keep missing` and `status`: how much of the baseline is there. */
export function baselineWords({ images, present, gaps }: Baseline): string {
  if (images === 0 && gaps.length === 0)
    return "No baseline names an image; crigc keep baseline writes one";
  const missing = gaps.filter(isMissing).map(({ name }) => name);
  if (images === 0)
    return `${counted(missing.length, "sandbox image")} missing (${namesWords(missing)})`;
  const unpinned = gaps.filter((gap) => !isMissing(gap)).map(({ name }) => name);
  const all = `${counted(images, "baseline image")}: ${present} on this node`;
  const parts = [
    missing.length > 0 && `${missing.length} missing (${namesWords(missing)})`,
    unpinned.length > 0 && `${unpinned.length} no longer pinned (${namesWords(unpinned)})`,
  ];
  return [all, ...parts.filter((it) => it !== false)].join(", ");
}

export const namesWords = (names: readonly string[]): string =>
  andMore(names.slice(0, NAMES_SHOWN).map(clean), names.length);
