/** Document `MissingImages` and the output of `crigc keep missing`: what a baseline names and the node lacks. */

import { type Baseline, type BaselineGap, isMissing } from "../model/baseline.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { counted } from "./bytes.ts";
import { document, type JsonObject, jsonOf, runtimeJson } from "./document.ts";
import { column, type Columns, NAME, Printer } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";

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

export const missingDocument = ({ runtime, baseline, images }: MissingReport): JsonObject =>
  document("MissingImages", {
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
export const baselineJson = ({ gaps, ...counts }: Baseline): JsonObject => ({
  ...counts,
  gaps: gaps.map((gap) => ({ name: gap.name, problem: gap.kind })),
});

const PROBLEMS: Readonly<Record<BaselineGap["kind"], string>> = {
  missing: "not on this node",
  "name-missing": "on this node, but not by this name",
  "sandbox-image": "not on this node, so no pod can start",
  unpinned: "no longer pinned in the runtime",
};

const COLUMNS: Columns<MissingImage> = [
  column("IMAGE", ({ gap }) => clean(gap.name), NAME),
  column("PROBLEM", ({ gap }) => PROBLEMS[gap.kind], { minimumWidth: 16 }),
  column("ARCHIVE", ({ archives }) => clean(archives[0] ?? "-"), {
    minimumWidth: 16,
    cut: "middle",
    optional: true,
  }),
];

export function missingTable({ baseline, images }: MissingReport, screen: Screen): string {
  if (images.length === 0) return `${baselineWords(baseline)}.\n`;
  const commands = [...new Set(images.flatMap(({ command }) => command ?? []))];
  const printer = new Printer(screen);
  printer.table(COLUMNS, images);
  printer.gap();
  printer.say(`${baselineWords(baseline)}.`, "red");
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
  const unpinned = gaps.filter((gap) => !isMissing(gap)).map(({ name }) => name);
  const all = `${counted(images, "baseline image")}: ${present} on this node`;
  const parts = [
    missing.length > 0 && `${missing.length} missing (${namesWords(missing)})`,
    unpinned.length > 0 && `${unpinned.length} no longer pinned (${namesWords(unpinned)})`,
  ];
  return [all, ...parts.filter((it) => it !== false)].join(", ");
}

/** The first names, and how many more there are. */
export const namesWords = (names: readonly string[]): string => {
  const more = names.length - NAMES_SHOWN;
  const shown = names.slice(0, NAMES_SHOWN).map(clean).join(", ");
  return more > 0 ? `${shown}, ${more} more` : shown;
};
