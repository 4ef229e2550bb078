/** Which images are in use and by whom, as the union of everything that can name an image; and what could not be told. */
import type { ContainerId, ImageId, PodUid, SandboxId } from "../../model/ids.ts";
import type { ImageUser } from "../../model/reason.ts";
import type { Container, Manifest, Snapshot } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";
import { type ImageIndex, indexImages, listedImages } from "./image-index.ts";
import { imageVolumesSupported } from "./image-volumes.ts";
import { possibleImages } from "./possible-images.ts";
import { fullReference } from "./reference.ts";

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
 * Judges use. Containers count in every state. A reference that the runtime does not know uses nothing but what it could
 * mean; one whose resolution failed, or was never asked for, leaves usage unknown, unless it is only a pod that names it:
 * anybody may write that, so it uses what it could mean. Containers in `without` are left out: a plan judges images as if
 * the containers that it removes first were gone.
 */
export function usageOf(facts: UsageFacts, without: ReadonlySet<ContainerId> = NONE): Usage {
  return without.size === 0 ? wholeUsage(facts) : judgeUsage(facts, without);
}

const NONE: ReadonlySet<ContainerId> = new Set();

/** A look is judged more than once: for the ledger, for the plan and for each removal. */
const wholeUsage = byObject((facts: UsageFacts) => judgeUsage(facts, NONE));

function judgeUsage(facts: UsageFacts, without: ReadonlySet<ContainerId>): Usage {
  const users = new Map<ImageId, ImageUser[]>();
  const unknown: Unknown[] = [];
  const index = indexImages(facts.images);
  const judging = { facts, index, resolved: new Map(), possible: new Map(), unknown };
  forEachClaim(facts, without, (claim) => {
    for (const id of listedAlone(claim.references, index) ?? imagesOf(claim, judging)) {
      const those = users.get(id);
      if (those === undefined) users.set(id, [claim.user]);
      else those.push(claim.user);
    }
  });
  unknown.push(...unknownVolumes(facts, without), ...unreadManifests(facts));
  return { users, unknown };
}

/** What nearly every claim says: one name of an image as it is listed. */
function listedAlone(
  references: readonly string[],
  { byText }: ImageIndex,
): readonly ImageId[] | undefined {
  const [only] = references;
  return only === undefined || references.length > 1 ? undefined : byText.get(only);
}

/** Names by which observation asks `ImageStatus`, sorted: full names of those that no listed image carries. */
export function referencesToResolve(facts: Omit<UsageFacts, "resolutions">): readonly string[] {
  const index = indexImages(facts.images);
  const unlisted = new Set<string>();
  forEachClaim(facts, NONE, ({ references }) => {
    for (const reference of references) if (!index.byText.has(reference)) unlisted.add(reference);
  });
  const names = [...unlisted].flatMap((reference) =>
    listedImages(index, reference).length > 0 ? [] : (fullReference(reference) ?? []),
  );
  return [...new Set(names)].toSorted();
}

/** One user with all the words by which it names its image. */
interface Claim {
  readonly user: ImageUser;
  readonly subject: () => string;
  readonly references: readonly string[];
  /** A container certainly has an image; a sandbox may have none. */
  readonly mustResolve: boolean;
}

type ClaimFacts = Omit<UsageFacts, "resolutions">;

function forEachClaim(
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
  const { pods } = facts;
  for (const manifest of pods.manifests ?? [])
    for (const image of manifest.images) visit(manifestClaim(manifest, image));
  // Only the kubelet's own list names images; the other sources know pods by their UID alone.
  if (pods.kind !== "ready" || pods.source !== "kubelet-api") return;
  for (const { uid, images } of pods.pods)
    for (const image of new Set(images)) if (image !== "") visit(podClaim(uid, image));
}

const containerClaim = byObject((container: Container): Claim => {
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
});

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

interface Judging {
  readonly facts: UsageFacts;
  readonly index: ImageIndex;
  /** What was resolved before: many claims name the same image. */
  readonly resolved: Map<string, Resolved>;
  readonly possible: Map<Resolved, ReadonlySet<ImageId>>;
  /** What could not be told is added here. */
  readonly unknown: Unknown[];
}

/** The images that a claim uses. */
function imagesOf(claim: Claim, judging: Judging): Iterable<ImageId> {
  const { unknown } = judging;
  const resolved = claim.references.map((reference) => resolve(reference, judging));
  const isPod = claim.user.kind === "pod-spec" || claim.user.kind === "static-pod";
  for (const { message } of resolved)
    if (message !== null && !isPod) unknown.push({ subject: claim.subject(), message });
  // Every word for the image is missing or none that a runtime could be asked about.
  if (claim.mustResolve && resolved.every(({ kind }) => kind === "unusable"))
    unknown.push({ subject: claim.subject(), message: "names no image that can be looked up" });
  const [first] = resolved;
  if (first !== undefined && resolved.every(({ ids }) => ids === first.ids || ids.length === 0)) {
    if (first.ids.length > 0) return first.ids;
  }
  const found = new Set(resolved.flatMap(({ ids }) => ids));
  if (found.size > 0) return found;
  return resolved.flatMap((one) => [...couldMean(one, isPod, judging)]);
}

/** Of pods and others apart: a pod never writes the beginning of an ID. */
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
  /** `unusable`: no reference, so that nobody was asked: no listed image can be meant by it. */
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

function resolveAnew(reference: string, facts: UsageFacts, index: ImageIndex): Resolved {
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
        message: `"${reference}" could not be resolved: ${answer.message}`,
      };
    case undefined:
      return { kind: "failed", reference, ids: [], message: `"${reference}" was not resolved` };
  }
}

function unknownVolumes(facts: UsageFacts, without: ReadonlySet<ContainerId>): readonly Unknown[] {
  if (!imageVolumesSupported(facts.runtime)) return [];
  const unknown: Unknown[] = [];
  for (const container of facts.containers) {
    if (without.has(container.id)) continue;
    const volumes = facts.imageVolumes.get(container.id);
    if (volumes !== undefined && volumes.kind !== "unknown") continue;
    const why = volumes?.message ?? "its status was not read";
    unknown.push({
      subject: subjectOf(container),
      message: `its image volumes are unknown: ${why}`,
    });
  }
  return unknown;
}

/** What the kubelet is about to run from a file that cannot be read, nobody knows. */
const unreadManifests = ({ pods }: ClaimFacts): readonly Unknown[] =>
  (pods.manifests ?? []).flatMap(({ path, fault }) =>
    fault?.kind === "unreadable"
      ? [{ subject: `static pod ${path}`, message: `cannot read its manifest: ${fault.message}` }]
      : [],
  );

const subjectOf = (container: Container): string => `container ${container.id} (${container.name})`;
