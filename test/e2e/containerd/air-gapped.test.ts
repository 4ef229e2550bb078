import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

// A node that can pull nothing: what fills its disk decides whether images go, and what came from archives can be kept.
import { library } from "../../support/containerd/archive.ts";
import { fillDiskTo, mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  execInContainer,
  type PodContainer,
  runPod,
  startContainer,
} from "../../support/containerd/pods.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  gc,
  type GcReport,
  planImages,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

const layer = (seed: string, sizeMib: number) => ({ seed, sizeBytes: sizeMib * mebibyte });
const sized = (name: string, sizeMib: number) => ({
  names: [library(name)],
  layers: [layer(name.replace(":", "-"), sizeMib)],
});

const tools = ["shell:1", "proxy:1", "installer:1", "debugger:1"];

describe.each([...releases])("an air-gapped node with containerd %s", (release) => {
  let node: ContainerdNode;
  let app: PodContainer;

  beforeAll(async () => {
    // A period so long that what the runtime says of its images is what it found when it started.
    node = await startNode(release, {
      disk: { sizeBytes: 512 * mebibyte },
      statsPeriodSeconds: 60,
    });
    await loadImages(node, [sized("app:1", 4), ...tools.map((name) => sized(name, 4))]);
    await node.killRuntime();
    await node.startRuntime();
    const pod = await runPod(node, { name: "web" });
    app = await startContainer(node, pod, { name: "app", image: library("app:1") });
    // The node has been watched since before the disk filled up.
    expect((await gc(node)).exitCode).toBe(0);
    await fillDiskTo(node.disk, 97);
    await ripen(node);
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("keeps every image when another file fills the disk to 97 percent, and reports what fills it", async () => {
    const before = await takeInventory(node);
    const { exitCode, report } = await gc(node, youngAge);
    expect({ exitCode, end: report.images?.end }).toEqual({ exitCode: 4, end: "futile" });
    expect(await takeInventory(node)).toEqual(before);
    expect(await execInContainer(node, app.id, ["echo", "alive"])).toBe("alive\n");

    const [futility] = report.plan.images?.futility ?? [];
    expect(futility).toMatchObject({ futile: true });
    const { breakdown } = futility!;
    expect(breakdown.otherBytes / breakdown.capacityBytes).toBeWithin(0.85, 0.97);
    expect(breakdown.imagesBytes).toBeLessThan(64 * mebibyte);
    const [event, ...others] = report.events;
    expect(others).toEqual([]);
    expect(event?.reason).toBe("ImageGCFutile");
    expect(event?.message).toContain("cannot bring the filesystem below its threshold");
    expect(event?.message).toContain(node.disk.path);
    expect(event?.message).toMatch(
      /images 2\d\.\d MiB to 4\d\.\d MiB, other data at least 4\d\d\.\d MiB/,
    );
    const { stdout } = await runProgram(node, "plan", youngAge);
    expect(stdout).toMatch(
      /What fills .*images 2\d\.\d MiB to 4\d\.\d MiB, other data at least 4\d\d\.\d MiB/,
    );
  });

  test("would lose every unused image by the kubelet's rule", async () => {
    const flags = ["--compat=kubelet", "--minimum-image-ttl-duration=0s"];
    const before = await takeInventory(node);
    const unused = tools.map(library).toSorted();
    const { candidates } = await planImages(node, ...flags);
    expect(candidates.map(({ name }) => name).toSorted()).toEqual(unused);
    expect(candidates.filter(({ expected }) => !expected)).toEqual([]);
    const { exitCode, report } = await gc(node, ...flags, "--dry-run");
    expect(exitCode).toBe(0);
    expect(report.plan.images?.candidates.map(({ name }) => name).toSorted()).toEqual(unused);
    expect(await takeInventory(node)).toEqual(before);
  });

  test("would lose them with --when-futile collect, too", async () => {
    const collected = await planImages(node, youngAge, "--when-futile=collect");
    expect(collected.candidates.map(({ name }) => name).toSorted()).toEqual(
      tools.map(library).toSorted(),
    );
    const kept = await planImages(node, youngAge);
    expect(kept.candidates).toEqual([]);
    expect(tools.map((name) => kept.kept.find((it) => it.name === library(name))?.reason)).toEqual(
      tools.map(() => expect.objectContaining({ code: "blocked", block: "futile" })),
    );
  });
});

const loaded = "loaded:1";
const withDigest = "with-digest:1";
const pulled = "pulled:1";
/** From a registry first, then from an archive. */
const both = "both:1";

describe.each([...releases])("images from archives under containerd %s", (release) => {
  let node: ContainerdNode;

  beforeAll(async () => {
    node = await startNode(release);
    await loadImages(node, [sized(loaded, 8)]);
    await loadImages(node, [sized(withDigest, 8), sized(both, 8)], { digests: true });
    await loadImages(node, [sized(pulled, 8)]);
    // What a pull from a registry leaves: a name by digest in the repository.
    for (const name of [pulled, both]) await nameByDigest(node, name);
    await ripen(node, "--all-unused");
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("are kept by --keep-loaded, imported with or without --digests", async () => {
    const flags = [youngAge, "--all-unused", "--keep-loaded"];
    const { candidates, kept } = await planImages(node, ...flags);
    expect(candidates.map(({ name }) => name).toSorted()).toEqual(
      [both, pulled].map(library).toSorted(),
    );
    const codes = Object.fromEntries(kept.map(({ name, reason }) => [name, reason.code]));
    expect(codes).toMatchObject({
      [library(loaded)]: "keep-loaded",
      [library(withDigest)]: "keep-loaded",
    });
    const { report } = await gc(node, ...flags);
    expect(resultsOf(report)).toEqual({ [library(pulled)]: "removed", [library(both)]: "ghost" });
    expect(await imageTags(node)).toEqual(
      [library(loaded), library(withDigest), node.sandboxImage].toSorted(),
    );
  });

  test("are ghosts that count as nothing if the runtime reports a removal but does not free them", async () => {
    const before = readDisk(node.disk.path).availableBytes;
    const { exitCode, report } = await gc(node, youngAge, "--all-unused");
    expect(exitCode).toBe(5);
    expect(resultsOf(report)).toEqual({
      [library(loaded)]: "removed",
      [library(withDigest)]: "ghost",
    });
    expect(report.events.map(({ reason }) => reason)).toEqual(["GhostImage"]);
    const gained = readDisk(node.disk.path).availableBytes - before;
    expect(report.images!.measuredFreedBytes).toBeWithin(gained - mebibyte, gained + mebibyte);
    expect(report.images!.measuredFreedBytes / mebibyte).toBeWithin(15, 18);
  });

  test("that are ghosts are not tried again at once", async () => {
    const { exitCode, report } = await gc(node, youngAge, "--all-unused");
    expect({ exitCode, results: resultsOf(report) }).toEqual({ exitCode: 0, results: {} });
    const kept = report.plan.images!.kept.map(({ reason }) => reason.code);
    expect(kept.filter((code) => code === "ghost")).toHaveLength(2);
  });
});

const resultsOf = ({ images }: GcReport): Readonly<Record<string, string>> =>
  Object.fromEntries((images?.items ?? []).map(({ name, result }) => [name, result.kind]));

describe.each([...releases])("the sandbox image under containerd %s", (release) => {
  let node: ContainerdNode;
  // A name that no pattern for pause images matches.
  const sandboxImage = "registry.example:5000/infra/holder:1";

  beforeAll(async () => {
    node = await startNode(release, { sandboxImage });
    await loadImages(node, [sized("unused:1", 2)]);
    await ripen(node, "--all-unused");
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("is kept if no pod runs, whatever is requested", async () => {
    const { report } = await gc(node, youngAge, "--all-unused");
    expect(removedImages(report)).toEqual([library("unused:1")]);
    expect(await imageTags(node)).toEqual([sandboxImage]);
    const pod = await runPod(node, { name: "afterwards" });
    expect(pod.sandboxId).not.toBe("");
  });

  test("is kept by the runtime's status on 1.6 and by its pin since 1.7", async () => {
    // No pod of it is left that could speak for it.
    for (const { id } of (await takeInventory(node)).sandboxes) {
      await node.cri.call("StopPodSandbox", { pod_sandbox_id: id });
      await node.cri.call("RemovePodSandbox", { pod_sandbox_id: id });
    }
    const { kept } = await planImages(node, youngAge, "--all-unused");
    expect(kept.map(({ name, reason }) => [name, reason])).toEqual([
      [
        sandboxImage,
        expect.objectContaining(
          release === "1.6"
            ? { code: "sandbox-image", by: "runtime", name: sandboxImage }
            : { code: "pinned" },
        ),
      ],
    ]);
  });
});

async function nameByDigest(node: ContainerdNode, name: string): Promise<void> {
  const listed = await ctr(node, "images", "ls", `name==${library(name)}`);
  const digest = /sha256:[0-9a-f]{64}/.exec(listed)?.[0] ?? "";
  const repository = library(name).replace(/:[^:]*$/, "");
  await ctr(node, "images", "tag", library(name), `${repository}@${digest}`);
  await until(`CRI lists ${repository} by digest`, 10_000, async () => {
    const { images } = await takeInventory(node);
    return images.some(({ digests }) => digests.includes(`${repository}@${digest}`));
  });
}
