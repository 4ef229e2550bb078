/** Keep rules: the text of a keep file, its patterns, and the images that they match. */

import type { Image, KeepProblem, KeepRule, KeepRules } from "../../model/snapshot.ts";
import { withoutBlanks } from "../../model/values.ts";
import {
  type ImageName,
  type ImageNames,
  imageNames,
  normaliseRepository,
  splitReference,
} from "../image/reference.ts";

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

/** The first rule that matches the image, and the tag, digest or ID that it matches; `null` if none does. */
export function matchKeepRules({ rules }: CompiledKeepRules, image: Image) {
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

/**
 * A keep file: one pattern per line, `#` comments. Image lists printed by installers are valid. `source` is the file's path;
 * rules and problems include it with their line. Never throws.
 */
export function parseKeepFile(text: string, source: string): KeepRules {
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

const damaged = (source: string, message: string): KeepRules => ({
  rules: [],
  problems: [{ source, message }],
});

// Patterns

export type KeepPattern =
  /** Matches an ID or digest by its prefix: algorithm, colon, at least 12 hex digits. */
  | { readonly kind: "digest"; readonly prefix: string }
  | {
      readonly kind: "name";
      readonly repository: Glob;
      /** `null`: every tag. */
      readonly tag: Glob | null;
      /** `null`: every digest. */
      readonly digest: Glob | null;
    };

export type ParsedPattern =
  | { readonly kind: "valid"; readonly pattern: KeepPattern }
  /** `message` says what is wrong and what was expected. */
  | { readonly kind: "invalid"; readonly message: string };

/** Parses a pattern. Short names are normalised unless their first component has a wildcard. */
export function parseKeepPattern(text: string): ParsedPattern {
  const problem = unreadable(text);
  if (problem !== null) return invalid(problem);
  if (/^[0-9a-f]{64}$/.test(text)) return valid({ kind: "digest", prefix: `sha256:${text}` });
  if (/^sha(?:256|384|512):/.test(text)) {
    if (!isDigestPrefix(text))
      return invalid(`"${text}" needs at least 12 hex digits after the colon, and no wildcard`);
    return valid({ kind: "digest", prefix: text.toLowerCase() });
  }
  return parseNamePattern(text);
}

/** The name, digest or ID of the image that the pattern matches; `null` if none. */
export function matchPattern(pattern: KeepPattern, names: ImageNames): string | null {
  if (pattern.kind === "digest") {
    return names.digests.find(({ digest }) => digest.startsWith(pattern.prefix))?.text ?? null;
  }
  return names.names.find((name) => nameMatches(pattern, name, names))?.text ?? null;
}

/** An image name that may have stars in place of letters or digits. */
const NAME_PATTERN = /^(?:[\w.*-]+|(?:\[[0-9A-Fa-f:.]+\]|[\w.*-]+)(?::[\d*]+)?(?:\/[\w.*-]+)+)$/;

function parseNamePattern(text: string): ParsedPattern {
  const { name, tag, digest } = splitReference(text);
  if (!NAME_PATTERN.test(name)) {
    return invalid(
      `invalid image name "${text}": expected REGISTRY/PATH[:TAG][@DIGEST], with * and ** as wildcards`,
    );
  }
  if (tag !== null && !/^[\w.*-]{1,128}$/.test(tag)) {
    return invalid(`invalid tag in "${text}" after its last colon`);
  }
  if (digest !== null && !isDigestPrefix(digest) && !isDigestGlob(digest)) {
    return invalid(`"${text}" needs sha256: and at least 12 hex digits after the @`);
  }
  const repository = /^[^/]*\*/.test(name) ? name : normaliseRepository(name);
  return valid({
    kind: "name",
    repository: compileGlob(repository),
    tag: tag === null ? null : compileGlob(tag),
    digest:
      digest === null
        ? null
        : compileGlob(digest.includes("*") ? digest : `${digest.toLowerCase()}*`),
  });
}

type NamePattern = Extract<KeepPattern, { readonly kind: "name" }>;

function nameMatches(pattern: NamePattern, name: ImageName, names: ImageNames): boolean {
  if (!repositoryMatches(pattern.repository, name)) return false;
  const tagMatches =
    pattern.tag === null || (name.tag !== null && globMatches(pattern.tag, name.tag));
  if (pattern.digest === null) return tagMatches;
  if (name.digest !== null) return globMatches(pattern.digest, name.digest);
  // If the pattern has a tag and a digest, the digest decides; an image from an archive has none, so its tag does.
  const comparable = names.names.some(
    (other) => other.digest !== null && repositoryMatches(pattern.repository, other),
  );
  return pattern.tag !== null && tagMatches && !comparable;
}

const repositoryMatches = (glob: Glob, { repository, listedRepository }: ImageName): boolean =>
  globMatches(glob, repository) ||
  (listedRepository !== repository && globMatches(glob, listedRepository));

function unreadable(text: string): string | null {
  if (text === "")
    return "an empty pattern matches nothing: expected an image name, a digest or an ID";
  const control = Array.from(text, (character) => character.charCodeAt(0)).find(isControl);
  if (control !== undefined) {
    const code = control.toString(16).toUpperCase().padStart(4, "0");
    return `the pattern contains the control character U+${code}; the file may be damaged: rewrite it`;
  }
  if (/\s/.test(text)) return `"${text}" contains a space: expected one pattern per line`;
  const bad = /[^\w.*:@/[\]-]/.exec(text);
  if (bad !== null)
    return `"${text}" contains the character ${JSON.stringify(bad[0])}, which is invalid in image names`;
  return null;
}

const isDigestPrefix = (text: string): boolean =>
  /^(?:sha256:[0-9a-fA-F]{12,64}|sha384:[0-9a-fA-F]{12,96}|sha512:[0-9a-fA-F]{12,128})$/.test(text);

const isDigestGlob = (text: string): boolean =>
  text.includes("*") && /^[a-z0-9*]+(?::[0-9a-f*]*)?$/.test(text);
const isControl = (code: number): boolean => code < 0x20 || (code >= 0x7f && code <= 0x9f);
const valid = (pattern: KeepPattern): ParsedPattern => ({ kind: "valid", pattern });
const invalid = (message: string): ParsedPattern => ({ kind: "invalid", message });

/** A pattern with `*` (within a path component) and `**` (across components), matched in time linear in the text. */
export interface Glob {
  /** For a pattern without a star: the only text that matches; else `null`. */
  readonly literal: string | null;
  /** The texts between stars, in order. If one is missing, nothing matches, which rejects nearly everything at once. */
  readonly parts: readonly string[];
  /** Single characters, `*` and `**`. */
  readonly steps: readonly string[];
}

/** Two stars or more are `**`. Every text is a glob. */
export const compileGlob = (source: string): Glob => ({
  literal: source.includes("*") ? null : source,
  parts: source.split(/\*+/),
  steps: source.replaceAll(/\*{2,}/g, "**").match(/\*\*|[^]/g) ?? [],
});

export function globMatches({ literal, parts, steps }: Glob, text: string): boolean {
  if (literal !== null) return literal === text;
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  // All positions in the pattern that the text so far can have reached, so that nothing is tried twice.
  let places = reached(steps, new Set([0]));
  for (let at = 0; at < text.length && places.size > 0; at += 1) {
    const character = text.charAt(at);
    const next = new Set<number>();
    for (const place of places) {
      const step = steps[place];
      if (step === "**" || (step === "*" && character !== "/")) next.add(place);
      else if (step === character) next.add(place + 1);
    }
    places = reached(steps, next);
  }
  return places.has(steps.length);
}

/** Adds the positions after stars, which may match nothing. */
function reached(steps: readonly string[], places: Set<number>): ReadonlySet<number> {
  // Iterating a set also visits values that are added on the way.
  for (const place of places) if (steps[place]?.startsWith("*") === true) places.add(place + 1);
  return places;
}
