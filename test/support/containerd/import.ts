// Brings image archives onto a node without a registry, as operators of air-gapped nodes do.

import { rmSync } from "node:fs";

import type { ArchivedImage, ImageArchive, ImageOptions } from "./archive.ts";
import { writeImageArchive } from "./archive.ts";
import { command } from "./command.ts";
import type { Answer } from "./cri.ts";
import type { ContainerdNode } from "./node.ts";
import { until } from "./until.ts";

export interface ImportOptions {
  /** Also stores `import-DATE@sha256:…` names, as `ctr images import --digests` does. Default false. */
  readonly digests?: boolean;
  /** Labels of the stored image, such as the pin. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The label by which containerd 1.7 and later know a pinned image. */
export const pinnedLabel = { "io.cri-containerd.pinned": "pinned" } as const;

type ImportingNode = Pick<ContainerdNode, "programs" | "socket" | "cri">;

/** Runs ctr in the namespace of Kubernetes. */
export function ctr(node: ImportingNode, ...words: readonly string[]): Promise<string> {
  return command(node.programs.ctr, "--address", node.socket, "--namespace", "k8s.io", ...words);
}

/** Imports the archive and waits until CRI lists its images: it learns of them by event, a moment later. */
export async function importImages(
  node: ImportingNode,
  archive: ImageArchive,
  options: ImportOptions = {},
): Promise<readonly ArchivedImage[]> {
  const digests = options.digests === true ? ["--digests"] : [];
  await ctr(node, "images", "import", ...digests, archive.file);
  const labels = Object.entries(options.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  for (const name of archive.images.flatMap(({ names }) => names)) {
    if (labels.length > 0) await ctr(node, "images", "label", name, ...labels);
  }
  await until(`CRI lists the images of ${archive.file}`, 10_000, async () => {
    const { images } = await node.cri.call("ListImages", {});
    return archive.images.every(({ id, names }) => {
      const listed = images.find((image: Answer) => image.id === id);
      return names.every((name) => listed?.repo_tags.includes(name));
    });
  });
  return archive.images;
}

/** Makes the images and imports them: the archive is gone afterwards, and takes nothing of the node's disks. */
export async function loadImages(
  node: ImportingNode & Pick<ContainerdNode, "directory">,
  images: readonly ImageOptions[],
  options: ImportOptions = {},
): Promise<readonly ArchivedImage[]> {
  const file = `${node.directory}/load.tar`;
  try {
    return await importImages(node, writeImageArchive(file, images), options);
  } finally {
    rmSync(file, { force: true });
  }
}

/** As after a pull, by which an image also has a digest of its repository. */
export async function nameByDigest(node: ImportingNode, name: string): Promise<void> {
  const digest = /sha256:[0-9a-f]{64}/.exec(await ctr(node, "images", "ls", `name==${name}`))?.[0];
  const full = `${name.replace(/:[^:]*$/, "")}@${digest}`;
  await ctr(node, "images", "tag", name, full);
  await until(`CRI lists ${full}`, 10_000, async () => {
    const { images } = await node.cri.call("ListImages", {});
    return images.some((image: Answer) => image.repo_digests.includes(full));
  });
}
