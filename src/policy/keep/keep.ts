/** Keep rules: reading the text of a keep file, and matching rules against images. */
import type { Image, KeepProblem, KeepRule } from "../../model/snapshot.ts";
import { withoutBlanks } from "../../model/values.ts";
import { imageNames, type KeepPattern, matchPattern, parseKeepPattern } from "./keep-pattern.ts";

export interface CompiledKeepRules {
  readonly rules: readonly { readonly rule: KeepRule; readonly pattern: KeepPattern }[];
  /** If not empty, no image may be removed. */
  readonly problems: readonly KeepProblem[];
}

export function compileKeepRules(given: readonly KeepRule[]): CompiledKeepRules {
  const rules: CompiledKeepRules["rules"][number][] = [];
  const problems: KeepProblem[] = [];
  for (const rule of given) {
    const parsed = parseKeepPattern(rule.pattern);
    if (parsed.kind === "valid") rules.push({ rule, pattern: parsed.pattern });
    else problems.push({ source: rule.source, message: parsed.message });
  }
  return { rules, problems };
}

export interface KeepMatch {
  readonly rule: KeepRule;
  /** The tag, digest or ID that matched. */
  readonly name: string;
}

/** The first rule that matches the image; `null` if none does. */
export function matchKeepRules({ rules }: CompiledKeepRules, image: Image): KeepMatch | null {
  const names = imageNames(image);
  for (const { rule, pattern } of rules) {
    const name = matchPattern(pattern, names);
    if (name !== null) return { rule, name };
  }
  return null;
}

/** Every valid rule with the images that it keeps; a rule without any is misspelt, or its images are not on this node. */
export function keepRuleMatches(
  { rules }: CompiledKeepRules,
  images: readonly Image[],
): ReadonlyMap<KeepRule, readonly Image[]> {
  const named = images.map((image) => ({ image, names: imageNames(image) }));
  return new Map(
    rules.map(({ rule, pattern }) => [
      rule,
      named.flatMap(({ image, names }) => (matchPattern(pattern, names) === null ? [] : [image])),
    ]),
  );
}

export const unmatchedKeepRules = (
  compiled: CompiledKeepRules,
  images: readonly Image[],
): readonly KeepRule[] =>
  Array.from(keepRuleMatches(compiled, images))
    .filter(([, kept]) => kept.length === 0)
    .map(([rule]) => rule);

/** A keep file: one pattern per line, `#` comments. Image lists printed by installers are valid. */
export interface KeepFile {
  readonly rules: readonly KeepRule[];
  /** If not empty, no image may be removed. */
  readonly problems: readonly KeepProblem[];
}

/** `source` is the file's path; rules and problems include it with their line. Never throws. */
export function parseKeepFile(text: string, source: string): KeepFile {
  if (text === "")
    return damaged(source, "the file is empty: write its patterns, or remove the file");
  if (!text.endsWith("\n"))
    return damaged(
      source,
      "the file does not end with a newline and may be cut off: complete it, and end its last line",
    );
  const rules: KeepRule[] = [];
  const problems: KeepProblem[] = [];
  const body = text.startsWith("\u{FEFF}") ? text.slice(1) : text;
  for (const [index, line] of body.split(/\r?\n/).entries()) {
    const where = `${source}:${index + 1}`;
    // A comment would hide the patterns behind it.
    if (line.includes("\r")) {
      const message = "a carriage return is within the line: end each line with a line feed";
      problems.push({ source: where, message });
      continue;
    }
    const comment = line.search(/(?<![^ \t])#/);
    const pattern = withoutBlanks(comment < 0 ? line : line.slice(0, comment));
    if (pattern === "") continue;
    const parsed = parseKeepPattern(pattern);
    if (parsed.kind === "valid") rules.push({ pattern, source: where });
    else problems.push({ source: where, message: parsed.message });
  }
  return { rules, problems };
}

const damaged = (source: string, message: string): KeepFile => ({
  rules: [],
  problems: [{ source, message }],
});
