/** What names an image, and how: containers, their image volumes, sandboxes, manifests of static pods, and pods. */
import type { ContainerId } from "../../model/ids.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { Container, PodReading, Snapshot } from "../../model/snapshot.ts";

/** What the runtime reports about use, except the images. */
export type ClaimFacts = Pick<
  Snapshot,
  "containers" | "sandboxes" | "imageVolumes" | "sandboxImages"
>;

/** One user, and all its references to its image. Made each time: cached for a whole large node, they would take 5 MB. */
export type VisitClaim = (user: ImageUser, references: readonly string[]) => void;

export function forEachListedClaim(
  facts: ClaimFacts,
  without: ReadonlySet<ContainerId>,
  visit: VisitClaim,
): void {
  for (const container of facts.containers) {
    const { id, name, podName, state } = container;
    if (without.has(id)) continue;
    visit({ kind: "container", id, name, podName, state }, referencesOf(container));
    const volumes = facts.imageVolumes.get(id);
    if (volumes?.kind === "known")
      for (const reference of volumes.references)
        visit({ kind: "image-volume", id, name, podName }, [reference]);
  }
  for (const { id } of facts.sandboxes) {
    const reference = facts.sandboxImages.get(id) ?? "";
    if (reference !== "") visit({ kind: "sandbox", id }, [reference]);
  }
}

export function forEachPodClaim(pods: PodReading, visit: VisitClaim): void {
  for (const { path, fault, images } of pods.manifests ?? [])
    for (const image of images)
      visit({ kind: "static-pod", path, invalid: fault !== null }, [image]);
  // Only the kubelet's own list names images; other sources know only UIDs.
  if (pods.kind !== "ready" || pods.source !== "kubelet-api") return;
  for (const { uid, images } of pods.pods)
    for (const image of new Set(images))
      if (image !== "") visit({ kind: "pod-spec", uid }, [image]);
}

function referencesOf({ imageId, imageRef, imageName }: Container): readonly string[] {
  const references = imageId === "" ? [] : [imageId];
  if (imageRef !== "" && imageRef !== imageId) references.push(imageRef);
  if (imageName !== "" && imageName !== imageRef && imageName !== imageId)
    references.push(imageName);
  return references;
}

/** Of what the runtime lists: anybody may write a pod, so nothing that it names is unknown. */
export function subjectOf(
  user: Exclude<ImageUser, { readonly kind: "pod-spec" | "static-pod" }>,
): string {
  switch (user.kind) {
    case "container":
      return `container ${user.id} (${user.name})`;
    case "image-volume":
      return `image volume of container ${user.id} (${user.name})`;
    case "sandbox":
      return `sandbox ${user.id}`;
  }
}
