/** Keep rules, prepared for matching against all images of a node. */
import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord } from "../../model/ledger.ts";
import type { Image, KeepProblem, KeepRule } from "../../model/snapshot.ts";
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
  /** Rules whose repository has no wildcard, by repository: most rules are of this kind and cost one lookup. */
  readonly byRepository: ReadonlyMap<string, readonly CompiledRule[]>;
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
  const byRepository = new Map<string, CompiledRule[]>();
  const others: CompiledRule[] = [];
  const problems: KeepProblem[] = [];
  for (const [place, rule] of rules.entries()) {
    const parsed = parseKeepPattern(rule.pattern);
    if (parsed.kind === "invalid") {
      problems.push({ source: rule.source, message: parsed.message });
      continue;
    }
    const { pattern } = parsed;
    const literal = pattern.kind === "name" ? pattern.repository.literal : null;
    const compiled = { rule, pattern, place };
    if (literal === null) others.push(compiled);
    else byRepository.set(literal, [...(byRepository.get(literal) ?? []), compiled]);
  }
  return { byRepository, others, rules, problems };
}

/** The first matching rule, in order; `null` if none matches. */
export function matchKeepRules(compiled: CompiledKeepRules, image: Image): KeepMatch | null {
  const first = matches(compiled, imageNames(image))[0];
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
  const repositories = new Set(names.names.map(({ repository }) => repository));
  const near = [...repositories].flatMap(
    (repository) => compiled.byRepository.get(repository) ?? [],
  );
  const found: PlacedMatch[] = [];
  for (const { rule, pattern, place } of [...near, ...compiled.others]) {
    const name = matchPattern(pattern, names);
    if (name !== null) found.push({ rule, name, place });
  }
  return found.toSorted((a, b) => a.place - b.place);
}
