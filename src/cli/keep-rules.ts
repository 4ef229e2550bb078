/** The keep rules of a node with what each of them keeps, and what is kept without any rule. */

import type { ImageLimits } from "../model/limits.ts";
import type { KeepProblem, Snapshot } from "../model/snapshot.ts";
import { imageNames, matchPattern } from "../policy/keep-pattern.ts";
import { compileKeepRules, keepRuleMatches } from "../policy/keep.ts";
import { type SandboxNames, sandboxNames } from "../policy/sandbox-image.ts";
import type { KeepRulesReport, Protection } from "../report/table/keep.ts";

export function matchedRules(
  snapshot: Snapshot,
  limits: Pick<ImageLimits, "infraImages">,
): KeepRulesReport {
  const compiled = compileKeepRules(snapshot.keep.rules);
  const matches = keepRuleMatches(compiled, snapshot.images);
  const problems: readonly KeepProblem[] = [...snapshot.keep.problems, ...compiled.problems];
  return {
    rules: Array.from(matches, ([rule, images]) => ({ rule, images })),
    protections: protectionsOf(snapshot, limits),
    problems,
    matched: true,
  };
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

/** The runtime and its sandboxes mostly name the same one. */
const distinct = ({ patterns }: SandboxNames): SandboxNames["patterns"] =>
  patterns.filter(
    ({ by, text }, at) => patterns.findIndex((it) => it.by === by && it.text === text) === at,
  );
