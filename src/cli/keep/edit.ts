/** `crigc keep add` and `crigc keep remove`: edit crigc's own keep file. */

import { quoted } from "../../config/words.ts";
import { ConfigError, configIssue } from "../../model/errors.ts";
import type { KeepRule } from "../../model/snapshot.ts";
import { toRfc3339 } from "../../model/time.ts";
import type { TextChange } from "../../node/change-keep-file.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { keepFileHeader, parseKeepFile } from "../../policy/keep/keep.ts";
import { counted } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, type Operand } from "../command.ts";
import { exit } from "../exit.ts";

const PATTERNS: Operand = {
  name: "PATTERN",
  required: true,
  repeated: true,
  help: "a keep pattern, such as nginx, registry.example/** or sha256:0123456789ab",
};

export const keepAdd = command({
  name: "keep add",
  summary: "add keep patterns to crigc.list in the keep directory",
  doc: "Takes effect within a second, also in a running pass. A comment records who added a pattern and when. crigc keep test shows what a pattern would match.",
  operands: [PATTERNS],
  readOnly: false,
  run: async (context, { operands }) => {
    const issues = operands.flatMap((text) => {
      const parsed = parseKeepPattern(text);
      return parsed.kind === "valid"
        ? []
        : [{ source: "crigc keep add", text, message: `invalid pattern: ${parsed.message}` }];
    });
    if (issues.length > 0) throw new ConfigError(issues);
    const comment = `${ADDED} ${userOf(context)} at ${toRfc3339(context.open.now())}`;
    const { path, answer } = changed(context, (lines) => {
      const known = new Set(patternsIn(lines));
      const added = [...new Set(operands)].filter((pattern) => !known.has(pattern));
      return {
        lines:
          added.length === 0 ? null : [...lines, ...added.flatMap((pattern) => [comment, pattern])],
        answer: { added: added.length, total: known.size + added.length },
      };
    });
    context.stdout(
      `${clean(path)}: ${counted(answer.added, "pattern")} ${dry(context)}added, ${answer.total} in total.\n`,
    );
    return exit.done;
  },
});

export const keepRemove = command({
  name: "keep remove",
  summary: "remove keep patterns from crigc.list in the keep directory",
  doc: "Patterns are spelt as crigc keep list shows them; edit other files by hand. From the next pass on, images that no other rule keeps may be removed. Exits 8 and changes nothing if a pattern is not in the file.",
  operands: [PATTERNS],
  readOnly: false,
  run: async (context, { operands }) => {
    const removed = new Set(operands);
    const isRemoved = (line: string | undefined): boolean =>
      removed.has(patternIn(line ?? "") ?? "");
    const { path, answer } = changed(context, (lines) => {
      const known = new Set(patternsIn(lines));
      const unknown = operands.filter((pattern) => !known.has(pattern));
      const left = lines.filter(
        (line, at) => !isRemoved(line) && !(line.startsWith(ADDED) && isRemoved(lines[at + 1])),
      );
      return {
        lines: unknown.length > 0 ? null : left,
        answer: { unknown, total: known.size - removed.size },
      };
    });
    for (const pattern of answer.unknown)
      context.stderr(
        `crigc: pattern ${clean(pattern)} not found in ${clean(path)}; crigc keep list shows which file has it\n`,
      );
    if (answer.unknown.length > 0) return exit.unknown;
    context.stdout(
      `${clean(path)}: ${counted(removed.size, "pattern")} ${dry(context)}removed, ${answer.total} in total.\n`,
    );
    return exit.done;
  },
});

const ADDED = "# added by";

const dry = ({ dryRun }: CommandContext): string => (dryRun ? "would be " : "");

const userOf = ({ env, open }: CommandContext): string => {
  const name = env["SUDO_USER"] ?? "";
  return /^[\w.@-]{1,64}$/.test(name) ? name : `user ${open.userId}`;
};

const OPENING = "# Written by crigc keep add and crigc keep remove.";

/** The pattern of a line; `null`: a comment. */
const patternIn = (line: string): string | null =>
  line === "" ? null : (parseKeepFile(line, "").rules[0]?.pattern ?? null);

const patternsIn = (lines: readonly string[]): readonly string[] =>
  lines.map(patternIn).filter((pattern) => pattern !== null);

/** Passes on the file's lines without its header, and writes the result; `null`: unchanged. */
function changed<T>(
  context: CommandContext,
  change: (lines: readonly string[]) => {
    readonly lines: readonly string[] | null;
    readonly answer: T;
  },
): { readonly path: string; readonly answer: T } {
  const file = context.open.keepFile(context.config, "crigc.list");
  const next = (before: string | null): TextChange<T> => {
    const { lines, answer } = change(linesIn(before ?? `${OPENING}\n`, file.path));
    if (lines === null) return { text: null, answer };
    const header = keepFileHeader(patternsIn(lines).length);
    return { text: `${[header, OPENING, ...lines].join("\n")}\n`, answer };
  };
  const answer = context.dryRun ? next(file.read()).answer : file.change(next);
  return { path: file.path, answer };
}

function linesIn(text: string, path: string): readonly string[] {
  rulesIn(text, path, `repair ${quoted(path)} first`);
  const isOurs = new RegExp(`^(${keepFileHeader(0).replace("0", "\\d+")}|${OPENING}|)$`);
  return text.split(/\r?\n/).filter((line) => !isOurs.test(line));
}

/** A damaged file may have had more patterns than are readable, so it is never replaced. Throws `ConfigError`. */
export function rulesIn(text: string, path: string, advice: string): readonly KeepRule[] {
  const { rules, problems } = parseKeepFile(text, path);
  if (problems.length === 0) return rules;
  throw new ConfigError(
    problems.map(({ source, message }) => configIssue(source, "", `${message}; ${advice}`)),
  );
}
