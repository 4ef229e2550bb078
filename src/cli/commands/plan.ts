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
import { snapshotText } from "../../report/snapshot.ts";
import { containerName, imageName, sandboxName, wholeImageName } from "../../report/words.ts";
import { command, type CommandContext, DOCUMENT, LIST, operand } from "../command.ts";
import { exit, planExit } from "../exit.ts";
import { planNode } from "../node-plan.ts";
import { print } from "../output.ts";
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
    context.stdout(
      snapshotText({
        snapshot: prepared.snapshot,
        ledger: prepared.ledger,
        hostName: context.open.hostName(context.env),
        plan: planDocument(prepared),
        configuration: answerOf(context.config).document,
        history: historyDocument(readHistory(store, { limit: RECENT_PASSES }).report),
      }),
    );
  },
});

const RECENT_PASSES = 50;

export const explain = command({
  name: "explain",
  inAgent: true,
  summary: "show the rules that apply to one image, container or sandbox",
  doc: "REF is an ID or ID prefix, an image's tag, digest or repository, the name of a container or pod, or the end of a name if it is the only one. Of what was removed, shows when and why. Exits 8 if nothing matches.",
  operands: [operand("REF", "an image, a container or a sandbox", { completes: "image" })],
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
  const found = store
    .removals({ results: ["removed", "already-gone"] })
    .filter(({ subject, names }) => matchOf(subject, names, reference) !== null);
  return [...Map.groupBy(found, ({ subject }) => subject).values()].flatMap(([newest]) =>
    newest === undefined ? [] : [newest],
  );
}

/**
 * Names as tables show them count, too. Exact names win over prefixes and repositories, these over ends of names.
 * Throws `ConfigError` if several names end so.
 */
function thingsCalled(prepared: Prepared, reference: string): readonly Thing[] {
  const { plan: planned, snapshot: seen } = prepared;
  const listed = listedImages(indexImages(seen.images), reference);
  const freed = freedBy(prepared);
  const candidates = planned.images?.candidates ?? [];
  const ofImage = (image: Image) => ({
    name: imageName(image),
    match: listed.includes(image.id)
      ? ("exact" as const)
      : matchOf(image.id, [imageName(image), ...image.repoTags, ...image.repoDigests], reference),
  });
  const all: readonly Named[] = [
    ...candidates.map((candidate, index) => ({
      ...ofImage(candidate.image),
      explained: () => {
        const at = { place: index + 1, candidates: candidates.length };
        return candidateThing(candidate, at, freed(candidate.image.id));
      },
    })),
    ...(planned.images?.kept ?? []).map((kept) => ({
      ...ofImage(kept.image),
      explained: () => keptThing(kept, freed(kept.image.id)),
    })),
    ...(planned.containers?.containers ?? []).map((one) => {
      const { id, name, podName } = one.container;
      const shown = containerName(one.container);
      const match = matchOf(id, [name, shown], reference);
      return {
        name: shown,
        match: match ?? ([podName, `${podName}/${name}`].includes(reference) ? "loose" : null),
        explained: () => containerThing(one),
      } as const;
    }),
    ...(planned.containers?.sandboxes ?? []).map((one) => ({
      name: sandboxName(one.sandbox),
      match: matchOf(one.sandbox.id, [one.sandbox.name, sandboxName(one.sandbox)], reference),
      explained: () => sandboxThing(one),
    })),
  ];
  const found = (["exact", "loose", "end"] as const)
    .map((wanted) => all.filter(({ match }) => match === wanted))
    .find((some) => some.length > 0);
  if (found === undefined) return [];
  if (found[0]?.match === "end" && found.length > 1)
    throw usageError(
      "crigc explain",
      reference,
      `${quoted(reference)} ends ${found.length} names: ${found.map(({ name }) => name).join(", ")}; use one of them`,
    );
  return found.map(({ explained }) => explained());
}

type Match = "exact" | "loose" | "end";

interface Named {
  readonly name: string;
  readonly match: Match | null;
  readonly explained: () => Thing;
}

/** `loose`: an ID prefix or a repository. `end`: the last components of a name, with or without its tag. */
function matchOf(id: string, names: readonly string[], reference: string): Match | null {
  if (id === reference || names.includes(reference)) return "exact";
  if (isIdPrefix(id, reference) || isRepository(names, reference)) return "loose";
  const ends = names.some((name) =>
    [name, repositoryOf(name)].some((it) => it?.endsWith(`/${reference}`) === true),
  );
  return ends ? "end" : null;
}

/** What the removal of an image alone would free; `null`: unknown. */
function freedBy({ snapshot: { images }, ledger }: Prepared) {
  const layers = layersOf(images, ledger);
  return (id: ImageId): bigint | null => layers.removals().remove(id);
}

/** A name without tag or digest matches every image of its repository. */
function isRepository(names: readonly string[], reference: string): boolean {
  if (/[@]|:[^/]*$/.test(reference)) return false;
  const wanted = normaliseRepository(reference);
  return names.some((name) => repositoryOf(name) === wanted);
}
