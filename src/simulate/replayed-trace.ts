/** A trace as it is replayed: images with their content, and what happens in the order of time. */

import { chainId, type ImageId } from "../model/ids.ts";
import type { ImageOrigin } from "../model/ledger.ts";
import type { Image } from "../model/snapshot.ts";
import type { NodeTrace, TraceImage, TracePresent, TraceUse } from "../model/trace.ts";

export interface ReplayedImage {
  readonly image: Image;
  /** Its layers; if they are unknown, one layer that no other image has. */
  readonly content: readonly { readonly id: string; readonly sizeBytes: bigint }[];
  readonly origin: ImageOrigin;
}

export type TraceEvent = { readonly atMs: number; readonly image: ReplayedImage } & (
  | { readonly kind: "begin" | "end"; readonly use: string }
  /** Somebody brought it before any container needed it. */
  | { readonly kind: "arrival" }
);

export interface Replayable {
  readonly node: string;
  readonly fromMs: number;
  readonly untilMs: number;
  /** Of all images, each layer once. */
  readonly allBytes: bigint;
  /** On the node when the trace begins. */
  readonly initial: readonly ReplayedImage[];
  readonly events: readonly TraceEvent[];
  /** When containers begin to use each image, in order. */
  readonly begins: ReadonlyMap<ImageId, readonly number[]>;
}

interface Interval extends Pick<TraceUse, "fromMs" | "untilMs"> {
  readonly image: ReplayedImage;
}

export function replayable(trace: NodeTrace): Replayable {
  const layers = layerSizes(trace.images);
  const images = new Map(trace.images.map((one) => [one.image, replayedImage(one, layers)]));
  const known = (intervals: readonly (TracePresent | TraceUse)[]) =>
    intervals.flatMap(({ image: id, fromMs, untilMs }): readonly Interval[] => {
      const image = images.get(id);
      const isOutside = fromMs > trace.untilMs || (untilMs ?? Infinity) < trace.fromMs;
      return image === undefined || isOutside ? [] : [{ image, fromMs, untilMs }];
    });
  const uses = known(trace.uses);
  const begins = new Map(
    Array.from(
      Map.groupBy(uses, ({ image }) => image.image.id),
      ([id, own]) => [id, own.map(({ fromMs }) => fromMs).toSorted((one, other) => one - other)],
    ),
  );
  const present = known(trace.present);
  const returns = returnsAfterGaps(present);
  const events: TraceEvent[] = present
    .filter(
      ({ fromMs, image: { image } }, at) =>
        fromMs > trace.fromMs &&
        !returns.has(at) &&
        !isBroughtByUse(fromMs, begins.get(image.id), trace),
    )
    .map(({ fromMs: atMs, image }) => ({ kind: "arrival", atMs, image }));
  for (const [index, { fromMs, untilMs, image }] of uses.entries()) {
    const use = `use ${index}`;
    events.push({ kind: "begin", atMs: fromMs, image, use });
    events.push({ kind: "end", atMs: Math.min(untilMs ?? Infinity, trace.untilMs), image, use });
  }
  const contents = new Map(
    [...images.values()].flatMap(({ content }) => content.map((one) => [one.id, one.sizeBytes])),
  );
  return {
    node: trace.node,
    fromMs: trace.fromMs,
    untilMs: trace.untilMs,
    allBytes: [...contents.values()].reduce((sum, bytes) => sum + bytes, 0n),
    initial: [
      ...new Set(present.filter(({ fromMs }) => fromMs <= trace.fromMs).map(({ image }) => image)),
    ],
    events: events.toSorted(
      (one, other) => one.atMs - other.atMs || RANK[one.kind] - RANK[other.kind],
    ),
    begins,
  };
}

/** At one time uses begin before others end, so that an image that is used throughout stays in use. */
const RANK = { begin: 0, arrival: 1, end: 2 } as const;

/** After a gap in the recording all intervals start again: these images did not arrive then. */
function returnsAfterGaps(present: readonly Interval[]): ReadonlySet<number> {
  const returns = new Set<number>();
  const known = new Set<ReplayedImage>();
  const sorted = [...present.entries()].toSorted(([, a], [, b]) => a.fromMs - b.fromMs);
  let [coveredMs, nextMs, groupMs] = [-Infinity, -Infinity, -Infinity];
  for (const [at, { image, fromMs, untilMs }] of sorted) {
    if (fromMs > groupMs) [coveredMs, groupMs] = [nextMs, fromMs];
    if (known.has(image) && coveredMs < fromMs) returns.add(at);
    known.add(image);
    nextMs = Math.max(nextMs, untilMs ?? Infinity);
  }
  return returns;
}

/** The node was looked at once a period: an image that came and was used within two was brought for its container. */
function isBroughtByUse(
  atMs: number,
  begins: readonly number[] | undefined,
  { precisionMs }: NodeTrace,
): boolean {
  const next = begins?.find((one) => one >= atMs - precisionMs);
  return next !== undefined && next <= atMs + 2 * precisionMs;
}

/** One ID is one layer: where its lines differ in its size, it has the largest. */
function layerSizes(images: readonly TraceImage[]): ReadonlyMap<string, bigint> {
  const sizes = new Map<string, bigint>();
  for (const { layers } of images)
    for (const { id, sizeBytes } of layers ?? [])
      if (sizeBytes >= (sizes.get(id) ?? 0n)) sizes.set(id, sizeBytes);
  return sizes;
}

function replayedImage(
  { image: id, names, sizeBytes, layers }: TraceImage,
  sizes: ReadonlyMap<string, bigint>,
): ReplayedImage {
  const isDigest = (name: string): boolean => name.includes("@");
  const image: Image = {
    id,
    repoTags: names.filter((name) => !isDigest(name)),
    repoDigests: names.filter(isDigest),
    sizeBytes,
    pinned: false,
  };
  const ids = layers && new Set(layers.map((layer) => layer.id));
  const content = ids
    ? Array.from(ids, (own) => ({ id: own, sizeBytes: sizes.get(own) ?? 0n }))
    : [{ id, sizeBytes }];
  const chain = content.map((layer) => chainId(layer.id));
  return { image, content, origin: { chain: chain.length === 0 ? null : chain, builtAt: null } };
}
