/** The rules that keep an image, in order. The first that applies decides. */
import type { ImageId } from "../../model/ids.ts";
import type { ImageLimits } from "../../model/limits.ts";
import type { ImageKeepReason, ImageUser } from "../../model/reason.ts";
import type { Image } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  type Instant,
  type Watched,
  watchedSince,
} from "../../model/time.ts";
import { type CompiledKeepRules, matchKeepRules, withEarlierNames } from "../keep/keep.ts";
import { NONE_TRIED, triedWith } from "../tried.ts";
import { AGE_RESTART_MAX } from "../watch.ts";
import type { Ranked } from "./rank.ts";
import { isImportName, repositoryOf } from "./reference.ts";
import type { RepositoryPlace } from "./repositories.ts";
import { sandboxImageReason, type SandboxNames } from "./sandbox-image.ts";

export interface ProtectionContext {
  readonly limits: ImageLimits;
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** Images whose only users are containers that the same plan removes first. */
  readonly released: ReadonlySet<ImageId>;
  readonly keep: CompiledKeepRules;
  /** Tags of listed images: if an earlier name's tag has moved on, the name only shows the repository. */
  readonly tags: ReadonlySet<string>;
  readonly sandbox: SandboxNames;
  readonly places: ReadonlyMap<ImageId, RepositoryPlace>;
  /** The selection of a removal by hand; `null`: no limit. */
  readonly selected: ReadonlySet<ImageId> | null;
  readonly now: Instant;
  readonly watched: Watched;
  /** When the minimum age of all images restarted. */
  readonly ageRestartedWatched: Watched | null;
}

export interface Protection {
  /** `null`: nothing keeps the image. */
  readonly reason: ImageKeepReason | null;
  /** Codes of the rules that were evaluated, in order, the deciding one last. */
  readonly tried: readonly ImageKeepReason["kind"][];
}

/** `age`: removal for age, to which the kubelet's minimum age does not apply. */
export type RemovalFor = "age" | "any";

interface Rule {
  readonly code: ImageKeepReason["kind"];
  readonly applies: (subject: Ranked, context: ProtectionContext) => ImageKeepReason | null;
  /** If set, the rule applies only where this returns true. */
  readonly only?: (context: ProtectionContext, purpose: RemovalFor) => boolean;
}

const RULES: readonly Rule[] = [
  {
    code: "not-selected",
    applies: ({ image }, { selected }) =>
      selected?.has(image.id) === false ? { kind: "not-selected" } : null,
    only: ({ selected }) => selected !== null,
  },
  { code: "in-use", applies: inUse },
  { code: "pinned", applies: ({ image }) => (image.pinned ? { kind: "pinned" } : null) },
  {
    code: "sandbox-image",
    applies: ({ image }, { sandbox }) => sandboxImageReason(sandbox, image),
  },
  { code: "keep-rule", applies: keptByRule },
  { code: "keep-loaded", applies: loaded, only: ({ limits }) => limits.keepLoaded },
  {
    code: "keep-per-repository",
    applies: recentInRepository,
    only: ({ limits }) => limits.keepPerRepository > 0,
  },
  { code: "ghost", applies: ghost },
  {
    code: "just-used",
    applies: justUsed,
    only: (context, purpose) => isKubelet(context) && purpose !== "age",
  },
  {
    code: "too-young",
    applies: tooYoung,
    only: (context, purpose) => !isKubelet(context) || purpose !== "age",
  },
];

/** Every code in the order of evaluation, for documentation; layers are judged last, for all candidates together. */
export const PROTECTION_ORDER: readonly ImageKeepReason["kind"][] = [
  ...RULES.map(({ code }) => code),
  "shares-all-layers",
];

export function protectionOf(
  subject: Ranked,
  context: ProtectionContext,
  purpose: RemovalFor = "any",
): Protection {
  let tried: Protection["tried"] = NONE_TRIED;
  for (const { code, applies, only } of RULES) {
    if (only !== undefined && !only(context, purpose)) continue;
    tried = triedWith(tried, code);
    const reason = applies(subject, context);
    if (reason !== null) return { reason, tried };
  }
  return { reason: null, tried };
}

function inUse({ image }: Ranked, { users }: ProtectionContext): ImageKeepReason | null {
  const those = users.get(image.id);
  return those === undefined ? null : { kind: "in-use", users: those };
}

function keptByRule(
  { image, record }: Ranked,
  { keep, tags }: ProtectionContext,
): ImageKeepReason | null {
  const match = matchKeepRules(keep, image);
  if (match !== null) return { kind: "keep-rule", ...match.rule, name: match.name };
  const before = withEarlierNames(image, record, tags);
  const earlier = before === null ? null : matchKeepRules(keep, before);
  return earlier === null
    ? null
    : { kind: "keep-rule", ...earlier.rule, name: earlier.name, earlier: true };
}

function loaded({ image }: Ranked): ImageKeepReason | null {
  return isLoaded(image) ? { kind: "keep-loaded" } : null;
}

/** Whether it was loaded from an archive: no repository digest, or only ones that containerd invents on import. */
export function isLoaded(image: Image): boolean {
  return image.repoDigests.every((text) => {
    const repository = repositoryOf(text);
    return repository === null || isImportName(repository);
  });
}

function recentInRepository(
  { image }: Ranked,
  { places, limits }: ProtectionContext,
): ImageKeepReason | null {
  const place = places.get(image.id);
  if (place === undefined || place.place > limits.keepPerRepository) return null;
  return { kind: "keep-per-repository", ...place, limit: limits.keepPerRepository };
}

function ghost({ record }: Ranked, { watched }: ProtectionContext): ImageKeepReason | null {
  if (record.ghost === null) return null;
  const { since, attempts, isFinal, retryWatched } = record.ghost;
  return isFinal || watched < retryWatched ? { kind: "ghost", since, attempts, isFinal } : null;
}

/** The kubelet skips images used at or after the start of its pass, even if nothing uses them any more. */
function justUsed(
  { image, record }: Ranked,
  { now, watched, released }: ProtectionContext,
): ImageKeepReason | null {
  // The pass after its removal would not have seen the use by a container that this plan removes.
  if (record.lastUsedAt === null || record.lastUsedAt < now || released.has(image.id)) return null;
  // By a wall clock that was set back, a use of hours ago lies in the future.
  return (record.lastUsedWatched ?? watched) < watched ? null : { kind: "just-used" };
}

function tooYoung({ record }: Ranked, context: ProtectionContext): ImageKeepReason | null {
  const { minimumAge } = context.limits;
  const ageSince = (since: Watched): Duration => {
    const span = watchedSince(context.watched, since);
    return span > 0n ? span : duration(0n);
  };
  const restarts = [record.ageRestartedWatched, context.ageRestartedWatched];
  for (const restart of restarts) {
    if (restart === null || restart < record.firstSeenWatched) continue;
    const least = minimumAge < AGE_RESTART_MAX ? minimumAge : AGE_RESTART_MAX;
    const age = ageSince(restart);
    if (age < least) return { kind: "too-young", age, minimumAge: least, restarted: true };
  }
  const age = ageSince(record.firstSeenWatched);
  return age < minimumAge ? { kind: "too-young", age, minimumAge } : null;
}

const isKubelet = ({ limits }: ProtectionContext): boolean => limits.compat === "kubelet";
