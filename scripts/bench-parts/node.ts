// A node of a given size, in the words of the fake runtime: half of the images in use, a fifth of the containers ended.

import { join } from "node:path";

import {
  hexId,
  imageIdOf,
  type NodeDescription,
} from "../../test/support/fake-runtime/describe.ts";

/** So many images, pods and containers. */
export function nodeOf(count: number, directory: string): NodeDescription {
  const numbers = Array.from({ length: count }, (_, index) => index);
  return {
    images: numbers.map((index) => ({
      id: imageIdOf(index),
      repoTags: [`registry.example/team/app-${index}:1.${index}`],
      repoDigests: [`registry.example/team/app-${index}@sha256:${hexId(`digest ${index}`)}`],
      sizeBytes: 50_000_000 + index,
    })),
    sandboxes: numbers.map((index) => ({
      id: hexId(`sandbox ${index}`),
      uid: hexId(`pod ${index}`).slice(0, 36),
      name: `pod-${index}`,
      namespace: "shop",
    })),
    containers: numbers.map((index) => ({
      id: hexId(`container ${index}`),
      sandboxId: hexId(`sandbox ${index}`),
      name: "app",
      image: imageIdOf(index % Math.ceil(count / 2)),
      state: index % 5 === 0 ? "exited" : "running",
      finishedAt: "2026-01-02T00:00:00Z",
      logPath: join(
        directory,
        "logs",
        `shop_pod-${index}_${hexId(`pod ${index}`).slice(0, 36)}/app/0.log`,
      ),
    })),
    imageFilesystems: [{ mountpoint: directory, usedBytes: count * 50_000_000, inodesUsed: count }],
  };
}
