import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { readManifests } from "../../../src/node/kubelet/pod-documents.ts";
import { put, scratch } from "../../support/scratch.ts";

const etcd = `apiVersion: v1
kind: Pod
metadata: {name: etcd}
spec:
  initContainers:
    - {name: prepare, image: "r.example/prepare:1"}
  containers:
    - name: etcd
      image: r.example/etcd:3 # the release
  volumes:
    - name: data
      image: {reference: r.example/data:1}
`;

describe("manifests of static pods", () => {
  test("name the images of init and main containers and of volumes, in YAML and JSON, whatever their names", async () => {
    const directory = scratch();
    put(directory, "etcd.yaml", etcd);
    const json = { kind: "Pod", spec: { containers: [{ image: "r.example/json:1" }] } };
    put(directory, "without-an-ending", JSON.stringify(json));
    writeFileSync(Buffer.from(`${directory}/\u00ff.yaml`, "latin1"), etcd);
    // Ignored: hidden files, directories and broken links.
    put(directory, ".etcd.yaml.swp", etcd);
    mkdirSync(join(directory, "old"));
    symlinkSync("/nowhere", join(directory, "gone.yaml"));
    symlinkSync("loop.yaml", join(directory, "loop.yaml"));
    const read = await readManifests([directory]);
    expect(JSON.stringify(read, null, 1).replaceAll(directory, "")).toMatchSnapshot();
  });

  test("may be one file or a link to one, and there may be none", async () => {
    const path = join(scratch(), "link.yaml");
    symlinkSync(put(scratch(), "pod.yaml", etcd), path);
    const read = await readManifests([path, "/nowhere", scratch()]);
    expect(read).toMatchObject([{ path, fault: null }]);
  });

  test("in a directory with too many files to read are unreadable, not a part of them", async () => {
    const directory = scratch();
    for (let index = 0; index <= 1_000; index += 1) put(directory, `${index}.yaml`, etcd);
    expect(await readManifests([directory])).toEqual([
      {
        path: directory,
        images: [],
        fault: { kind: "unreadable", message: "it has 1001 files; the maximum is 1000" },
      },
    ]);
    put(directory, ".1001.yaml.swp", etcd);
    rmSync(join(directory, "0.yaml"));
    expect(await readManifests([directory])).toHaveLength(1_000);
  });

  const named = ["prepare", "etcd", "data"].map((name) => expect.stringContaining(`/${name}:`));
  test.each<[string, string, readonly unknown[]]>([
    ["is half written", `${etcd}    - {name: "cut`, named],
    ["has a tab", "spec:\n\tcontainers:\n\t- image: 'r.example/tab:1'\n", ["r.example/tab:1"]],
    ["is cut before its images", "apiVersion: v1\nkind: Pod\n", []],
    ["is a note", "do not touch\n", []],
    ["has no bytes", "", []],
  ])("with a file that %s protect the names in it and stop nothing", async (_, text, images) => {
    const directory = scratch();
    put(directory, "pod.yaml", text);
    expect(await readManifests([directory])).toMatchObject([
      { images, fault: { kind: "invalid" } },
    ]);
  });

  test.each<[string, string, unknown]>([
    ["an empty document", "---\n", null],
    ["a document that is no pod", "---\nkind: ConfigMap\n", { kind: "invalid" }],
  ])("with %s behind the pod name its images, as YAML spells them", async (_, more, fault) => {
    const directory = scratch();
    const pod = `spec:\n  containers:\n  - image: &i r.example/app:1\n  - image: >-\n      r.example/other:2\n`;
    put(directory, "pod.yaml", `${pod}${more}`);
    const [manifest] = await readManifests([directory]);
    expect(manifest?.images).toEqual(
      expect.arrayContaining(["r.example/app:1", "r.example/other:2"]),
    );
    expect(manifest).toMatchObject({ fault });
  });

  test("that cannot be read are reported", async () => {
    // Reading the memory of a process from its first byte on is an input/output error.
    expect(await readManifests(["/proc/self/mem"])).toMatchObject([
      { path: "/proc/self/mem", images: [], fault: { kind: "unreadable" } },
    ]);
  });
});
