/** `crigc plan`, `crigc explain` and `crigc snapshot`: what `gc` would remove now, why, and the node as one document. */

import { quoted } from "../../config/words.ts";
import { unmeasuredIn } from "../../gc/observe.ts";
import type { Prepared } from "../../gc/prepare.ts";
import { usageError } from "../../model/errors.ts";
import type { Removal } from "../../model/history.ts";
import type { ImageId } from "../../model/ids.ts";
import type { Image } from "../../model/snapshot.ts";
import {
  indexImages,
  listedImages,
  normaliseRepository,
  repositoryOf,
} from "../../policy/image/reference.ts";
import { layersOf } from "../../policy/layers.ts";
import { jsonPieces } from "../../report/document.ts";
import {
  candidateThing,
  containerThing,
  explanationDocument,
  explanationTable,
  keptThing,
  sandboxThing,
  type Thing,
} from "../../report/explanation.ts";
import { historyDocument } from "../../report/history.ts";
import { planDocument, planTable } from "../../report/plan.ts";
import { snapshotDocument } from "../../report/snapshot.ts";
import { containerName, imageName, sandboxName, wholeImageName } from "../../report/words.ts";
import {
  command,
  type CommandContext,
  DOCUMENT,
  LIST,
  operand,
  print,
  printPieces,
} from "../command.ts";
import { exit, planExit } from "../exit.ts";
import { imagesOf, planNode } from "../node-plan.ts";
import { forced, isIdPrefix, selectedBy, SELECTION_OPTIONS } from "../selection.ts";
import { answerOf } from "./agent.ts";
import { readHistory } from "./history.ts";

export const plan = command({
  name: "plan",
  inAgent: true,
  summary: "show what gc would remove now, what it would keep, and why",
  doc: "gc removes in the order shown until enough is free, and nothing else. Records nothing. Before the first gc or run, plans as if every image were old enough, and says so. -o name prints only the candidates.",
  options: SELECTION_OPTIONS,
  formats: LIST,
  run: async (context) => {
    const prepared = await planNode(context, {
      ...selectedBy(context),
      config: forced(context.config, context),
      isFirstLook: true,
    });
    await print(context, {
      document: planDocument(prepared),
      table: planTable,
      rows: ({ images }) =>
        [...(images?.candidates ?? [])].map((it) => ({ id: it.id, name: wholeImageName(it) })),
    });
    const isMeasured = unmeasuredIn(prepared.snapshot) === null;
    return planExit(prepared.plan) ?? (isMeasured ? exit.done : exit.runtime);
  },
});

export const snapshot = command({
  name: "snapshot",
  inAgent: true,
  summary: "write node, plan, configuration and history as one document",
  doc: "For bug reports. Contains names of the host, images, containers and pods; no content of containers or logs.",
  formats: ["json"],
  run: async (context) => {
    const prepared = await planNode(context, { allLayers: true });
    const store = context.open.state(context.config);
    const document = snapshotDocument({
      ...prepared,
      hostName: context.open.hostName(context.env),
      configuration: answerOf(context.config).document,
      history: historyDocument(readHistory(store.history(), { limit: RECENT_PASSES }).report),
    });
    await printPieces(context, jsonPieces(document));
  },
});

const RECENT_PASSES = 50;

export const explain = command({
  name: "explain",
  inAgent: true,
  summary: "show the rules that apply to one image, container or sandbox",
  doc: "REF is an ID or its first 6 or more digits, an image's tag, digest or repository, the name of a container or pod, or the end of a name if it is the only one. Of what was removed, shows when and why. Exits 8 if nothing matches.",
  operands: [operand("REF", "an image, a container or a sandbox", { completes: "images" })],
  formats: DOCUMENT,
  run: async (context) => {
    const [reference = ""] = context.operands;
    const prepared = await planNode(context, {
      allLayers: true,
      isFirstLook: true,
    });
    const things = thingsCalled(prepared, reference);
    const removed = things.length === 0 ? removalsOf(context, reference) : [];
    if (removed === null) return exit.internal;
    if (things.length + removed.length === 0) {
      context.note(
        `unknown image, container or sandbox ${reference}; crigc images and crigc plan list them, crigc history what was removed`,
      );
      return exit.unknown;
    }
    const { observedAt } = prepared.snapshot;
    const blocks = prepared.plan.images?.blocks ?? [];
    await print(context, {
      document: explanationDocument({ reference, observedAt, blocks, things, removed }),
      table: explanationTable,
    });
    return exit.done;
  },
});

/** The newest removal of each match in the history, newest first; `null`: the history cannot be read. */
function removalsOf(context: CommandContext, reference: string): readonly Removal[] | null {
  const store = context.open.state(context.config);
  if (store.failure !== null) return null;
  const removals = store
    .history()
    .removals.filter(({ result }) => result === "removed" || result === "already-gone")
    .map((removal) => ({ id: removal.subject, names: removal.names, removal }));
  const found = new Map(calledSo(removals, reference).map(({ id, removal }) => [id, removal]));
  return [...found.values()].toReversed();
}

function thingsCalled(prepared: Prepared, reference: string): readonly Thing[] {
  const { plan: planned, snapshot: seen } = prepared;
  const listed = listedImages(indexImages(seen.images), reference);
  const layers = layersOf(seen.images, prepared.ledger);
  const freed = (id: ImageId): bigint | null => layers.removals().remove(id);
  const { candidates, kept } = imagesOf(planned);
  const ofImage = (image: Image) => ({
    id: image.id,
    names: [
      imageName(image),
      ...image.repoTags,
      ...image.repoDigests,
      // Spelt otherwise.
      ...(listed.includes(image.id) ? [reference] : []),
    ],
  });
  const { containers = [], sandboxes = [] } = planned.containers ?? {};
  const all: readonly (Named & { readonly explained: () => Thing })[] = [
    ...candidates.map((candidate, index) => ({
      ...ofImage(candidate.image),
      explained: () =>
        candidateThing(candidate, [index + 1, candidates.length], freed(candidate.image.id)),
    })),
    ...kept.map((one) => ({
      ...ofImage(one.image),
      explained: () => keptThing(one, freed(one.image.id)),
    })),
    ...containers.map((one) => ({
      id: one.container.id,
      names: [containerName(one.container), one.container.name],
      explained: () => containerThing(one),
    })),
    ...sandboxes.map((one) => ({
      id: one.sandbox.id,
      names: [sandboxName(one.sandbox), one.sandbox.name],
      explained: () => sandboxThing(one),
    })),
  ];
  return calledSo(all, reference).map(({ explained }) => explained());
}

interface Named {
  readonly id: string;
  /** The first is shown. */
  readonly names: readonly string[];
}

/**
 * Exact names win over ID prefixes, repositories and ends of names. Throws `ConfigError` if several names or repositories
 * fit, whichever name of an image is shown.
 */
function calledSo<One extends Named>(all: readonly One[], reference: string): readonly One[] {
  const exact = all.filter(({ id, names }) => [id, ...names].includes(reference));
  if (exact.length > 0) return exact;
  const repository = normaliseRepository(reference);
  const fitting = new Set<string>();
  const found = all.filter(({ id, names }) => {
    const fit = isIdPrefix(id, reference)
      ? reference
      : names
          .flatMap((name) => [name, repositoryOf(name)])
          .find((it) => it === repository || it?.endsWith(`/${reference}`));
    if (typeof fit !== "string") return false;
    fitting.add(fit);
    return true;
  });
  if (fitting.size <= 1) return found;
  const fits = `fits ${fitting.size} names: ${[...fitting].join(", ")}; use one of them`;
  throw usageError("crigc explain", reference, `${quoted(reference)} ${fits}`);
}
