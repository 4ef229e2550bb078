/** Finds the images, containers and sandboxes of a plan that a reference on the command line matches. */

import type { Prepared } from "../../gc/prepare.ts";
import type { Image } from "../../model/snapshot.ts";
import { indexImages, listedImages } from "../../policy/image/image-index.ts";
import { normaliseRepository, repositoryOf } from "../../policy/image/reference.ts";
import { containerName, imageName, sandboxName } from "../../report/names.ts";
import type { ReferenceMatch } from "../../report/table/explanation.ts";

/** Shorter prefixes match too much by accident. */
export const ID_PREFIX_MIN = 6;

/** Names as tables show them count, too. Exact names win over prefixes and repositories. */
export function resolveReference(prepared: Prepared, reference: string): readonly ReferenceMatch[] {
  const matches = everything(prepared);
  const exact = matches.filter((match) => isExactly(prepared, match, reference));
  return exact.length > 0 ? exact : matches.filter((match) => isLoosely(match, reference));
}

function everything({ plan }: Prepared): readonly ReferenceMatch[] {
  const candidates = plan.images?.candidates ?? [];
  return [
    ...candidates.map((candidate, index) => ({
      kind: "candidate-image" as const,
      candidate,
      place: index + 1,
      candidates: candidates.length,
    })),
    ...(plan.images?.kept ?? []).map((kept) => ({ kind: "kept-image" as const, kept })),
    ...(plan.containers?.containers ?? []).map((planned) => ({
      kind: "container" as const,
      planned,
    })),
    ...(plan.containers?.sandboxes ?? []).map((planned) => ({ kind: "sandbox" as const, planned })),
  ];
}

function isExactly(prepared: Prepared, match: ReferenceMatch, reference: string): boolean {
  const image = imageOf(match);
  if (image !== null) {
    const listed = listedImages(indexImages(prepared.snapshot.images), reference);
    return listed.includes(image.id) || imageName(image) === reference;
  }
  if (match.kind === "container") {
    const { container } = match.planned;
    return [container.id, container.name, containerName(container)].includes(reference);
  }
  if (match.kind !== "sandbox") return false;
  const { sandbox } = match.planned;
  return [sandbox.id, sandbox.name, sandboxName(sandbox)].includes(reference);
}

function isLoosely(match: ReferenceMatch, reference: string): boolean {
  const image = imageOf(match);
  if (image !== null) return isIdPrefix(image.id, reference) || isRepository(image, reference);
  if (match.kind === "container") {
    const { id, podName, name } = match.planned.container;
    return isIdPrefix(id, reference) || [podName, `${podName}/${name}`].includes(reference);
  }
  return match.kind === "sandbox" && isIdPrefix(match.planned.sandbox.id, reference);
}

function imageOf(match: ReferenceMatch): Image | null {
  if (match.kind === "kept-image") return match.kept.image;
  return match.kind === "candidate-image" ? match.candidate.image : null;
}

const isIdPrefix = (id: string, reference: string): boolean =>
  reference.replace(/^sha256:/, "").length >= ID_PREFIX_MIN &&
  (id.startsWith(reference) || id.startsWith(`sha256:${reference}`));

/** A name without tag or digest matches every image of its repository. */
function isRepository(image: Image, reference: string): boolean {
  if (/[@]|:[^/]*$/.test(reference)) return false;
  const wanted = normaliseRepository(reference);
  return [...image.repoTags, ...image.repoDigests].some((name) => repositoryOf(name) === wanted);
}
