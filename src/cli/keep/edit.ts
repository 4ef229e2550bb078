/** `crigc keep add` and `crigc keep remove`: one keep file of crigc's own, so that nobody edits a list by hand in a hurry. */

import { quoted } from "../../config/value/value.ts";
import { ConfigError } from "../../model/errors.ts";
import { toRfc3339 } from "../../model/time.ts";
import { keepFileHeader, parseKeepFile } from "../../policy/keep/keep-file.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { counted } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import type { Command, CommandContext, Operand } from "../command.ts";
import { exit } from "../exit.ts";

const PATTERNS: Operand = {
  name: "PATTERN",
  required: true,
  repeated: true,
  help: "a keep pattern, such as nginx, registry.example/** or sha256:0123456789ab",
};

export const keepAdd: Command = {
  name: "keep add",
  summary: "add keep patterns to crigc.list in the keep directory",
  doc: "Takes effect with the next pass. A comment says who added a pattern and when. crigc keep test shows what a pattern matches before it is added.",
  operands: [PATTERNS],
  options: [],
  json: false,
  readOnly: false,
  run: async (context, { operands }) => {
    const issues = operands.flatMap((text) => {
      const parsed = parseKeepPattern(text);
      return parsed.kind === "valid"
        ? []
        : [{ source: "crigc keep add", text, message: `invalid pattern: ${parsed.message}` }];
    });
    if (issues.length > 0) throw new ConfigError(issues);
    const list = listOf(context);
    const known = new Set(patternsIn(list.lines));
    const added = [...new Set(operands)].filter((pattern) => !known.has(pattern));
    const comment = `${ADDED} ${userOf(context)} at ${toRfc3339(context.open.now())}`;
    if (added.length > 0)
      list.save([...list.lines, ...added.flatMap((pattern) => [comment, pattern])]);
    context.stdout(
      `${dry(context)}${clean(list.path)}: ${counted(added.length, "pattern")} added, ${known.size + added.length} in total.\n`,
    );
    return exit.done;
  },
};

export const keepRemove: Command = {
  name: "keep remove",
  summary: "remove keep patterns from crigc.list in the keep directory",
  doc: "Removes patterns that crigc keep add wrote, written as crigc keep list shows them; lists of others stay as they are. From the next pass on, images that no other rule keeps may be removed. Exits 8 and changes nothing if a pattern is not in the file.",
  operands: [PATTERNS],
  options: [],
  json: false,
  readOnly: false,
  run: async (context, { operands }) => {
    const list = listOf(context);
    const removed = new Set(operands);
    const known = new Set(patternsIn(list.lines));
    const unknown = operands.filter((pattern) => !known.has(pattern));
    for (const pattern of unknown)
      context.stderr(
        `crigc: pattern ${clean(pattern)} not found in ${clean(list.path)}; crigc keep list shows which file has it\n`,
      );
    if (unknown.length > 0) return exit.unknown;
    const isRemoved = (line: string | undefined): boolean =>
      removed.has(patternIn(line ?? "") ?? "");
    const { lines } = list;
    list.save(
      lines.filter(
        (line, at) => !isRemoved(line) && !(line.startsWith(ADDED) && isRemoved(lines[at + 1])),
      ),
    );
    context.stdout(
      `${dry(context)}${clean(list.path)}: ${counted(removed.size, "pattern")} removed, ${known.size - removed.size} in total.\n`,
    );
    return exit.done;
  },
};

const ADDED = "# added by";

const dry = ({ dryRun }: CommandContext): string =>
  dryRun ? "Dry run, nothing was written. " : "";

const userOf = ({ env, open }: CommandContext): string => {
  const name = env["SUDO_USER"] ?? "";
  return /^[\w.@-]{1,64}$/.test(name) ? name : `user ${open.userId}`;
};

interface List {
  readonly path: string;
  /** Comments and patterns, without the opening. */
  readonly lines: readonly string[];
  readonly save: (lines: readonly string[]) => void;
}

const OPENING = "# Written by crigc keep add and crigc keep remove.";

/** The pattern of a line; `null`: a comment. */
const patternIn = (line: string): string | null =>
  line === "" ? null : (parseKeepFile(line, "").rules[0]?.pattern ?? null);

const patternsIn = (lines: readonly string[]): readonly string[] =>
  lines.map(patternIn).filter((pattern) => pattern !== null);

/** A file that is damaged may have named more than can be read of it, so it is never silently replaced. Throws `ConfigError`. */
function listOf(context: CommandContext): List {
  const file = context.open.keepFile(context.config, "crigc.list");
  const text = file.read() ?? `${OPENING}\n`;
  const { problems } = parseKeepFile(text, file.path);
  if (problems.length > 0)
    throw new ConfigError(
      problems.map(({ source, message }) => ({
        source,
        text: "",
        message: `${message}; repair ${quoted(file.path)} first`,
      })),
    );
  const isOurs = new RegExp(`^(${keepFileHeader(0).replace("0", "\\d+")}|${OPENING}|)$`);
  return {
    path: file.path,
    lines: text.split(/\r?\n/).filter((line) => !isOurs.test(line)),
    save: (lines) => {
      if (context.dryRun) return;
      const header = keepFileHeader(patternsIn(lines).length);
      file.write(`${[header, OPENING, ...lines].join("\n")}\n`);
    },
  };
}
