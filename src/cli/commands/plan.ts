/** `crigc plan`, `crigc explain` and `crigc snapshot`: what `gc` would remove now, why, and the node to plan from elsewhere. */

import type { Prepared } from "../../gc/prepare.ts";
import type { ImageLayers } from "../../model/disk-usage.ts";
import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord } from "../../model/ledger.ts";
import type { Image } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { traceLines } from "../../model/trace.ts";
import { compared } from "../../model/values.ts";
import { indexImages, listedImages } from "../../policy/image/image-index.ts";
import { normaliseRepository, repositoryOf } from "../../policy/image/reference.ts";
import { forestOf } from "../../policy/layer/origins.ts";
import { gainOf, scaled } from "../../policy/space/freed.ts";
import {
  explanationDocument,
  explanationTable,
  type ReferenceMatch,
} from "../../report/explanation.ts";
import { containerName, imageName, sandboxName, wholeImageName } from "../../report/names.ts";
import { planTable } from "../../report/plan-table.ts";
import { type ImageOrder, planDocument } from "../../report/plan.ts";
import {
  command,
  type CommandContext,
  has,
  LIST,
  operand,
  option,
  TABLE_OR_JSON,
  textOf,
} from "../command.ts";
import { exit, planExit } from "../exit.ts";
import { planNode, shownNode, SNAPSHOT } from "../node-plan.ts";
import { ALL_OPTION, LIST_OPTIONS, print, sortOption } from "../output.ts";
import { recordedTrace } from "../recorded-trace.ts";
import { forced, ID_PREFIX_MIN, selectedBy, SELECTION_OPTIONS } from "../selection.ts";
import { durationFrom, valueOf } from "../values.ts";

export const plan = command({
  name: "plan",
  summary: "show what gc would remove now, what it would keep, and why",
  doc: "gc removes a prefix of the order shown, as long as measurement requires, and nothing else. -q and -o name print only the candidates.",
  options: [
    ...SELECTION_OPTIONS,
    ...LIST_OPTIONS,
    sortOption(["order", "size", "name", "unused"]),
    ALL_OPTION,
    option("assume-seen DURATION", "plan as if images had been first seen this much earlier"),
    SNAPSHOT,
  ],
  formats: LIST,
  run: async (context) => {
    const prepared = await planNode(context, {
      ...selectedBy(context),
      config: forced(context.config, context),
      assumeSeen: valueOf(context, "assume-seen", durationFrom(0n, "90s, 15m, 24h or 7d")),
    });
    const { snapshot } = prepared;
    const sorted = ORDERS[textOf(context, "sort") ?? "order"];
    const report = {
      plan: prepared.plan,
      runtime: snapshot.runtime,
      observedAt: snapshot.observedAt,
      ...(sorted && { sorted }),
    };
    await print(context, {
      document: planDocument(report),
      table: planTable,
      rows: ({ images }) =>
        [...(images?.candidates ?? [])].map((it) => ({ id: it.id, name: wholeImageName(it) })),
    });
    return planExit(prepared.plan) ?? exit.done;
  },
});

const ORDERS: Readonly<Record<string, ImageOrder | undefined>> = {
  size: (one, other) => compared(other.image.sizeBytes, one.image.sizeBytes),
  name: (one, other) => compared(imageName(one.image), imageName(other.image)),
  unused: (one, other) => compared(unusedSince(one.record), unusedSince(other.record)),
};

/** By last used and first seen, as in the order of removal. */
const unusedSince = ({ firstSeenAt, lastUsedAt }: ImageRecord): Instant =>
  lastUsedAt !== null && lastUsedAt > firstSeenAt ? lastUsedAt : firstSeenAt;

export const snapshot = command({
  name: "snapshot",
  summary: "write the node as one JSON document, for plan and bug reports",
  doc: "Contains names of the host, images, containers and pods, and ledger records; no content of containers or logs.",
  options: [option("trace", "write the trace of the last 90 days instead; needs no runtime")],
  formats: ["json"],
  run: async (context) => {
    if (has(context, "trace")) {
      const trace = recordedTrace(context);
      if (trace === null) return exit.unknown;
      await context.stdoutPieces(traceLines(trace));
      return exit.done;
    }
    const { snapshot: seen, ledger } = await shownNode(context, {
      allLayers: true,
      pullRecords: true,
    });
    const host = { name: context.open.hostName(context.env), ...returnedImages(context) };
    context.stdout(context.open.snapshotText({ snapshot: seen, ledger, host }));
    return exit.done;
  },
});

/** More than the history keeps. */
const REGRETS_MAX = 100_000;

function returnedImages({ open, config }: CommandContext) {
  using store = open.state(config);
  if (store.failure !== null) return { returnedImages: null, returnedBytes: null };
  const regrets = store.regrets({ limit: REGRETS_MAX });
  const returnedBytes = regrets.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  return { returnedImages: regrets.length, returnedBytes };
}

export const explain = command({
  name: "explain",
  summary: "show the rules that apply to one image, container or sandbox",
  doc: "REF is an ID or ID prefix, an image's tag, digest or repository, or the name of a container or pod. With --compat kubelet, decides as a kubelet that has just started would. Exits 8 if nothing matches.",
  operands: [operand("REF", "an image, a container or a sandbox")],
  options: [option("all-unused", "explain what gc --all-unused would do"), SNAPSHOT],
  formats: TABLE_OR_JSON,
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
      context.note(
        `unknown image, container or sandbox ${reference}; crigc images and crigc plan list them`,
      );
      return exit.unknown;
    }
    await print(context, {
      document: explanationDocument(report),
      table: explanationTable,
    });
    return exit.done;
  },
});

function layersOf(
  { snapshot: { images, runtime }, ledger }: Prepared,
  matches: readonly ReferenceMatch[],
): ReadonlyMap<ImageId, ImageLayers> {
  const forest = forestOf(images, ledger);
  const gain = gainOf(ledger, runtime);
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
  { plan: planned, snapshot: { images } }: Prepared,
  reference: string,
): readonly ReferenceMatch[] {
  const listed = listedImages(indexImages(images), reference);
  const candidates = planned.images?.candidates ?? [];
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
    ...(planned.images?.kept ?? []).map((kept) =>
      ofImage(kept.image, { kind: "kept-image", kept }),
    ),
    ...(planned.containers?.containers ?? []).map((one) => {
      const { id, name, podName } = one.container;
      return {
        match: { kind: "container", planned: one } as const,
        isExact: [id, name, containerName(one.container)].includes(reference),
        isLoose: isIdPrefix(id, reference) || [podName, `${podName}/${name}`].includes(reference),
      };
    }),
    ...(planned.containers?.sandboxes ?? []).map((one) => {
      const { id, name } = one.sandbox;
      return {
        match: { kind: "sandbox", planned: one } as const,
        isExact: [id, name, sandboxName(one.sandbox)].includes(reference),
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
