// Passes and removals as the loops bring them, each with one visible difference from the default.

import { containerId, imageId, passId } from "../../src/model/ids.ts";
import type { ContainerItem, ImageItem, ImageOutcome, Pass } from "../../src/model/pass.ts";
import { duration, instant } from "../../src/model/time.ts";
import {
  containerOutcome,
  imageOutcome,
  pass as wholePass,
  removedContainer,
  removedImage,
} from "../report/build.ts";
import { aCandidate, aContainer, anImage } from "../support/build/values.ts";

export function imageItem(
  turn: number,
  change: Partial<ImageItem> = {},
  id = imageId(`sha256:${turn}`),
): ImageItem {
  const repoTags = [`Registry.example/app/Web:${turn}`];
  return removedImage(turn, {
    candidate: aCandidate("", { image: anImage("", { id, repoTags, sizeBytes: 1000n }) }),
    result: { kind: "removed", reportedBytes: 1000n, measuredBytes: 700n },
    startedAt: instant(BigInt(turn)),
    took: duration(5n),
    ...change,
  });
}

export function containerItem(name: string): ContainerItem {
  const its = { id: containerId(`c-${name}`), podName: "pod", podNamespace: "space" };
  const container = aContainer(name, { ...its, state: "exited" });
  const [item] = containerOutcome().containers;
  return { ...item!, planned: { ...removedContainer(1), container }, logBytes: 20n };
}

export const pass = (id: string, change: Partial<Pass> = {}): Pass =>
  wholePass({
    id: passId(id),
    kind: "image-gc",
    startedAt: instant(100n),
    endedAt: instant(200n),
    plan: { containers: null, images: null },
    images: null,
    containers: null,
    ...change,
  });

export const images = (items: readonly ImageItem[]): ImageOutcome =>
  imageOutcome({
    items,
    wantedBytes: 500n,
    reportedFreedBytes: 1000n,
    measuredFreedBytes: 700n,
    availableBefore: 10n,
    availableAfter: 710n,
    capacityBytes: 10_000n,
  });
