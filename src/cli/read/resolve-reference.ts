/** Finds the images, containers and sandboxes of a plan that a reference on the command line matches. */

import type { Prepared } from "../../loop/pass/prepare.ts";
import type { Image } from "../../model/snapshot.ts";
import { indexImages, listedImages } from "../../policy/image/image-index.ts";
import { normaliseRepository, repositoryOf } from "../../policy/image/reference.ts";
import type { ExplainedThing } from "../../report/table/explanation.ts";

/** Shorter prefixes match too much by accident. */
const ID_PREFIX_MIN = 4;

/** Exact names win over prefixes and repositories. */
export function thingsNamed(prepared: Prepared, reference: string): readonly ExplainedThing[] {
  const things = everything(prepared);
  const exact = things.filter((thing) => isExactly(prepared, thing, reference));
  return exact.length > 0 ? exact : things.filter((thing) => isLoosely(thing, reference));
}

function everything({ plan }: Prepared): readonly ExplainedThing[] {
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

function isExactly(prepared: Prepared, thing: ExplainedThing, reference: string): boolean {
  const image = imageOf(thing);
  if (image !== null) {
    return listedImages(indexImages(prepared.snapshot.images), reference).includes(image.id);
  }
  return thing.kind === "container"
    ? [thing.planned.container.id, thing.planned.container.name].includes(reference)
    : thing.kind === "sandbox" &&
        [thing.planned.sandbox.id, thing.planned.sandbox.name].includes(reference);
}

function isLoosely(thing: ExplainedThing, reference: string): boolean {
  const image = imageOf(thing);
  if (image !== null) return isIdPrefix(image.id, reference) || isRepository(image, reference);
  if (thing.kind === "container") {
    const { id, podName, name } = thing.planned.container;
    return isIdPrefix(id, reference) || [podName, `${podName}/${name}`].includes(reference);
  }
  return thing.kind === "sandbox" && isIdPrefix(thing.planned.sandbox.id, reference);
}

function imageOf(thing: ExplainedThing): Image | null {
  if (thing.kind === "kept-image") return thing.kept.image;
  return thing.kind === "candidate-image" ? thing.candidate.image : null;
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
