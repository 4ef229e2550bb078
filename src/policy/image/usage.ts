/** Which images are in use and by what, as the union of all ways to name an image; and which uses are unknown. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { PodReading, Snapshot } from "../../model/snapshot.ts";
import { byObject, byParts } from "../by-object.ts";
import {
  type ClaimFacts,
  forEachListedClaim,
  forEachPodClaim,
  subjectOf,
  type VisitClaim,
} from "./claims.ts";
import { type ImageIndex, indexImages, listedImages } from "./image-index.ts";
import { imageVolumesSupported } from "./image-volumes.ts";
import { possibleImages } from "./possible-images.ts";
import { fullReference } from "./reference.ts";

/** The facts that determine use. */
export type UsageFacts = Pick<
  Snapshot,
  | "runtime"
  | "images"
  | "containers"
  | "sandboxes"
  | "imageVolumes"
  | "resolutions"
  | "sandboxImages"
  | "pods"
>;

/** Those from the runtime's lists. */
type Lists = ClaimFacts & Pick<UsageFacts, "images" | "resolutions">;

export interface Unknown {
  /** `container ID (NAME)`, `sandbox ID`, `pod UID`. */
  readonly subject: string;
  readonly message: string;
}

export interface Usage {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** If not empty, what is in use is unknown, and no image may be removed. */
  readonly unknown: readonly Unknown[];
}

/**
 * Determines use. Containers count in every state. A reference that the runtime does not know uses only what it could
 * mean. If its resolution failed, or was never requested, usage is unknown, unless only a pod names it: anybody may
 * write that, so it uses what it could mean. Containers in `without` do not count: a plan judges images as if the
 * containers that it removes first were removed.
 */
export function usageOf(facts: UsageFacts, without: ReadonlySet<ContainerId> = NONE): Usage {
  return without.size === 0
    ? wholeUsage(facts)
    : withPods(judgeLists(facts, without, imageVolumesSupported(facts.runtime)), facts);
}

const NONE: ReadonlySet<ContainerId> = new Set();

/** A snapshot is judged more than once: for the ledger, for the plan and for each removal. */
const wholeUsage = byObject((facts: UsageFacts): Usage => {
  const { containers, images, sandboxes, imageVolumes, sandboxImages, resolutions } = facts;
  const volumesCount = imageVolumesSupported(facts.runtime);
  const lists = { containers, images, sandboxes, imageVolumes, sandboxImages, resolutions };
  return withPods(usageOfLists({ ...lists, volumesCount }), facts);
});

/** The lists of the next look are mostly the same. */
const usageOfLists = byParts(({ volumesCount, ...lists }: Lists & { volumesCount: boolean }) =>
  judgeLists(lists, NONE, volumesCount),
);

function judgeLists(facts: Lists, without: ReadonlySet<ContainerId>, volumesCount: boolean): Usage {
  const users = new Map<ImageId, ImageUser[]>();
  const unknown: Unknown[] = [];
  const index = indexImages(facts.images);
  const judging = { facts, index, resolved: new Map(), possible: new Map(), unknown };
  forEachListedClaim(facts, without, (user, references) => {
    for (const id of usedBy(user, references, judging)) {
      const those = users.get(id);
      if (those === undefined) users.set(id, [user]);
      else those.push(user);
    }
  });
  if (volumesCount) unknown.push(...unknownVolumes(facts, without));
  return { users, unknown };
}

/** Adds what pods use: they are read each time, and mostly name few images or none. */
function withPods(listed: Usage, facts: UsageFacts): Usage {
  const unknown = [...unreadManifests(facts.pods)];
  const index = indexImages(facts.images);
  const judging = { facts, index, resolved: new Map(), possible: new Map(), unknown };
  const more = new Map<ImageId, ImageUser[]>();
  forEachPodClaim(facts.pods, (user, references) => {
    for (const id of usedBy(user, references, judging)) {
      const those = more.get(id);
      if (those === undefined) more.set(id, [...(listed.users.get(id) ?? []), user]);
      else those.push(user);
    }
  });
  return {
    users: more.size === 0 ? listed.users : new Map([...listed.users, ...more]),
    unknown: unknown.length === 0 ? listed.unknown : [...listed.unknown, ...unknown],
  };
}

const usedBy = (
  user: ImageUser,
  references: readonly string[],
  judging: Judging,
): Iterable<ImageId> =>
  listedAlone(references, judging.index) ?? imagesOf(user, references, judging);

/** The usual claim: one name, as listed. */
function listedAlone(
  references: readonly string[],
  { byText }: ImageIndex,
): readonly ImageId[] | undefined {
  const [only] = references;
  return only === undefined || references.length > 1 ? undefined : byText.get(only);
}

/** Names to look up with `ImageStatus`, sorted: full names that no listed image has. */
export function referencesToResolve(facts: Omit<UsageFacts, "resolutions">): readonly string[] {
  const { containers, images, sandboxes, imageVolumes, sandboxImages, pods } = facts;
  const listed = unlistedOfLists({ containers, images, sandboxes, imageVolumes, sandboxImages });
  const ofPods = unlistedNames(images, (visit) => forEachPodClaim(pods, visit));
  return ofPods.length === 0 ? listed : [...new Set([...listed, ...ofPods])].toSorted();
}

const unlistedOfLists = byParts((lists: Omit<Lists, "resolutions">) =>
  unlistedNames(lists.images, (visit) => forEachListedClaim(lists, NONE, visit)),
);

function unlistedNames(
  images: UsageFacts["images"],
  claims: (visit: VisitClaim) => void,
): readonly string[] {
  const index = indexImages(images);
  const unlisted = new Set<string>();
  claims((_, references) => {
    for (const reference of references) if (!index.byText.has(reference)) unlisted.add(reference);
  });
  const names = [...unlisted].flatMap((reference) =>
    listedImages(index, reference).length > 0 ? [] : (fullReference(reference) ?? []),
  );
  return [...new Set(names)].toSorted();
}

interface Judging {
  readonly facts: Pick<UsageFacts, "images" | "resolutions">;
  readonly index: ImageIndex;
  /** Resolved references, because many claims name the same image. */
  readonly resolved: Map<string, Resolved>;
  readonly possible: Map<Resolved, ReadonlySet<ImageId>>;
  /** Collects what could not be determined. */
  readonly unknown: Unknown[];
}

function imagesOf(
  user: ImageUser,
  references: readonly string[],
  judging: Judging,
): Iterable<ImageId> {
  const { unknown } = judging;
  const resolved = references.map((reference) => resolve(reference, judging));
  const isPod = user.kind === "pod-spec" || user.kind === "static-pod";
  for (const { message } of resolved)
    if (message !== null && !isPod) unknown.push({ subject: subjectOf(user), message });
  // Every reference to the image is missing, or unusable for a lookup.
  // A container certainly has an image; a sandbox may have none.
  const mustResolve = user.kind === "container" || user.kind === "image-volume";
  if (mustResolve && resolved.every(({ kind }) => kind === "unusable"))
    unknown.push({ subject: subjectOf(user), message: "names no image that can be looked up" });
  const [first] = resolved;
  if (first !== undefined && resolved.every(({ ids }) => ids === first.ids || ids.length === 0)) {
    if (first.ids.length > 0) return first.ids;
  }
  const found = new Set(resolved.flatMap(({ ids }) => ids));
  if (found.size > 0) return found;
  return resolved.flatMap((one) => [...couldMean(one, isPod, judging)]);
}

/** Separate for pods and others: a pod never uses the beginning of an ID. */
function couldMean(
  resolved: Resolved,
  isPod: boolean,
  { facts, possible }: Judging,
): ReadonlySet<ImageId> {
  const before = isPod ? undefined : possible.get(resolved);
  if (before !== undefined) return before;
  const { reference, message } = resolved;
  const doubt = { failed: message !== null, mayBeId: !isPod };
  const images = possibleImages(facts.images, reference, doubt);
  if (!isPod) possible.set(resolved, images);
  return images;
}

interface Resolved {
  /** `unusable`: not a reference, so no lookup was made, and no listed image can be meant. */
  readonly kind: "resolved" | "absent" | "failed" | "unusable";
  readonly reference: string;
  readonly ids: readonly ImageId[];
  /** Why the resolution failed. */
  readonly message: string | null;
}

function resolve(reference: string, { facts, index, resolved }: Judging): Resolved {
  const before = resolved.get(reference);
  if (before !== undefined) return before;
  const now = resolveAnew(reference, facts, index);
  resolved.set(reference, now);
  return now;
}

function resolveAnew(reference: string, facts: Judging["facts"], index: ImageIndex): Resolved {
  const listed = listedImages(index, reference);
  if (listed.length > 0) return { kind: "resolved", reference, ids: listed, message: null };
  const name = fullReference(reference);
  if (name === null) return { kind: "unusable", reference, ids: [], message: null };
  const answer = facts.resolutions.get(name);
  switch (answer?.kind) {
    case "image":
      return { kind: "resolved", reference, ids: [answer.id], message: null };
    case "absent":
      return { kind: "absent", reference, ids: [], message: null };
    case "unknown":
      return {
        kind: "failed",
        reference,
        ids: [],
        message: `cannot resolve "${reference}": ${answer.message}`,
      };
    case undefined:
      return { kind: "failed", reference, ids: [], message: `"${reference}" was not resolved` };
  }
}

function unknownVolumes(facts: Lists, without: ReadonlySet<ContainerId>): readonly Unknown[] {
  const unknown: Unknown[] = [];
  for (const container of facts.containers) {
    if (without.has(container.id)) continue;
    const volumes = facts.imageVolumes.get(container.id);
    if (volumes !== undefined && volumes.kind !== "unknown") continue;
    const why = volumes?.message ?? "its status was not read";
    unknown.push({
      subject: subjectOf({ kind: "container", ...container }),
      message: `its image volumes are unknown: ${why}`,
    });
  }
  return unknown;
}

/** A manifest that cannot be read may name any image. */
const unreadManifests = (pods: PodReading): readonly Unknown[] =>
  (pods.manifests ?? []).flatMap(({ path, fault }) =>
    fault?.kind === "unreadable"
      ? [{ subject: `static pod ${path}`, message: `cannot read its manifest: ${fault.message}` }]
      : [],
  );
