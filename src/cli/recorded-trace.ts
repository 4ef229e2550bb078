/** The trace that the agent has recorded on this node, from the state directory alone. */

import type { ChainId, ImageId } from "../model/ids.ts";
import type { NodeTrace, TraceImage } from "../model/trace.ts";
import { atLeastZero } from "../model/values.ts";
import { LayerForest } from "../policy/layer/layers.ts";
import type { CommandContext } from "./command.ts";

/** `null`: there is none, or it cannot be read, and stderr says why. */
export function recordedTrace(context: CommandContext): NodeTrace | null {
  const { open, config, env } = context;
  using store = open.state(config);
  if (store.failure !== null) return null;
  const recorded = store.trace();
  if (recorded === null) {
    context.note(`no trace in ${config.values.stateDir} yet; crigc run records one`);
    return null;
  }
  const images = recorded.images.map((it) => ({ ...it, sizeBytes: BigInt(it.sizeBytes) }));
  const forest = forestOf(images);
  const present = recorded.present.filter(({ untilMs }) => untilMs === null);
  const there = new Set(present.map(({ image }) => image));
  const isThere = images.filter(({ image }) => there.has(image));
  const imageBytes = forest.union(isThere.map(({ image: id, sizeBytes }) => ({ id, sizeBytes })));
  const disk = store.newestSamples().findLast(({ roles }) => roles.includes("imagefs")) ?? null;
  return {
    ...recorded,
    node: open.hostName(env),
    capacityBytes: disk && disk.capacityBytes,
    otherBytes:
      disk && atLeastZero(disk.capacityBytes - disk.availableBytes - imageBytes.estimateBytes),
    images: images.map(({ image, names, sizeBytes }): TraceImage => {
      const layers = forest.layersOf(image)?.map((it) => ({ ...it, id: it.chain })) ?? null;
      return { kind: "Image", image, names, sizeBytes, layers };
    }),
  };
}

interface Layered {
  readonly image: ImageId;
  readonly sizeBytes: bigint;
  readonly chain: readonly ChainId[] | null;
}

function forestOf(images: readonly Layered[]): LayerForest {
  const parents = new Map<ChainId, ChainId | null>();
  const layered = images.flatMap(({ image: id, sizeBytes, chain }) => {
    chain?.forEach((one, index) => parents.set(one, chain[index - 1] ?? null));
    const last = chain?.at(-1);
    return last === undefined ? [] : [{ id, sizeBytes, chain: last }];
  });
  return new LayerForest(layered, parents);
}
