/** `crigc keep add` and `keep remove`: change crigc.list in the keep directory. */

import { quoted } from "../../config/words.ts";
import { ConfigError, configIssue } from "../../model/errors.ts";
import { toRfc3339 } from "../../model/time.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { keepFileHeader, parseKeepFile, parseLease } from "../../policy/keep/keep.ts";
import { counted } from "../../report/words.ts";
import { command, type CommandContext, has, operand, option } from "../command.ts";
import { exit } from "../exit.ts";
import { valueOf, type ValueType } from "../values.ts";
import { readableRules } from "./keep-baseline.ts";

export const keepAdd = command({
  name: "keep add",
  summary: "add keep patterns to crigc.list in the keep directory",
  doc: "Takes effect within a second, also in a running pass. A comment records who added a pattern and when. --until and --until-used add a lease: it starts when this node first reads the line and runs in observed time. --until-used ends it, for all images of the pattern, once a container first seen after the start uses one, at most after 90 days or the time of --until. Adding the pattern again renews the lease; without these options it keeps the pattern for good.",
  operands: [
    operand(
      "PATTERN…",
      "a keep pattern, such as nginx, registry.example/** or sha256:0123456789ab",
    ),
  ],
  options: [
    option("until DURATION", "for this long, such as 36h, 7d or 4w"),
    option("until-used", "until a container uses the image"),
  ],
  changes: true,
  run: async (context) => {
    const { operands } = context;
    const issues = operands.flatMap((text) => {
      const parsed = parseKeepPattern(text);
      return parsed.kind === "valid"
        ? []
        : [configIssue("crigc keep add", text, `invalid pattern: ${parsed.message}`)];
    });
    if (issues.length > 0) throw new ConfigError(issues);
    const now = toRfc3339(context.open.now());
    const lease = leaseOf(context);
    const comment = `${ADDED} ${userOf(context)} at ${now}`;
    const { path, answer } = changeOwnList(context, (lines) => {
      const known = new Set(rulesIn(lines.filter((line) => leaseIn(line) === "")));
      const added = [...new Set(operands)].filter((pattern) => !known.has(pattern));
      const more = added.flatMap((pattern) => [
        comment,
        lease === "" ? pattern : `${pattern} # crigc: ${lease}, added ${now}`,
      ]);
      // For good it replaces each lease; a lease replaces only one of the same words.
      const left = withoutRules(lines, (line) => {
        const old = leaseIn(line);
        const isReplaced = old !== "" && (lease === "" || old === lease);
        return isReplaced && added.includes(patternIn(line) ?? "");
      });
      const after = [...left, ...more];
      return {
        lines: added.length === 0 ? null : after,
        answer: { added: added.length, total: new Set(rulesIn(after)).size },
      };
    });
    const done = context.dryRun ? "would be added" : "added";
    context.say(`${path}: ${counted(answer.added, "pattern")} ${done}, ${answer.total} in total.`);
  },
});

/** As a line says it, without when it was added; "": none. */
function leaseOf(context: CommandContext): string {
  const span = valueOf(context, "until", LEASE_SPAN);
  const ends = [...(has(context, "until-used") ? ["used"] : []), ...(span === null ? [] : [span])];
  return ends.length === 0 ? "" : `until ${ends.join(" or ")}`;
}

/** As written, because a lease is known by its words. */
const LEASE_SPAN: ValueType<string> = {
  what: "duration",
  use: "36h, 7d or 4w",
  read: (text) => (/^\d+[a-z]$/.test(text) && parseLease(`until ${text}`) !== null ? text : null),
};

export const keepRemove = command({
  name: "keep remove",
  summary: "remove keep patterns from crigc.list in the keep directory",
  doc: "Edit other files by hand. Exits 8 and changes nothing if a pattern is not in the file.",
  operands: [operand("PATTERN…", "a keep pattern, as crigc keep list shows it")],
  changes: true,
  run: async (context) => {
    const { operands } = context;
    const removed = new Set(operands);
    const isRemoved = (line: string): boolean => removed.has(patternIn(line) ?? "");
    const { path, answer } = changeOwnList(context, (lines) => {
      const known = new Set(rulesIn(lines));
      const unknown = operands.filter((pattern) => !known.has(pattern));
      const left = withoutRules(lines, isRemoved);
      return {
        lines: unknown.length > 0 ? null : left,
        answer: { unknown, total: known.size - removed.size },
      };
    });
    for (const pattern of answer.unknown)
      context.note(
        `pattern ${pattern} not found in ${path}; crigc keep list shows which file has it`,
      );
    if (answer.unknown.length > 0) return exit.unknown;
    const done = context.dryRun ? "would be removed" : "removed";
    context.say(`${path}: ${counted(removed.size, "pattern")} ${done}, ${answer.total} in total.`);
    return exit.done;
  },
});

const ADDED = "# added by";
const OPENING = "# Written by crigc keep add and crigc keep remove.";

const userOf = ({ env, open }: CommandContext): string => {
  const name = env["SUDO_USER"] ?? "";
  return /^[\w.@-]{1,64}$/.test(name) ? name : `user ${open.userId}`;
};

/** The pattern of a line; `null`: a comment. */
const patternIn = (line: string): string | null =>
  line === "" ? null : (parseKeepFile(line, "").rules[0]?.pattern ?? null);

const rulesIn = (lines: readonly string[]): readonly string[] =>
  lines.map(patternIn).filter((pattern) => pattern !== null);

/** The lease of a line, without when it was added; "": none. */
const leaseIn = (line: string): string =>
  parseKeepFile(line, "").rules[0]?.lease?.text.replace(/, added \S+$/, "") ?? "";

/** Without these lines, and the comments that say who added them. */
const withoutRules = (
  lines: readonly string[],
  isRemoved: (line: string) => boolean,
): readonly string[] =>
  lines.filter(
    (line, at) => !isRemoved(line) && !(line.startsWith(ADDED) && isRemoved(lines[at + 1] ?? "")),
  );

/** Passes on the lines of crigc.list without its header, and writes the result; `null`: unchanged. */
function changeOwnList<T>(
  context: CommandContext,
  change: (lines: readonly string[]) => {
    readonly lines: readonly string[] | null;
    readonly answer: T;
  },
): { readonly path: string; readonly answer: T } {
  const file = context.open.keepFile(context.config, "crigc.list");
  const isHeader = new RegExp(`^(${keepFileHeader(0).replace("0", "\\d+")}|${OPENING}|)$`);
  const next = (before: string | null) => {
    const text = before ?? `${OPENING}\n`;
    readableRules(text, file.path, `repair ${quoted(file.path)} first`);
    const { lines, answer } = change(text.split(/\r?\n/).filter((line) => !isHeader.test(line)));
    if (lines === null) return { text: null, answer };
    const header = keepFileHeader(lines.filter((line) => patternIn(line) !== null).length);
    return { text: `${[header, OPENING, ...lines].join("\n")}\n`, answer };
  };
  const answer = context.dryRun ? next(file.read()).answer : file.change(next);
  return { path: file.path, answer };
}
