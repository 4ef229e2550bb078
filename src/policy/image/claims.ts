/** What names an image, and how: containers, their image volumes, sandboxes, manifests of static pods, and pods. */
import type { ContainerId, PodUid, SandboxId } from "../../model/ids.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { Container, Manifest, PodReading, Snapshot } from "../../model/snapshot.ts";

/** What the runtime reports about use, except the images. */
export type ClaimFacts = Pick<
  Snapshot,
  "containers" | "sandboxes" | "imageVolumes" | "sandboxImages"
>;

/** One user, with all its references to its image. */
export interface Claim {
  readonly user: ImageUser;
  readonly subject: () => string;
  readonly references: readonly string[];
  /** A container certainly has an image; a sandbox may have none. */
  readonly mustResolve: boolean;
}

export function forEachListedClaim(
  facts: ClaimFacts,
  without: ReadonlySet<ContainerId>,
  visit: (claim: Claim) => void,
): void {
  for (const container of facts.containers) {
    if (without.has(container.id)) continue;
    visit(containerClaim(container));
    const volumes = facts.imageVolumes.get(container.id);
    if (volumes?.kind === "known")
      for (const reference of volumes.references) visit(volumeClaim(container, reference));
  }
  for (const { id } of facts.sandboxes) {
    const reference = facts.sandboxImages.get(id) ?? "";
    if (reference !== "") visit(sandboxClaim(id, reference));
  }
}

export function forEachPodClaim(pods: PodReading, visit: (claim: Claim) => void): void {
  for (const manifest of pods.manifests ?? [])
    for (const image of manifest.images) visit(manifestClaim(manifest, image));
  // Only the kubelet's own list names images; other sources know only UIDs.
  if (pods.kind !== "ready" || pods.source !== "kubelet-api") return;
  for (const { uid, images } of pods.pods)
    for (const image of new Set(images)) if (image !== "") visit(podClaim(uid, image));
}

/** Computed each time: cached for a whole large node, claims would take 5 MB. */
function containerClaim(container: Container): Claim {
  const { id, name, podName, state, imageId, imageRef, imageName } = container;
  const references = imageId === "" ? [] : [imageId];
  if (imageRef !== "" && imageRef !== imageId) references.push(imageRef);
  if (imageName !== "" && imageName !== imageRef && imageName !== imageId)
    references.push(imageName);
  return {
    user: { kind: "container", id, name, podName, state },
    subject: () => subjectOf(container),
    references,
    mustResolve: true,
  };
}

function volumeClaim(container: Container, reference: string): Claim {
  const { id, name, podName } = container;
  return {
    user: { kind: "image-volume", id, name, podName },
    subject: () => `image volume of ${subjectOf(container)}`,
    references: [reference],
    mustResolve: true,
  };
}

const sandboxClaim = (id: SandboxId, reference: string): Claim => ({
  user: { kind: "sandbox", id },
  subject: () => `sandbox ${id}`,
  references: [reference],
  mustResolve: false,
});

const podClaim = (uid: PodUid, image: string): Claim => ({
  user: { kind: "pod-spec", uid },
  subject: () => `pod ${uid}`,
  references: [image],
  mustResolve: false,
});

const manifestClaim = ({ path, fault }: Manifest, image: string): Claim => ({
  user: { kind: "static-pod", path, invalid: fault !== null },
  subject: () => `static pod ${path}`,
  references: [image],
  mustResolve: false,
});

export const subjectOf = (container: Container): string =>
  `container ${container.id} (${container.name})`;
