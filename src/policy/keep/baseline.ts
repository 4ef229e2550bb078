/** Compares the baselines with the images of the node. */
import type { ImageId } from "../../model/ids.ts";
import { type Baseline, type BaselineGap, isMissing } from "../../model/reports.ts";
import type { Image, KeepRule, Snapshot } from "../../model/snapshot.ts";
import { indexImages, listedImages } from "../image/image-index.ts";
import { parseKeepPattern } from "./keep-pattern.ts";
import { compileKeepRules, keepRuleMatches } from "./keep.ts";

/**
 * `null` while a keep file is invalid: what the baselines name is unknown then. Former names of an image do not count:
 * a pod asks for the name.
 */
export function baselineOf(
  { images, keep, runtime }: Pick<Snapshot, "images" | "keep" | "runtime">,
  infraImages: readonly string[],
): Baseline | null {
  if (keep.problems.length > 0) return null;
  const groups = groupsOf(keep.rules);
  const platforms = Map.groupBy(
    keep.rules.filter((rule) => rule.platformOf !== undefined && isBaselineRule(rule)),
    ({ platformOf }) => platformOf,
  );
  const sandbox = [
    ...runtime.sandboxImages.map((pattern) => ({ pattern, source: runtime.name })),
    ...infraImages.map((pattern) => ({ pattern, source: "--pod-infra-container-image" })),
  ].filter(({ pattern }) => parseKeepPattern(pattern).kind === "valid");
  const node = presence([...groups.flat(), ...[...platforms.values()].flat(), ...sandbox], images);
  const isAbsent = (rule: KeepRule): boolean =>
    [rule, ...(platforms.get(rule.pattern) ?? [])].every(node.lacks);
  const starters = new Set(sandbox.filter(node.lacks).map(({ pattern }) => pattern));
  const isStarter = ({ pattern }: KeepRule): boolean => starters.has(pattern);
  const gaps = groups.flatMap((group): readonly BaselineGap[] => {
    const absent = group.filter(isAbsent);
    const [first] = absent;
    const kind = first === group[0] ? "missing" : "name-missing";
    if (first !== undefined)
      return [gapOf(absent.some(isStarter) ? "sandbox-image" : kind, first, absent)];
    return group
      .filter(node.unpinned)
      .map((rule) => ({ ...gapOf("unpinned", rule, group), patterns: [rule.pattern] }));
  });
  const named = new Set(gaps.flatMap(({ patterns }) => patterns));
  const others = sandbox
    .filter((it) => isStarter(it) && !named.has(it.pattern))
    .map((rule) => gapOf("sandbox-image", rule, [rule]));
  const missing = gaps.filter(isMissing).length;
  return {
    images: groups.length,
    present: groups.length - missing,
    missing: missing + others.length,
    gaps: [...gaps, ...others],
  };
}

/** Lines of `baseline.list`, or of a list whose name ends so. */
const BASELINE = /(.*baseline\.list):(\d+)$/;
const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

export const isBaselineRule = ({ source }: KeepRule): boolean => BASELINE.test(source);

/**
 * The rules of each image: `keep baseline` writes its ID, then its names. Any other line stands alone. Of an archive for
 * several platforms a node has one image: the lines of the others are left out.
 */
function groupsOf(rules: readonly KeepRule[]): readonly (readonly [KeepRule, ...KeepRule[]])[] {
  const groups: [KeepRule, ...KeepRule[]][] = [];
  let group: [KeepRule, ...KeepRule[]] | null = null;
  let next: string | null = null;
  for (const rule of rules) {
    const place = BASELINE.exec(rule.source);
    if (place === null || rule.lease !== undefined || rule.platformOf !== undefined) continue;
    const [, file, line] = place;
    if (group !== null && rule.source === next && !ID.test(rule.pattern)) group.push(rule);
    else groups.push((group = [rule]));
    next = ID.test(group[0].pattern) ? `${file}:${Number(line) + 1}` : null;
  }
  return groups;
}

/**
 * A node that has everything is compared by the index of its images. Only lines that this does not find are matched against
 * each image, and those with a digest, which the index finds under any name.
 */
function presence(rules: readonly KeepRule[], images: readonly Image[]) {
  const index = indexImages(images);
  const idsOf = ({ pattern }: KeepRule): readonly ImageId[] =>
    pattern.includes("@") ? [] : listedImages(index, pattern);
  const unlisted = rules.filter((rule) => idsOf(rule).length === 0);
  const matched =
    unlisted.length === 0 ? null : keepRuleMatches(compileKeepRules(unlisted), images);
  const pinned = new Set(images.filter((image) => image.pinned).map(({ id }) => id));
  return {
    lacks: (rule: KeepRule): boolean => matched?.get(rule)?.length === 0,
    unpinned: (rule: KeepRule): boolean =>
      rule.pinned === true &&
      !(matched?.get(rule)?.map(({ id }) => id) ?? idsOf(rule)).some((id) => pinned.has(id)),
  };
}

const gapOf = (
  kind: BaselineGap["kind"],
  first: KeepRule,
  lines: readonly KeepRule[],
): BaselineGap => ({
  kind,
  name: (lines.find(({ pattern }) => !ID.test(pattern)) ?? first).pattern,
  patterns: lines.map(({ pattern }) => pattern),
  source: first.source,
});
