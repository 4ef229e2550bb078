// The kubelet's directory of pull records, in the formats of Kubernetes 1.33 (v1alpha1) and 1.35 (v1beta1).

import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import type { Image } from "../../../src/model/snapshot.ts";
import { PullRecords } from "../../../src/node/kubelet/pull-records.ts";
import { anImage } from "../../support/build/values.ts";
import { pullFile, pullIntent, pullRecord } from "../../support/pull-records.ts";
import { put, scratch } from "../../support/scratch.ts";

const app = anImage("app", { repoDigests: [`registry.example/app@sha256:${"ab".repeat(32)}`] });
const other = anImage("other");

function aRoot(): string {
  const root = scratch();
  mkdirSync(join(root, "image_manager/pulling"), { recursive: true });
  mkdirSync(join(root, "image_manager/pulled"));
  return root;
}

const read = (root: string, images: readonly Image[] = [app, other], isSettled = false) =>
  new PullRecords(root).read(images, () => isSettled);

describe("records", () => {
  test.each([
    ["the ID", app.id],
    ["the ID without its algorithm, as CRI-O spells it", app.id.replace("sha256:", "")],
    ["a digest, as CRI-O had them", app.repoDigests[0] ?? ""],
  ])("by %s name the image", async (_, reference) => {
    const root = aRoot();
    pullRecord(root, reference);
    expect(await read(root)).toEqual({
      kind: "read",
      directory: join(root, "image_manager"),
      recorded: new Map([[app.id, [pullFile(reference)]]]),
      unreadable: [],
      unlisted: [],
      intents: [],
    });
  });

  test("of both API versions are valid; half-written, empty, foreign, wrong ones and those without credentials settle nothing", async () => {
    const root = aRoot();
    pullRecord(root, app.id, { apiVersion: "kubelet.config.k8s.io/v1alpha1" });
    expect(await read(root)).toMatchObject({ unreadable: [] });
    const file = `image_manager/pulled/${pullFile(app.id)}`;
    const texts = ["", '{"kind":"ImagePulledRecord"', "[]", "{}"];
    for (const text of [
      ...texts,
      JSON.stringify({ kind: "ImagePulledRecord", imageRef: app.id }),
    ]) {
      put(root, file, text);
      expect(await read(root)).toMatchObject({ unreadable: [app.id], unlisted: [] });
    }
    for (const credentialMapping of [null, {}, { a: {} }, { a: { kubernetesSecrets: [] } }]) {
      pullRecord(root, app.id, { credentialMapping });
      expect(await read(root)).toMatchObject({ unreadable: [app.id], unlisted: [] });
    }
    for (const of of ["kubernetesSecrets", "kubernetesServiceAccounts"]) {
      pullRecord(root, app.id, { credentialMapping: { a: {}, b: { [of]: [{ uid: "1" }] } } });
      expect(await read(root)).toMatchObject({ unreadable: [] });
    }
    pullRecord(root, other.id);
    renameSync(join(root, "image_manager/pulled", pullFile(other.id)), join(root, file));
    expect(await read(root)).toMatchObject({ unreadable: [app.id] });
    expect(await read(root, [app], true)).toMatchObject({ unreadable: [] });
  });

  test("that are links, directories or drafts are not read", async () => {
    const root = aRoot();
    const elsewhere = scratch();
    pullRecord(elsewhere, app.id);
    const file = pullFile(app.id);
    symlinkSync(
      join(elsewhere, "image_manager/pulled", file),
      join(root, "image_manager/pulled", file),
    );
    mkdirSync(join(root, "image_manager/pulled", pullFile(other.id)));
    put(root, `image_manager/pulled/${"x".repeat(40)}.tmp`, "{}");
    expect(await read(root)).toMatchObject({ unreadable: [app.id, other.id], unlisted: [] });
  });

  test("of images that are not listed are stale", async () => {
    const root = aRoot();
    pullRecord(root, "sha256:gone", { credentialMapping: { "r.example/gone": {} } });
    pullRecord(root, app.id, { credentialMapping: { a: { nodePodsAccessible: true } } });
    expect(await read(root)).toMatchObject({ unlisted: [pullFile("sha256:gone")] });
    const records = await new PullRecords(root).records();
    expect(records.toSorted((one) => (one.isForAllPods ? 1 : -1))).toMatchSnapshot();
  });
});

describe("intents", () => {
  test("have the name as the pod spells it; broken ones and drafts are none", async () => {
    const root = aRoot();
    const markedAt = pullIntent(root, "nginx");
    put(root, `image_manager/pulling/${pullFile("a")}`, "");
    put(root, `image_manager/pulling/${pullFile("b")}.tmp`, "{}");
    const records = new PullRecords(root);
    expect(await records.intents()).toEqual([{ image: "nginx", markedAt }]);
    rmSync(join(root, "image_manager/pulling", pullFile("nginx")));
    expect(await records.intents()).toEqual([]);
  });

  test("cannot be read without their directory, or if there are far too many", async () => {
    const root = aRoot();
    for (let at = 0; at <= 1_000; at += 1) put(root, `image_manager/pulling/${pullFile(`${at}`)}`);
    expect(await new PullRecords(root).intents()).toBeNull();
    expect(await new PullRecords(scratch()).intents()).toBeNull();
    expect(await read(scratch())).toMatchObject({ kind: "failed", intents: null });
  });
});

describe("the directory", () => {
  const failure = async (root: string): Promise<string> => {
    const reading = await read(root);
    return reading.kind === "failed" ? reading.message : reading.kind;
  };

  test("that does not exist, is a link, or is that of the node itself has no records", async () => {
    expect(await failure(scratch())).toContain("does not exist");
    expect(await failure("/")).toContain("no directory of a kubelet");
    const root = scratch();
    symlinkSync(join(aRoot(), "image_manager"), join(root, "image_manager"));
    expect(await failure(root)).toContain("cannot read");
    expect(await new PullRecords(root).records()).toEqual([]);
  });

  test("may be below a link: administrators move the kubelet's root", async () => {
    const root = aRoot();
    pullRecord(root, app.id);
    const link = join(scratch(), "kubelet");
    symlinkSync(root, link);
    expect(await read(link)).toMatchObject({
      kind: "read",
      recorded: new Map([[app.id, [pullFile(app.id)]]]),
    });
  });
});
