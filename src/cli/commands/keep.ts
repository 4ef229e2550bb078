/** `crigc keep list`, `keep test` and `keep check`: the keep rules in force, what each keeps, and whether they are valid. */

import type { Prepared } from "../../gc/prepare.ts";
import { usageError } from "../../model/errors.ts";
import type { ImageLimits } from "../../model/limits.ts";
import type { KeepProblem, KeepRule, Snapshot } from "../../model/snapshot.ts";
import { type SandboxName, sandboxNames } from "../../policy/image/protect.ts";
import { imageNames, matchPattern } from "../../policy/keep/keep-pattern.ts";
import { compileKeepRules, keepRuleMatches } from "../../policy/keep/keep.ts";
import { leaseState, rulesInForce } from "../../policy/keep/lease.ts";
import { imageKeep } from "../../report/image-reasons.ts";
import type { LeaseTimes } from "../../report/image-reasons.ts";
import {
  keepRulesDocument,
  type KeepRulesReport,
  keepRulesTable,
  type Protection,
} from "../../report/keep.ts";
import { column, type Columns, NAME, Printer } from "../../report/printer.ts";
import { clean } from "../../report/terminal.ts";
import { counted, imageName } from "../../report/words.ts";
import { command, LIST, operand, TABLE_OR_JSON } from "../command.ts";
import { exit } from "../exit.ts";
import { IMAGES_ONLY, planNode } from "../node-plan.ts";
import { ALL_OPTION, LIST_OPTIONS, print } from "../output.ts";

export const keepList = command({
  name: "keep list",
  summary: "list the keep rules in force and what each matches on this node",
  doc: "Also lists pinned images and the sandbox image. Exits 2 if the rules are invalid; crigc then removes no image.",
  options: [...LIST_OPTIONS, ALL_OPTION],
  formats: LIST,
  run: async (context) => {
    const prepared = await planNode(context, { parts: IMAGES_ONLY });
    const report = matchedRules(prepared, context.config.limits.images);
    await print(context, {
      document: keepRulesDocument(report),
      table: keepRulesTable,
      rows: ({ rules }) => rules.map(({ pattern }) => ({ id: pattern, name: pattern })),
    });
    return report.problems.length === 0 ? exit.done : exit.usage;
  },
});

export const keepTest = command({
  name: "keep test",
  summary: "show which images a keep pattern or reference matches",
  doc: "Also shows what keeps each now. Exits 8 if none matches.",
  operands: [operand("PATTERN", "a keep pattern or an image reference")],
  options: [ALL_OPTION],
  formats: TABLE_OR_JSON,
  run: async (context) => {
    const [pattern = ""] = context.operands;
    const { snapshot, ledger, plan } = await planNode(context, {
      purpose: { kind: "all-unused" },
    });
    const compiled = compileKeepRules([{ pattern, source: "crigc keep test" }]);
    const [problem] = compiled.problems;
    if (problem !== undefined)
      throw usageError("crigc keep test", pattern, `invalid pattern: ${problem.message}`);
    const found = keepRuleMatches(compiled, snapshot.images, ledger.images);
    const matches = Array.from(found, ([rule, images]) => ({ rule, images }));
    const images = matches.flatMap((match) => match.images);
    const keptBy = new Map(plan.images?.kept.map(({ image, reason }) => [image.id, reason]));
    const rows = images.map((image): TestedImage => {
      const reason = keptBy.get(image.id);
      return reason === undefined
        ? { name: imageName(image), keptBy: "nothing", title: "not kept" }
        : {
            name: imageName(image),
            keptBy: imageKeep.text(reason),
            title: imageKeep.title(reason.kind),
          };
    });
    await print(context, {
      document: keepRulesDocument({ rules: matches, protections: [], problems: [], matched: true }),
      table: (_, screen) => {
        const printer = new Printer(screen);
        printer.line(`${clean(pattern)} matches ${counted(images.length, "image")}.`);
        printer.table(TEST_COLUMNS, rows, { groupOf: ({ title }) => title });
        return printer.text();
      },
    });
    return images.length > 0 ? exit.done : exit.unknown;
  },
});

type TestedImage = Readonly<Record<"name" | "keptBy" | "title", string>>;
const TEST_COLUMNS: Columns<TestedImage> = [
  column("IMAGE", ({ name }) => name, NAME),
  column("KEPT NOW BY", ({ keptBy }) => keptBy, { minimumWidth: 16 }),
];

export function matchedRules(
  { snapshot, ledger }: Pick<Prepared, "snapshot" | "ledger">,
  limits: Pick<ImageLimits, "infraImages">,
): KeepRulesReport {
  const { rules, problems: unread } = snapshot.keep;
  const compiled = compileKeepRules(rulesInForce(rules, ledger));
  const matches = keepRuleMatches(compiled, snapshot.images, ledger.images);
  const problems: readonly KeepProblem[] = [...unread, ...compiled.problems];
  return {
    rules: rules.map((rule) => ({
      rule,
      images: matches.get(rule) ?? [],
      lease: leaseTimes(rule, ledger),
    })),
    protections: protectionsOf(snapshot, limits),
    problems,
    matched: true,
  };
}

function leaseTimes(rule: KeepRule, ledger: Prepared["ledger"]): LeaseTimes | null {
  const state = leaseState(rule, ledger);
  if (state === null) return null;
  const { startedAt: since, ...rest } = state;
  return { since, ...rest, untilUsed: rule.lease?.untilUsed };
}

function protectionsOf(
  snapshot: Snapshot,
  limits: Pick<ImageLimits, "infraImages">,
): readonly Protection[] {
  const pinned = snapshot.images.filter((image) => image.pinned);
  const named = snapshot.images.map((image) => ({ image, names: imageNames(image) }));
  return [
    ...(pinned.length === 0 ? [] : [{ by: "pin" as const, pattern: null, images: pinned }]),
    ...distinct(sandboxNames(snapshot, limits.infraImages)).map(({ by, text, pattern }) => ({
      by,
      pattern: text,
      images: named
        .filter(({ names }) => matchPattern(pattern, names) !== null)
        .map(({ image }) => image),
    })),
  ];
}

/** The runtime and its sandboxes usually name the same one. */
const distinct = (names: readonly SandboxName[]): readonly SandboxName[] =>
  names.filter(
    ({ by, text }, at) => names.findIndex((it) => it.by === by && it.text === text) === at,
  );

export const keepCheck = command({
  name: "keep check",
  summary: "verify the keep rules in files and flags",
  doc: "Needs no runtime. Exits 2 if they are invalid; each error names its file and line.",
  formats: TABLE_OR_JSON,
  run: async (context) => {
    const { rules, problems } = await context.open.keepRules(context.config);
    const report: KeepRulesReport = {
      rules: rules.map((rule) => ({ rule, images: [] })),
      protections: [],
      problems,
      matched: false,
    };
    await print(context, { document: keepRulesDocument(report), table: () => verdict(report) });
    for (const { source, message } of problems) context.note(`${source}: ${message}`);
    return problems.length === 0 ? exit.done : exit.usage;
  },
});

/** Of invalid rules the problems alone are shown. */
function verdict({ rules, problems }: KeepRulesReport): string {
  if (problems.length > 0) return "";
  if (rules.length === 0) return "No keep rules found.\n";
  const places = new Set(rules.map(({ rule }) => rule.source.replace(/:\d+$/, "")));
  const from = Array.from(places, (place) => clean(place));
  return `${counted(rules.length, "keep rule")} in ${from.join(", ")}: all valid.\n`;
}
