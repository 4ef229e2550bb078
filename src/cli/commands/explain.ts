/** `crigc explain`: show the rules that apply to one image, container or sandbox, in the order they were tried. */

import type { Prepared } from "../../gc/prepare.ts";
import type { ImageLayers } from "../../model/disk-usage.ts";
import type { ImageId } from "../../model/ids.ts";
import { gainOf, scaled } from "../../policy/layer/gain.ts";
import { forestOf } from "../../policy/layer/origins.ts";
import {
  explanationDocument,
  explanationTable,
  type ReferenceMatch,
} from "../../report/table/explanation.ts";
import { clean } from "../../report/terminal.ts";
import { command, has, option } from "../command.ts";
import { exit } from "../exit.ts";
import { printAnswer } from "../read/listing.ts";
import { shownNode, SNAPSHOT } from "../read/node-plan.ts";
import { resolveReference } from "../read/resolve-reference.ts";

export const explain = command({
  name: "explain",
  summary: "show the rules that apply to one image, container or sandbox",
  doc: "Lists the rules in order of evaluation and marks the one that decides. REF is an ID or ID prefix, the tag, digest or repository of an image, the name of a container or pod, or a name as tables show it. With --compat kubelet, first seen and last used come from the ledger, and the decision is that of a kubelet that has just started. Exits 8 if REF matches nothing.",
  operands: [{ name: "REF", required: true, help: "an image, a container or a sandbox" }],
  options: [option("all-unused", "explain what gc --all-unused would do"), SNAPSHOT],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const [reference = ""] = invocation.operands;
    const prepared = await shownNode(context, invocation, {
      allLayers: true,
      purpose: { kind: has(invocation, "all-unused") ? "all-unused" : "periodic" },
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
    const document = explanationDocument;
    printAnswer(context, invocation, { report, document, table: explanationTable });
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
  const images = matches.flatMap((match) =>
    match.kind === "kept-image"
      ? [match.kept.image]
      : match.kind === "candidate-image"
        ? [match.candidate.image]
        : [],
  );
  return new Map(
    images.flatMap((image) => {
      const chain = forest.chainOf(image.id);
      const frees = forest.removals().remove(image.id);
      if (chain === null || frees === null) return [];
      return [[image.id, { chain, frees: scaled(frees, gain, { sharersKnown }) }] as const];
    }),
  );
}
