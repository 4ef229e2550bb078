/** `crigc explain`: show the rules that apply to one image, container or sandbox, in the order they were tried. */

import type { Prepared } from "../../gc/prepare.ts";
import type { ImageLayers } from "../../model/disk-usage.ts";
import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import { indexImages, listedImages } from "../../policy/image/image-index.ts";
import { normaliseRepository, repositoryOf } from "../../policy/image/reference.ts";
import { gainOf, scaled } from "../../policy/layer/gain.ts";
import { forestOf } from "../../policy/layer/origins.ts";
import {
  explanationDocument,
  explanationTable,
  type ReferenceMatch,
} from "../../report/explanation.ts";
import { containerName, imageName, sandboxName } from "../../report/names.ts";
import { clean } from "../../report/terminal.ts";
import { command, has, option } from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../listing.ts";
import { shownNode, SNAPSHOT } from "../node-plan.ts";
import { ID_PREFIX_MIN } from "../selection.ts";

export const explain = command({
  name: "explain",
  summary: "show the rules that apply to one image, container or sandbox",
  doc: "Lists the rules in order of evaluation and marks the one that decides. REF is an ID or ID prefix, the tag, digest or repository of an image, the name of a container or pod, or a name as tables show it. With --compat kubelet, first seen and last used come from the ledger, and the decision is that of a kubelet that has just started. Exits 8 if REF matches nothing.",
  operands: [{ name: "REF", required: true, help: "an image, a container or a sandbox" }],
  options: [option("all-unused", "explain what gc --all-unused would do"), SNAPSHOT],
  json: true,
  readOnly: true,
  run: async (context) => {
    const [reference = ""] = context.operands;
    const prepared = await shownNode(context, {
      allLayers: true,
      purpose: { kind: has(context, "all-unused") ? "all-unused" : "periodic" },
    });
    const matches: readonly ReferenceMatch[] = resolveReference(prepared, reference);
    const report = {
      reference,
      observedAt: prepared.snapshot.observedAt,
      matches,
      layers: layersOf(prepared, matches),
      blocks: prepared.plan.images?.blocks ?? [],
    };
    if (matches.length === 0) {
      context.stderr(
        `crigc: unknown image, container or sandbox ${clean(reference)}; crigc images and crigc plan list them\n`,
      );
      return exit.unknown;
    }
    await print(context, {
      document: () => explanationDocument(report),
      table: (screen) => explanationTable(report, screen),
    });
    return exit.done;
  },
});

function layersOf(
  { snapshot, ledger }: Prepared,
  matches: readonly ReferenceMatch[],
): ReadonlyMap<ImageId, ImageLayers> {
  const forest = forestOf(snapshot.images, ledger);
  const gain = gainOf(ledger, snapshot.runtime);
  const sharersKnown = forest.isComplete;
  return new Map(
    matches.flatMap((match) => {
      if (match.kind !== "kept-image" && match.kind !== "candidate-image") return [];
      const { image } = match.kind === "kept-image" ? match.kept : match.candidate;
      const chain = forest.chainOf(image.id);
      const frees = forest.removals().remove(image.id);
      if (chain === null || frees === null) return [];
      return [[image.id, { chain, frees: scaled(frees, gain, { sharersKnown }) }] as const];
    }),
  );
}

/** Names as tables show them count, too. Exact names win over prefixes and repositories. */
export function resolveReference(
  { plan, snapshot }: Prepared,
  reference: string,
): readonly ReferenceMatch[] {
  const listed = listedImages(indexImages(snapshot.images), reference);
  const candidates = plan.images?.candidates ?? [];
  const ofImage = (image: Image, match: ReferenceMatch) => ({
    match,
    isExact: listed.includes(image.id) || imageName(image) === reference,
    isLoose: isIdPrefix(image.id, reference) || isRepository(image, reference),
  });
  const all = [
    ...candidates.map((candidate, index) => {
      const place = { place: index + 1, candidates: candidates.length };
      return ofImage(candidate.image, { kind: "candidate-image", candidate, ...place });
    }),
    ...(plan.images?.kept ?? []).map((kept) => ofImage(kept.image, { kind: "kept-image", kept })),
    ...(plan.containers?.containers ?? []).map((planned) => {
      const { id, name, podName } = planned.container;
      return {
        match: { kind: "container", planned } as const,
        isExact: [id, name, containerName(planned.container)].includes(reference),
        isLoose: isIdPrefix(id, reference) || [podName, `${podName}/${name}`].includes(reference),
      };
    }),
    ...(plan.containers?.sandboxes ?? []).map((planned) => {
      const { id, name } = planned.sandbox;
      return {
        match: { kind: "sandbox", planned } as const,
        isExact: [id, name, sandboxName(planned.sandbox)].includes(reference),
        isLoose: isIdPrefix(id, reference),
      };
    }),
  ];
  const exact = all.filter(({ isExact }) => isExact);
  const found = exact.length > 0 ? exact : all.filter(({ isLoose }) => isLoose);
  return found.map(({ match }) => match);
}

const isIdPrefix = (id: string, reference: string): boolean =>
  reference.replace(/^sha256:/, "").length >= ID_PREFIX_MIN &&
  (id.startsWith(reference) || id.startsWith(`sha256:${reference}`));

/** A name without tag or digest matches every image of its repository. */
function isRepository({ repoTags, repoDigests }: Image, reference: string): boolean {
  if (/[@]|:[^/]*$/.test(reference)) return false;
  const wanted = normaliseRepository(reference);
  return [...repoTags, ...repoDigests].some((name) => repositoryOf(name) === wanted);
}
