/** The rules that keep an image, in order. The first that applies decides. */
import type { ImageId } from "../../model/ids.ts";
import type { ImageLimits } from "../../model/limits.ts";
import type { ImageKeepReason, ImageUser } from "../../model/reason.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import { type Duration, duration, type TotalUptime, uptimeSince } from "../../model/time.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import {
  type CompiledKeepRules,
  type KeepPattern,
  matchKeepRules,
  matchPattern,
  parseKeepPattern,
} from "../keep/keep.ts";
import { AGE_RESTART_MAX } from "../remember.ts";
import type { Ranked, RepositoryPlace } from "./rank.ts";
import { imageNames, isImportName, repositoryOf } from "./reference.ts";

export interface ProtectionContext {
  readonly limits: ImageLimits;
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** Images whose only users are containers that the same plan removes first. */
  readonly released: ReadonlySet<ImageId>;
  readonly keep: CompiledKeepRules;
  readonly sandbox: readonly SandboxName[];
  readonly places: () => ReadonlyMap<ImageId, RepositoryPlace>;
  /** The selection of a removal by hand; `null`: no limit. */
  readonly selected: ReadonlySet<ImageId> | null;
  readonly totalUptime: TotalUptime;
  /** When the minimum age of all images restarted. */
  readonly ageRestartedUptime: TotalUptime | null;
}

export interface Protection {
  /** `null`: nothing keeps the image. */
  readonly reason: ImageKeepReason | null;
  /** Codes of the rules that were evaluated, in order, the deciding one last. */
  readonly tried: readonly ImageKeepReason["kind"][];
}

export interface Rule {
  readonly code: ImageKeepReason["kind"];
  readonly judge: (subject: Ranked, context: ProtectionContext) => ImageKeepReason | null;
  /** Whether the rule is in force; if not, it is not reported as tried. Absent: always. */
  readonly isInForce?: (context: ProtectionContext) => boolean;
}

const RULES: readonly Rule[] = [
  {
    code: "not-selected",
    judge: ({ image }, { selected }) =>
      selected?.has(image.id) === false ? { kind: "not-selected" } : null,
    isInForce: ({ selected }) => selected !== null,
  },
  { code: "in-use", judge: inUse },
  { code: "pinned", judge: ({ image }) => (image.pinned ? { kind: "pinned" } : null) },
  { code: "sandbox-image", judge: ({ image }, { sandbox }) => sandboxImageReason(sandbox, image) },
  { code: "keep-rule", judge: keptByRule },
  {
    code: "keep-loaded",
    judge: ({ image }) => (isLoaded(image) ? { kind: "keep-loaded" } : null),
    isInForce: ({ limits }) => limits.keepLoaded,
  },
  {
    code: "keep-per-repository",
    judge: recentInRepository,
    isInForce: ({ limits }) => limits.keepPerRepository > 0,
  },
];

const AGE_RULES: readonly Rule[] = [{ code: "too-young", judge: tooYoung }];

/** Every code in the order of evaluation, for documentation; layers are judged last, for all candidates together. */
export const PROTECTION_ORDER: readonly ImageKeepReason["kind"][] = [
  ...RULES.map(({ code }) => code),
  "just-used",
  "too-young",
  "shares-all-layers",
];

/** `ageRules`: those that come last. */
export function protectionOf(
  subject: Ranked,
  context: ProtectionContext,
  ageRules = AGE_RULES,
): Protection {
  const tried: ImageKeepReason["kind"][] = [];
  for (const { code, judge, isInForce } of [...RULES, ...ageRules]) {
    if (isInForce?.(context) === false) continue;
    tried.push(code);
    const reason = judge(subject, context);
    if (reason !== null) return { reason, tried };
  }
  return { reason: null, tried };
}

function inUse({ image }: Ranked, { users }: ProtectionContext): ImageKeepReason | null {
  const those = users.get(image.id);
  return those === undefined ? null : { kind: "in-use", users: those };
}

function keptByRule({ image }: Ranked, { keep }: ProtectionContext): ImageKeepReason | null {
  const match = matchKeepRules(keep, image);
  if (match === null) return null;
  const { pattern, source } = match.rule;
  return { kind: "keep-rule", pattern, source, name: match.name };
}

/** Whether it was loaded from an archive: no repository digest, or only ones that containerd invents on import. */
export function isLoaded({ repoDigests }: Pick<Image, "repoDigests">): boolean {
  return repoDigests.every((text) => {
    const repository = repositoryOf(text);
    return repository === null || isImportName(repository);
  });
}

function recentInRepository(
  { image }: Ranked,
  { places, limits }: ProtectionContext,
): ImageKeepReason | null {
  const place = places().get(image.id);
  if (place === undefined || place.place > limits.keepPerRepository) return null;
  return { kind: "keep-per-repository", ...place, limit: limits.keepPerRepository };
}

function tooYoung({ record }: Ranked, context: ProtectionContext): ImageKeepReason | null {
  const { minimumAge } = context.limits;
  const ageSince = (since: TotalUptime): Duration =>
    duration(atLeastZero(uptimeSince(context.totalUptime, since)));
  const restarts = [record.ageRestartedUptime, context.ageRestartedUptime];
  for (const restart of restarts) {
    if (restart === null || restart <= record.firstSeenUptime) continue;
    const least = duration(smaller(minimumAge, AGE_RESTART_MAX));
    const age = ageSince(restart);
    if (age < least) return { kind: "too-young", age, minimumAge: least, restarted: true };
  }
  const age = ageSince(record.firstSeenUptime);
  return age < minimumAge ? { kind: "too-young", age, minimumAge } : null;
}

/** Repositories of pause images: upstream, its mirrors, and those with the architecture in their name. */
export const PAUSE_PATTERNS: readonly string[] = ["**/pause", "**/pause-*", "**/*mirrored-pause*"];

/** A name of the sandbox image, which no container names and without which no pod starts. */
export interface SandboxName {
  readonly by: Extract<ImageKeepReason, { readonly kind: "sandbox-image" }>["by"];
  /** As written. */
  readonly text: string;
  readonly pattern: KeepPattern;
}

/** On this node: by the runtime, the flag, the built-in patterns. */
export function sandboxNames(
  { runtime }: Pick<Snapshot, "runtime">,
  infraImages: readonly string[],
): readonly SandboxName[] {
  const named = {
    runtime: runtime.sandboxImages,
    flag: infraImages,
    pattern: PAUSE_PATTERNS,
  };
  // An invalid name names no image; an empty one is how runtimes say that there is none.
  return (["runtime", "flag", "pattern"] as const).flatMap((by) =>
    named[by].flatMap((text) => {
      const parsed = parseKeepPattern(text);
      return parsed.kind === "valid" ? [{ by, text, pattern: parsed.pattern }] : [];
    }),
  );
}

/** `null`: it is not the sandbox image. A name without a tag matches every tag, to keep too much rather than too little. */
export function sandboxImageReason(
  names: readonly SandboxName[],
  image: Image,
): ImageKeepReason | null {
  for (const { by, pattern } of names) {
    const name = matchPattern(pattern, imageNames(image));
    if (name !== null) return { kind: "sandbox-image", by, name };
  }
  return null;
}
