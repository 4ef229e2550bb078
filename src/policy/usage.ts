/** Which images are in use and by whom, as the union of everything that can name an image; and what could not be told. */
import type { ContainerId, ImageId, PodUid } from "../model/ids.ts";
import type { ImageUser } from "../model/reason.ts";
import type { Container, Snapshot } from "../model/snapshot.ts";
import { type ImageIndex, indexImages, listedImages } from "./image-index.ts";
import { imageVolumesSupported } from "./image-volumes.ts";
import { parseReference } from "./reference.ts";

/** The facts that say what is in use. */
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

export interface Unknown {
  /** `container ID (NAME)`, `sandbox ID`, `pod UID`. */
  readonly subject: string;
  readonly message: string;
}

export interface Usage {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** Not empty: what is in use is not known, so no image may go. */
  readonly unknown: readonly Unknown[];
}

/**
 * Judges use. Containers count in every state. A reference that the runtime does not know uses nothing; one whose
 * resolution failed, or was never asked for, leaves usage unknown. Containers in `without` are left out: a plan judges
 * images as if the containers that it removes first were gone.
 */
export function usageOf(facts: UsageFacts, without: ReadonlySet<ContainerId> = new Set()): Usage {
  const index = indexImages(facts.images);
  const users = new Map<ImageId, ImageUser[]>();
  const unknown: Unknown[] = [];
  for (const claim of claimsOf(facts, without)) {
    const found = new Set<ImageId>();
    let unusable = 0;
    for (const reference of claim.references) {
      const resolved = resolve(facts, index, reference);
      for (const id of resolved.ids) found.add(id);
      if (resolved.kind === "failed")
        unknown.push({ subject: claim.subject, message: resolved.message });
      if (resolved.kind === "unusable") unusable += 1;
    }
    // Every word for the image is missing or none that a runtime could be asked about.
    if (unusable === claim.references.length && claim.mustResolve) {
      unknown.push({ subject: claim.subject, message: "names no image that can be looked up" });
    }
    for (const id of found) {
      const those = users.get(id);
      if (those === undefined) users.set(id, [claim.user]);
      else those.push(claim.user);
    }
  }
  unknown.push(...unknownVolumes(facts, without));
  return { users, unknown };
}

/** References that no listed image carries, sorted: observation asks `ImageStatus` for those. */
export function referencesToResolve(facts: Omit<UsageFacts, "resolutions">): readonly string[] {
  const index = indexImages(facts.images);
  const wanted = new Set<string>();
  for (const claim of claimsOf(facts, new Set())) {
    for (const reference of claim.references) {
      if (listedImages(index, reference).size === 0 && parseReference(reference) !== null)
        wanted.add(reference);
    }
  }
  return [...wanted].toSorted();
}

/** One user with all the words by which it names its image. */
interface Claim {
  readonly user: ImageUser;
  readonly subject: string;
  readonly references: readonly string[];
  /** A container certainly has an image; a sandbox may have none. */
  readonly mustResolve: boolean;
}

type ClaimFacts = Omit<UsageFacts, "resolutions">;

function claimsOf(facts: ClaimFacts, without: ReadonlySet<ContainerId>): readonly Claim[] {
  const containers = facts.containers.filter((container) => !without.has(container.id));
  return [
    ...containers.map(containerClaim),
    ...containers.flatMap((container) => volumeClaims(facts, container)),
    ...sandboxClaims(facts),
    ...podClaims(facts),
  ];
}

function containerClaim(container: Container): Claim {
  const { id, name, podName, state } = container;
  const words = [container.imageId, container.imageRef, container.imageName];
  return {
    user: { kind: "container", id, name, podName, state },
    subject: subjectOf(container),
    references: [...new Set(words.filter((word) => word !== ""))],
    mustResolve: true,
  };
}

function volumeClaims(facts: ClaimFacts, container: Container): readonly Claim[] {
  const volumes = facts.imageVolumes.get(container.id);
  if (volumes?.kind !== "known") return [];
  const { id, name, podName } = container;
  return volumes.references.map((reference) => ({
    user: { kind: "image-volume", id, name, podName },
    subject: `image volume of ${subjectOf(container)}`,
    references: [reference],
    mustResolve: true,
  }));
}

function sandboxClaims(facts: ClaimFacts): readonly Claim[] {
  return facts.sandboxes.flatMap(({ id }) => {
    const reference = facts.sandboxImages.get(id) ?? "";
    if (reference === "") return [];
    return [
      {
        user: { kind: "sandbox", id },
        subject: `sandbox ${id}`,
        references: [reference],
        mustResolve: false,
      },
    ];
  });
}

/** Only the kubelet's own list names images; the other sources know pods by their UID alone. */
function podClaims(facts: ClaimFacts): readonly Claim[] {
  const { pods } = facts;
  if (pods.kind !== "ready" || pods.source !== "kubelet-api") return [];
  return pods.pods.flatMap(({ uid, images }) =>
    [...new Set(images)].map((image) => podClaim(uid, image)),
  );
}

const podClaim = (uid: PodUid, image: string): Claim => ({
  user: { kind: "pod-spec", uid },
  subject: `pod ${uid}`,
  references: image === "" ? [] : [image],
  mustResolve: false,
});

interface Resolved {
  readonly kind: "resolved" | "absent" | "failed" | "unusable";
  readonly ids: Iterable<ImageId>;
  readonly message: string;
}

function resolve(facts: UsageFacts, index: ImageIndex, reference: string): Resolved {
  const listed = listedImages(index, reference);
  if (listed.size > 0) return { kind: "resolved", ids: listed, message: "" };
  const answer = facts.resolutions.get(reference);
  if (answer === undefined) {
    // What is no reference was never asked: no listed image can be meant by it.
    if (parseReference(reference) === null) return { kind: "unusable", ids: [], message: "" };
    return { kind: "failed", ids: [], message: `"${reference}" was not resolved` };
  }
  switch (answer.kind) {
    case "image":
      return { kind: "resolved", ids: [answer.id], message: "" };
    case "absent":
      return { kind: "absent", ids: [], message: "" };
    case "unknown":
      return {
        kind: "failed",
        ids: [],
        message: `"${reference}" could not be resolved: ${answer.message}`,
      };
  }
}

function unknownVolumes(facts: UsageFacts, without: ReadonlySet<ContainerId>): readonly Unknown[] {
  if (!imageVolumesSupported(facts.runtime)) return [];
  return facts.containers.flatMap((container) => {
    if (without.has(container.id)) return [];
    const volumes = facts.imageVolumes.get(container.id);
    if (volumes !== undefined && volumes.kind !== "unknown") return [];
    const why = volumes?.message ?? "its status was not read";
    return [{ subject: subjectOf(container), message: `its image volumes are unknown: ${why}` }];
  });
}

const subjectOf = (container: Container): string => `container ${container.id} (${container.name})`;
