/** Parses a keep file: one pattern per line, `#` comments. Image lists printed by installers are valid. */
import type { KeepProblem, KeepRule } from "../../model/snapshot.ts";
import { withoutBlanks } from "../../model/values.ts";
import { parseKeepPattern } from "./keep-pattern.ts";

export interface KeepFile {
  readonly rules: readonly KeepRule[];
  /** If not empty, the file is invalid, and no image may be removed. */
  readonly problems: readonly KeepProblem[];
}

/** `source` is the file's path; rules and problems include it with their line. Never throws. */
export function parseKeepFile(text: string, source: string): KeepFile {
  const body = text.startsWith("\u{FEFF}") ? text.slice(1) : text;
  if (body === "") {
    const message =
      "the file has 0 bytes, perhaps after a failed write: write its patterns, or remove it";
    return { rules: [], problems: [{ source, message }] };
  }
  const rules: KeepRule[] = [];
  const problems: KeepProblem[] = [];
  let promised = 0;
  for (const [index, line] of body.split("\n").entries()) {
    const where = `${source}:${index + 1}`;
    promised += promisedPatterns(line);
    const pattern = patternOf(line);
    if (pattern === "") continue;
    const parsed = parseKeepPattern(pattern);
    if (parsed.kind === "valid") rules.push({ pattern, source: where });
    else problems.push({ source: where, message: parsed.message });
  }
  if (rules.length + problems.length < promised) {
    const message = `the file declares ${promised} patterns but has ${rules.length}; it is truncated: rewrite it`;
    problems.push({ source, message });
  }
  return { rules, problems };
}

/** The header of lists that crigc writes, which reveals truncation. */
export const keepFileHeader = (patterns: number): string => `# crigc: ${patterns} patterns or more`;

function promisedPatterns(line: string): number {
  const match = /^# crigc: (\d{1,6}) patterns or more\r?$/.exec(line);
  return match === null ? 0 : Number(match[1]);
}

/** The line without its comment, blanks and the CR of a CRLF. Strips only blanks: other control characters are damage. */
function patternOf(line: string): string {
  const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
  const comment = whole.search(/(?<![^ \t])#/);
  return withoutBlanks(comment < 0 ? whole : whole.slice(0, comment));
}
