// Real runtimes tell the layers of their images: what frees nothing stays, and estimates come true on the disk.
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";

import { readDisk } from "../../support/containerd/disk-use.ts";
import { mebibyte } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  gc,
  type ImagePlanDocument,
  planImages,
  removedImages,
  youngAge,
} from "../../support/containerd/reports.ts";
import { ripen } from "../../support/containerd/ripe.ts";

setDefaultTimeout(240_000);

const FAMILIES = 8;
const MEMBERS = 12;
const library = (name: string) => `docker.io/library/${name}:1`;
const layer = (seed: string, sizeMib: number) => ({ seed, sizeBytes: sizeMib * mebibyte });

let node: ContainerdNode | undefined;

afterEach(async () => {
  await node?.stop();
  node = undefined;
});

/** Families on a base of 5 MiB each, above a layer that all have; the bases of every second family are images themselves. */
async function families(made: ContainerdNode): Promise<void> {
  for (let family = 0; family < FAMILIES; family += 1) {
    const base = layer(`base-${family}`, 5);
    const members = Array.from({ length: MEMBERS }, (_, member) => ({
      names: [library(`family-${family}-${member}`)],
      layers: [base, layer(`own-${family}-${member}`, 0.5)],
    }));
    const bases = family % 2 === 0 ? [{ names: [library(`base-${family}`)], layers: [base] }] : [];
    await loadImages(made, [...bases, ...members]);
  }
}

const reasonOf = (plan: ImagePlanDocument, name: string): string | undefined =>
  plan.kept.find((entry) => entry.name === name)?.reason.code;
const isCandidate = (plan: ImagePlanDocument, name: string): boolean =>
  plan.candidates.some((entry) => entry.name === name);

describe.each([...releases])("images of eight families under containerd %s", (release) => {
  test("keep the base of a running image, and free what was estimated once three removals were measured", async () => {
    node = await startNode(release, { disk: { sizeBytes: 256 * mebibyte } });
    await families(node);
    const pod = await runPod(node, { name: "steady" });
    await startContainer(node, pod, { name: "app", image: library("family-0-5") });
    await ripen(node);
    const { usedPercent } = readDisk(node.disk.path);
    const below = (points: number): readonly string[] => [
      `--image-gc-high-threshold=${Math.floor(usedPercent) - points + 5}`,
      `--image-gc-low-threshold=${Math.floor(usedPercent) - points}`,
    ];

    const plan = await planImages(node, youngAge, ...below(5));
    expect(reasonOf(plan, library("base-0"))).toBe("shares-all-layers");
    expect(isCandidate(plan, library("base-2"))).toBe(true);
    const names = plan.candidates.map(({ name }) => name);
    const lastChild = Math.max(
      ...names.flatMap((name, at) => (/family-2-/.test(name) ? [at] : [])),
    );
    expect(names.indexOf(library("base-2"))).toBeGreaterThan(lastChild);

    const first = await gc(node, youngAge, ...below(5));
    expect(first.report.images?.end).toBe("target-reached");
    expect(removedImages(first.report).length).toBeGreaterThanOrEqual(3);

    const next = await planImages(node, youngAge, ...below(20));
    const second = await gc(node, youngAge, ...below(20));
    expect(second.report.images?.end).toBe("target-reached");
    const removed = removedImages(second.report).length;
    const estimated = next.candidates
      .slice(0, removed)
      .reduce((sum, { freesBytes = 0 }) => sum + freesBytes, 0);
    const measured = second.report.images?.measuredFreedBytes ?? 0;
    console.info(
      `containerd ${release}: ${removed} removals, ${estimated} bytes estimated, ${measured} measured, ${second.report.tookMs} ms`,
    );
    expect(estimated / measured).toBeWithin(0.8, 1.2);
  });
});

test("with compat kubelet the base of a running image is a candidate under containerd 2.1", async () => {
  node = await startNode("2.1", { disk: { sizeBytes: 128 * mebibyte } });
  const base = layer("base", 10);
  await loadImages(node, [
    { names: [library("base")], layers: [base] },
    { names: [library("app")], layers: [base, layer("app", 1)] },
  ]);
  const pod = await runPod(node, { name: "steady" });
  await startContainer(node, pod, { name: "app", image: library("app") });
  const thresholds = ["--image-gc-high-threshold=2", "--image-gc-low-threshold=1"];
  const kubelet = await planImages(
    node,
    "--minimum-image-ttl-duration=0s",
    "--compat=kubelet",
    ...thresholds,
  );
  expect(isCandidate(kubelet, library("base"))).toBe(true);
});
