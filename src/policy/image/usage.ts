/** Which images are in use and by what, as the union of all ways to name an image; and which uses are unknown. */
import { mountsImages } from "../../cri/runtimes.ts";
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { Container, PodReading, Snapshot } from "../../model/snapshot.ts";
import { byParts } from "../by-object.ts";
import {
  fullReference,
  type ImageIndex,
  indexImages,
  listedImages,
  possibleImages,
  union,
} from "./reference.ts";

/** The facts that determine use. */
export type UsageFacts = Pick<
  Snapshot,
  "runtime" | "images" | "containers" | "imageVolumes" | "resolutions" | "pods"
>;

export interface Unknown {
  /** `container ID (NAME)`, `pod UID`. */
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
export const usageOf = (
  facts: UsageFacts,
  without: ReadonlySet<ContainerId> = new Set(),
): Usage => {
  const { containers, imageVolumes, images, resolutions } = facts;
  const parts = { containers, imageVolumes, images, resolutions };
  const hasVolumes = mountsImages(facts.runtime);
  const all = { ...parts, hasVolumes, podClaims: podClaims(facts.pods) };
  return without.size === 0 ? wholeUsage(all) : findUsage(all, without);
};

interface UsageParts extends Omit<UsageFacts, "runtime" | "pods"> {
  readonly hasVolumes: boolean;
  readonly podClaims: readonly Claim[];
}

/** The same lists are judged for the ledger and for the plan, and by the next pass if nothing changed. */
const wholeUsage = byParts((parts: UsageParts): Usage => findUsage(parts, new Set()));

function findUsage(parts: UsageParts, without: ReadonlySet<ContainerId>): Usage {
  const users = new Map<ImageId, ImageUser[]>();
  const resolver = new Resolver(parts);
  const count = ({ user, references }: Claim): void => {
    if ("name" in user && without.has(user.id)) return;
    for (const id of resolver.imagesOf(user, references)) {
      const those = users.get(id);
      if (those === undefined) users.set(id, [user]);
      else those.push(user);
    }
  };
  for (const claims of [runtimeClaims(parts), parts.podClaims]) claims.forEach(count);
  const volumes = parts.hasVolumes ? unknownVolumes(parts, without) : [];
  return { users, unknown: [...resolver.unknown, ...volumes] };
}

/** Names to look up with `ImageStatus`, sorted: full names that no listed image has. */
export function referencesToResolve(facts: Omit<UsageFacts, "resolutions">): readonly string[] {
  const index = indexImages(facts.images);
  const names = new Set<string>();
  const claims = [...runtimeClaims(facts), ...podClaims(facts.pods)];
  for (const reference of new Set(claims.flatMap(({ references }) => references))) {
    const isListed = listedImages(index, reference).length > 0;
    const name = isListed ? null : fullReference(reference);
    if (name !== null) names.add(name);
  }
  return [...names].toSorted();
}

/** One user, and all its references to its image. */
interface Claim {
  readonly user: ImageUser;
  readonly references: readonly string[];
}

type RuntimeLists = Pick<UsageFacts, "containers" | "imageVolumes">;

/** What names an image in the runtime: containers and their image volumes. */
const runtimeClaims = ({ containers, imageVolumes }: RuntimeLists) =>
  claimsOfLists({ containers, imageVolumes });

/** A pass that removes images lists again and again, and finds the same containers. */
const claimsOfLists = byParts((lists: RuntimeLists): readonly Claim[] => {
  const claims: Claim[] = [];
  for (const container of lists.containers) {
    const { id, name, podName, state } = container;
    const user: ImageUser = { kind: "container", id, name, podName, state };
    claims.push({ user, references: referencesOf(container) });
    const volumes = lists.imageVolumes.get(id);
    if (volumes?.kind === "known")
      for (const reference of volumes.references)
        claims.push({
          user: { kind: "image-volume", id, name, podName },
          references: [reference],
        });
  }
  return claims;
});

/** Mostly there are none. */
const NO_CLAIMS: readonly Claim[] = [];

/** What the specifications of the kubelet's pods name. */
function podClaims({ specs }: PodReading): readonly Claim[] {
  const pods = specs?.pods ?? [];
  if (pods.length === 0) return NO_CLAIMS;
  return pods.flatMap(({ uid, images }) => {
    const user: ImageUser = { kind: "pod-spec", uid };
    return images.map((image) => ({ user, references: [image] }));
  });
}

const referencesOf = ({ imageId, imageRef, imageName }: Container): readonly string[] =>
  [imageId, imageRef, imageName].filter(
    (reference, index, all) => reference !== "" && all.indexOf(reference) === index,
  );

interface Resolved {
  readonly ids: readonly ImageId[];
  /** Why the resolution failed. */
  readonly message: string | null;
}

/** Resolves each reference once: many claims name the same image. */
class Resolver {
  /** What could not be determined. */
  readonly unknown: Unknown[] = [];
  readonly #facts: Pick<UsageFacts, "images" | "resolutions">;
  readonly #index: ImageIndex;
  readonly #resolved = new Map<string, Resolved | null>();
  readonly #possible = new Map<string, ReadonlySet<ImageId>>();

  constructor(facts: Pick<UsageFacts, "images" | "resolutions">) {
    this.#facts = facts;
    this.#index = indexImages(facts.images);
  }

  imagesOf(user: ImageUser, references: readonly string[]): Iterable<ImageId> {
    const resolved = references.flatMap((reference) => this.#resolve(reference) ?? []);
    if (user.kind !== "pod-spec") {
      const subject = subjectOf(user);
      for (const { message } of resolved)
        if (message !== null) this.unknown.push({ subject, message });
      // Every reference to the image is missing, or unusable for a lookup.
      if (resolved.length === 0)
        this.unknown.push({ subject, message: "names no image that can be looked up" });
    }
    const found = resolved.map(({ ids }) => ids).reduce(union, []);
    if (found.length > 0) return found;
    return references.flatMap((reference) => [...this.#couldMean(user, reference)]);
  }

  #couldMean({ kind }: ImageUser, reference: string): ReadonlySet<ImageId> {
    // A pod never uses the beginning of an ID.
    const mayBeId = kind !== "pod-spec";
    const key = `${mayBeId} ${reference}`;
    const before = this.#possible.get(key);
    if (before !== undefined) return before;
    const failed = (this.#resolve(reference)?.message ?? null) !== null;
    const images = possibleImages(this.#facts.images, reference, { failed, mayBeId });
    this.#possible.set(key, images);
    return images;
  }

  /** `null`: not a valid reference, so it was not looked up and matches no listed image. */
  #resolve(reference: string): Resolved | null {
    const before = this.#resolved.get(reference);
    if (before !== undefined) return before;
    const listed = listedImages(this.#index, reference);
    const now = listed.length > 0 ? { ids: listed, message: null } : this.#lookedUp(reference);
    this.#resolved.set(reference, now);
    return now;
  }

  #lookedUp(reference: string): Resolved | null {
    const name = fullReference(reference);
    if (name === null) return null;
    const answer = this.#facts.resolutions.get(name);
    if (answer?.kind === "image") return { ids: [answer.id], message: null };
    if (answer?.kind === "absent") return { ids: [], message: null };
    const why =
      answer === undefined
        ? `"${reference}" was not resolved`
        : `cannot resolve "${reference}": ${answer.message}`;
    return { ids: [], message: why };
  }
}

/** Of what the runtime lists: anybody may write a pod, so nothing that it names is unknown. */
function subjectOf(user: Exclude<ImageUser, { readonly kind: "pod-spec" }>): string {
  switch (user.kind) {
    case "container":
      return `container ${user.id} (${user.name})`;
    case "image-volume":
      return `image volume of container ${user.id} (${user.name})`;
  }
}

function unknownVolumes(
  { containers, imageVolumes }: Pick<UsageFacts, "containers" | "imageVolumes">,
  without: ReadonlySet<ContainerId>,
): readonly Unknown[] {
  return containers.flatMap((container) => {
    const volumes = imageVolumes.get(container.id);
    if (without.has(container.id) || (volumes !== undefined && volumes.kind !== "unknown"))
      return [];
    const why = volumes?.message ?? "its status was not read";
    const subject = subjectOf({ kind: "container", ...container });
    return [{ subject, message: `its image volumes are unknown: ${why}` }];
  });
}
