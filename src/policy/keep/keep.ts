/** Keep rules: reading a keep file, and matching against all images of a node. */
import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord } from "../../model/ledger.ts";
import type { Lease } from "../../model/records.ts";
import type { Image, KeepProblem, KeepRule } from "../../model/snapshot.ts";
import { duration, hours, minutes, seconds } from "../../model/time.ts";
import { withoutBlanks } from "../../model/values.ts";
import { splitReference } from "../image/reference.ts";
import {
  type ImageNames,
  imageNames,
  type KeepPattern,
  matchPattern,
  parseKeepPattern,
} from "./keep-pattern.ts";

interface CompiledRule {
  readonly rule: KeepRule;
  readonly pattern: KeepPattern;
  readonly place: number;
}

export interface CompiledKeepRules {
  /** By repository, if it has no wildcard, or by the beginning of the digest: nearly all rules, which cost one lookup. */
  readonly byKey: ReadonlyMap<string, readonly CompiledRule[]>;
  /** All others, in order. */
  readonly others: readonly CompiledRule[];
  readonly rules: readonly KeepRule[];
  /** Invalid rules. They passed the reader of files, and still stop image removal. */
  readonly problems: readonly KeepProblem[];
}

export interface KeepMatch {
  readonly rule: KeepRule;
  /** The tag, digest or ID that matched. */
  readonly name: string;
}

export function compileKeepRules(rules: readonly KeepRule[]): CompiledKeepRules {
  const byKey = new Map<string, CompiledRule[]>();
  const others: CompiledRule[] = [];
  const problems: KeepProblem[] = [];
  for (const [place, rule] of rules.entries()) {
    const parsed = parseKeepPattern(rule.pattern);
    if (parsed.kind === "invalid") {
      problems.push({ source: rule.source, message: parsed.message });
      continue;
    }
    const { pattern } = parsed;
    const key =
      pattern.kind === "name" ? pattern.repository.literal : startOfDigest(pattern.prefix);
    const compiled = { rule, pattern, place };
    const those = key === null ? others : (byKey.get(key) ?? []);
    those.push(compiled);
    if (key !== null) byKey.set(key, those);
  }
  return { byKey, others, rules, problems };
}

/** As many digits as every rule by a digest has at least. */
const startOfDigest = (digest: string): string => digest.slice(0, digest.indexOf(":") + 1 + 12);

/** The first matching rule, in order, of those without an end if there is one; `null` if none matches. */
export function matchKeepRules(compiled: CompiledKeepRules, image: Image): KeepMatch | null {
  const all = matches(compiled, imageNames(image));
  const first = all.find(({ rule }) => rule.lease === undefined) ?? all[0];
  return first === undefined ? null : { rule: first.rule, name: first.name };
}

/**
 * The image under the names that it had before; `null` without any. A tag that another image has now counts without its
 * tag, so that only rules for the whole repository still keep the old image.
 */
export function withEarlierNames(
  image: Image,
  record: Pick<ImageRecord, "earlierNames"> | undefined,
  tags: { readonly has: (name: string) => boolean },
): Image | null {
  if (record === undefined || record.earlierNames.length === 0) return null;
  const repoTags = record.earlierNames.map((name) =>
    tags.has(name) ? splitReference(name).name : name,
  );
  return { ...image, repoTags, repoDigests: [] };
}

/**
 * Every rule with the images that it keeps, by their names now or earlier, in order; an empty list is a rule that matches
 * nothing.
 */
export function keepRuleMatches(
  compiled: CompiledKeepRules,
  images: readonly Image[],
  records: ReadonlyMap<ImageId, Pick<ImageRecord, "earlierNames">> = new Map(),
): ReadonlyMap<KeepRule, readonly Image[]> {
  const found = new Map<KeepRule, Set<Image>>(compiled.rules.map((rule) => [rule, new Set()]));
  const tags = new Set(images.flatMap(({ repoTags }) => repoTags));
  for (const image of images) {
    const before = withEarlierNames(image, records.get(image.id), tags);
    for (const named of before === null ? [image] : [image, before])
      for (const { rule } of matches(compiled, imageNames(named))) found.get(rule)?.add(image);
  }
  return new Map(Array.from(found, ([rule, kept]) => [rule, [...kept]]));
}

/** Rules that keep no listed image: misspelt, or for images not on this node. */
export const unmatchedKeepRules = (
  ...given: Parameters<typeof keepRuleMatches>
): readonly KeepRule[] =>
  [...keepRuleMatches(...given)].filter(([, kept]) => kept.length === 0).map(([rule]) => rule);

interface PlacedMatch extends KeepMatch {
  readonly place: number;
}

function matches(compiled: CompiledKeepRules, names: ImageNames): readonly PlacedMatch[] {
  const keys = new Set([
    ...names.names.map(({ repository }) => repository),
    ...names.digests.map(({ digest }) => startOfDigest(digest)),
  ]);
  const near = [...keys].flatMap((key) => compiled.byKey.get(key) ?? []);
  const found: PlacedMatch[] = [];
  for (const { rule, pattern, place } of [...near, ...compiled.others]) {
    const name = matchPattern(pattern, names);
    if (name !== null) found.push({ rule, name, place });
  }
  return found.toSorted((a, b) => a.place - b.place);
}

/** A keep file: one pattern per line, `#` comments. Image lists printed by installers are valid. */
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
    if (/\r[^\r]/.test(line)) {
      // A comment would hide the patterns behind it.
      const message = "a carriage return is within the line: end each line with a line feed";
      problems.push({ source: where, message });
      continue;
    }
    promised += promisedPatterns(line);
    const { pattern, comment } = partsOf(line);
    if (pattern === "") continue;
    const parsed = parseKeepPattern(pattern);
    const note = noteOf(comment);
    if (parsed.kind === "invalid") problems.push({ source: where, message: parsed.message });
    else if (note === null) problems.push({ source: where, message: invalidLease(comment) });
    else rules.push({ pattern, source: where, ...note });
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

interface LineParts {
  readonly pattern: string;
  /** From its `#` on. */
  readonly comment: string;
}

/** Without blanks and the CR of a CRLF. Strips only blanks: other control characters are damage. */
function partsOf(line: string): LineParts {
  const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
  const at = whole.search(/(?<![^ \t])#/);
  if (at < 0) return { pattern: withoutBlanks(whole), comment: "" };
  return { pattern: withoutBlanks(whole.slice(0, at)), comment: withoutBlanks(whole.slice(at)) };
}

const PINNED_NOTE = "# crigc: pinned";
const PLATFORM_NOTE = "# crigc: another platform of ";

/** The line of a rule, with its note. */
export function keepLine(rule: Omit<KeepRule, "source">): string {
  const { pattern, pinned, platformOf, lease } = rule;
  if (lease !== undefined) return `${pattern} # crigc: ${lease.text}`;
  if (platformOf !== undefined) return `${pattern} ${PLATFORM_NOTE}${platformOf}`;
  return pinned === true ? `${pattern} ${PINNED_NOTE}` : pattern;
}

/**
 * What crigc has noted behind a pattern, in a comment, so that a reader that does not know the note keeps the image without
 * it, and without an end. `null`: a lease whose end cannot be read.
 */
function noteOf(comment: string): Omit<KeepRule, "pattern" | "source"> | null {
  if (comment === PINNED_NOTE) return { pinned: true };
  const [, platformOf] = comment.split(PLATFORM_NOTE);
  if (platformOf !== undefined) return { platformOf };
  const until = /^#[ \t]*crigc:[ \t]*(until\b.*)$/.exec(comment)?.[1];
  if (until === undefined) return {};
  const lease = parseLease(until);
  return lease === null ? null : { lease };
}

const invalidLease = (comment: string): string =>
  `invalid lease "${comment}": expected # crigc: until 7d, until used or until used or 30d`;

const UNITS = {
  s: seconds(1),
  m: minutes(1),
  h: hours(1),
  d: hours(24),
  w: hours(7 * 24),
} as const;
const isUnit = (text: string): text is keyof typeof UNITS => Object.hasOwn(UNITS, text);

/** How long a lease until the first use lasts if its line names no time. */
const UNTIL_USED_MAX = "90d";

/** `until 7d`, `until used`, `until used or 30d`, and when it was added, which tells it from an earlier one; `null`: invalid. */
export function parseLease(text: string): Lease | null {
  const match =
    /^until (?:(used)(?: or ([1-9]\d{0,3}[a-z]))?|([1-9]\d{0,3}[a-z]))(?:, added \S+)?$/.exec(text);
  if (match === null) return null;
  const [, used, most = UNTIL_USED_MAX, span = most] = match;
  const unit = span.slice(-1);
  if (!isUnit(unit)) return null;
  const lasts = duration(BigInt(span.slice(0, -1)) * UNITS[unit]);
  return { text, untilUsed: used !== undefined, lasts };
}
