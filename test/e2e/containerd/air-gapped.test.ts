// A node that can pull nothing: what fills its disk decides whether images go, and what came from archives can be kept.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { fillDiskTo, mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages, nameByDigest } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { startNode } from "../../support/containerd/node.ts";
import { execInContainer, runPod, startContainer } from "../../support/containerd/pods.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  type Document,
  gc,
  keepCodes,
  namesOf,
  planImages,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";

setDefaultTimeout(120_000);

const sized = (name: string, sizeMib: number) => ({
  names: [library(name)],
  layers: [{ seed: name.replace(":", "-"), sizeBytes: sizeMib * mebibyte }],
});
const resultsOf = ({ images }: Document): Readonly<Record<string, string>> =>
  Object.fromEntries(images.items.map(({ name, result }: Document) => [name, result.kind]));
const tools = ["shell:1", "proxy:1", "installer:1", "debugger:1"];
const unused = tools.map(library).toSorted();

describe.each([...releases])("an air-gapped node with containerd %s", (release) => {
  test("keeps every image when another file fills the disk to 97 percent, and reports what fills it", async () => {
    // A period so long that what the runtime says of its images is what it found when it started.
    await using node = await startNode(release, {
      disk: { sizeBytes: 512 * mebibyte },
      statsPeriodSeconds: 60,
    });
    await loadImages(node, [sized("app:1", 4), ...tools.map((name) => sized(name, 4))]);
    await node.killRuntime();
    await node.startRuntime();
    const pod = await runPod(node, { name: "web" });
    const app = await startContainer(node, pod, { name: "app", image: library("app:1") });
    // The node has been watched since before the disk filled up.
    expect((await gc(node)).exitCode).toBe(0);
    await fillDiskTo(node.disk, 97);
    await ripen(node);
    const before = await takeInventory(node);
    const { exitCode, report } = await gc(node, youngAge);
    expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 4, end: "futile" });
    expect(await takeInventory(node)).toEqual(before);
    expect(await execInContainer(node, app.id, ["echo", "alive"])).toBe("alive\n");

    const [futility] = report.plan.images.futility;
    expect(futility).toMatchObject({ futile: true });
    const { otherBytes, imagesBytes, capacityBytes } = futility.breakdown;
    expect(otherBytes / capacityBytes).toBeWithin(0.75, 0.97);
    expect(imagesBytes).toBeLessThan(64 * mebibyte);
    const fills = /images and container layers about 4\d\.\d MiB, other data [34]\d\d\.\d MiB/;
    expect(report.events).toMatchObject([{ reason: "ImageGCFutile" }]);
    const { message } = report.events[0];
    expect(message).toMatch(fills);
    expect(message).toContain("cannot free enough, so crigc keeps them");
    expect(message).toContain(node.disk.path);
    const { stdout } = await runProgram(node, "plan", youngAge);
    expect(stdout).toMatch(new RegExp(`What fills .*${fills.source}`));

    const kept = keepCodes(await planImages(node, youngAge));
    expect(unused.map((name) => kept[name])).toEqual(unused.map(() => "blocked"));
    // By the kubelet's rule, all of them would go.
    const rule = ["--compat=kubelet", "--minimum-image-ttl-duration=0s"];
    expect(namesOf((await planImages(node, ...rule)).candidates).toSorted()).toEqual(unused);
  });
});

describe.each([...releases])("images from archives under containerd %s", (release) => {
  test("are kept by --keep-loaded, and are ghosts where their removal frees nothing", async () => {
    await using node = await startNode(release);
    // `both` came from a registry first, then from an archive.
    const [loaded = "", withDigest = "", pulled = "", both = ""] = [
      "loaded:1",
      "with-digest:1",
      "pulled:1",
      "both:1",
    ].map(library);
    await loadImages(node, [sized("loaded:1", 8)]);
    await loadImages(node, [sized("with-digest:1", 8), sized("both:1", 8)], { digests: true });
    await loadImages(node, [sized("pulled:1", 8)]);
    // What a pull from a registry leaves: a name by digest in the repository.
    for (const name of [pulled, both]) await nameByDigest(node, name);
    await ripen(node, "--all-unused");

    const flags = [youngAge, "--all-unused", "--keep-loaded"];
    const plan = await planImages(node, ...flags);
    expect(namesOf(plan.candidates).toSorted()).toEqual([both, pulled]);
    const code = "keep-loaded";
    expect(keepCodes(plan)).toMatchObject({ [loaded]: code, [withDigest]: code });
    const { report } = await gc(node, ...flags);
    expect(resultsOf(report)).toEqual({ [pulled]: "removed", [both]: "ghost" });
    expect(await imageTags(node)).toEqual([loaded, withDigest, node.sandboxImage].toSorted());

    const before = readDisk(node.disk.path).availableBytes;
    const all = await gc(node, youngAge, "--all-unused");
    expect(all.exitCode).toBe(5);
    expect(resultsOf(all.report)).toEqual({ [loaded]: "removed", [withDigest]: "ghost" });
    expect(all.report.events).toEqual([]);
    const gained = readDisk(node.disk.path).availableBytes - before;
    const { measuredFreedBytes } = all.report.images;
    expect(measuredFreedBytes).toBeWithin(gained - mebibyte, gained + mebibyte);
    expect(measuredFreedBytes / mebibyte).toBeWithin(15, 18);
  });
});

describe.each([...releases])("the sandbox image under containerd %s", (release) => {
  test("is kept if no pod runs, whatever is requested: by the runtime's status on 1.6, by its pin since 1.7", async () => {
    // A name that no pattern for pause images matches.
    const sandboxImage = "registry.example:5000/infra/holder:1";
    await using node = await startNode(release, { sandboxImage });
    await loadImages(node, [sized("unused:1", 2)]);
    await ripen(node, "--all-unused");
    const { report } = await gc(node, youngAge, "--all-unused");
    expect(removedImages(report)).toEqual([library("unused:1")]);
    expect(await imageTags(node)).toEqual([sandboxImage]);
    const { kept } = await planImages(node, youngAge, "--all-unused");
    const byStatus = { code: "sandbox-image", by: "runtime", name: sandboxImage };
    expect(kept).toMatchObject([
      { name: sandboxImage, reason: release === "1.6" ? byStatus : { code: "pinned" } },
    ]);
    const pod = await runPod(node, { name: "afterwards" });
    expect(pod.sandboxId).not.toBe("");
  });
});
