// A pass for space on a real containerd, beside the same removals by RemoveImage alone.

import { rmSync } from "node:fs";

import { writeImageArchive } from "../../test/support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../test/support/containerd/disk.ts";
import { importImages } from "../../test/support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../test/support/containerd/node.ts";
import { type Release, releases } from "../../test/support/containerd/release.ts";
import { gc, removedImages, youngAge } from "../../test/support/containerd/reports.ts";
import { median } from "./runs.ts";
import { milliseconds } from "./tables.ts";

const FAMILIES = 40;
const IMAGES_OF_EACH = 10;
const REMOVALS = 200;
/** A layer of its own takes that much as a blob and that much again unpacked. */
const OWN_BYTES = mebibyte / 2;

interface Round {
  readonly removals: number;
  readonly passMs: number;
  readonly bareMs: number;
}

export async function measureContainerd(version: string, rounds: number): Promise<void> {
  const release = releases.find((it) => it === version);
  if (release === undefined) {
    console.error(`bench: unknown containerd ${version}; use one of ${releases.join(", ")}`);
    process.exit(2);
  }
  const node = await startNode(release, {
    disk: { sizeBytes: 1024 * mebibyte, flushes: true },
  });
  const measured: Round[] = [];
  try {
    for (let round = 0; round < rounds; round += 1) {
      const result = await measureRound(node);
      measured.push(result);
      console.log(roundLine(release, result));
    }
  } finally {
    await node.stop();
  }
  const ratio = median(measured.map(({ passMs, bareMs }) => passMs / bareMs));
  console.log(`containerd ${version}: median of ${rounds}: ${ratio.toFixed(2)} times bare`);
}

/** The same images are loaded again in between, and go in the same order. */
async function measureRound(node: ContainerdNode): Promise<Round> {
  const archive = writeImageArchive(`${node.directory}/layered.tar`, layeredImages());
  try {
    await importImages(node, archive);
    await gc(node, "--containers");
    await Bun.sleep(1_500);
    const { report } = await gc(node, "--images", youngAge, ...thresholds(node));
    const removed = removedImages(report);
    if (removed.length === 0) throw new Error(`nothing was removed: ${report.images?.end}`);
    await importImages(node, archive);
    const startMs = performance.now();
    for (const image of removed) await node.cri.call("RemoveImage", { image: { image } });
    const bareMs = performance.now() - startMs;
    return { removals: removed.length, passMs: report.tookMs, bareMs };
  } finally {
    rmSync(archive.file, { force: true });
  }
}

const layeredImages = () =>
  Array.from({ length: FAMILIES * IMAGES_OF_EACH }, (_, at) => {
    const family = Math.floor(at / IMAGES_OF_EACH);
    const base = [1, 2].map((part) => ({ seed: `base-${family}-${part}`, sizeBytes: mebibyte }));
    return {
      names: [`docker.io/library/family-${family}:${at % IMAGES_OF_EACH}`],
      withBusybox: false,
      layers: [...base, { seed: `own-${at}`, sizeBytes: OWN_BYTES }],
    };
  });

/** Such that about `REMOVALS` images have to go. */
function thresholds({ disk }: ContainerdNode): readonly string[] {
  const { usedPercent, capacityBytes } = readDisk(disk.path);
  const toFreePercent = ((REMOVALS * 2 * OWN_BYTES) / capacityBytes) * 100;
  return [
    `--image-gc-high-threshold=${Math.floor(usedPercent)}`,
    `--image-gc-low-threshold=${Math.round(usedPercent - toFreePercent)}`,
    "--eviction-hard=",
  ];
}

const roundLine = (version: Release, { removals, passMs, bareMs }: Round): string =>
  `containerd ${version}, ${FAMILIES * IMAGES_OF_EACH} layered images: pass of ${removals} removals ${milliseconds(passMs)}, RemoveImage alone ${milliseconds(bareMs)}, ${(passMs / bareMs).toFixed(2)} times`;
