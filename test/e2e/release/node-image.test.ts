// The script that puts a release into a node image: the right executable for the tree, and what was baked in is kept.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";

import { writeImageArchive } from "../../support/containerd/archive.ts";
import { command, type CommandResult, inRoot } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { released, run, top } from "./build.ts";

setDefaultTimeout(120_000);

const work = scratch();
let folder: string;

beforeAll(async () => {
  folder = await released();
});

const nodeImage = (...words: readonly string[]): Promise<CommandResult> =>
  run(`${folder}/node-image`, ...words);

/** Just enough of a tree: a program of its processor, its loader, its init system. */
function treeOf(name: string, loader: string, program: string): string {
  const root = `${work}/${name}`;
  mkdirSync(`${root}/bin`, { recursive: true });
  copyFileSync(program, `${root}/bin/busybox`);
  put(root, loader);
  put(root, loader.includes("musl") ? "sbin/openrc-run" : "usr/lib/systemd/systemd");
  return root;
}

const archiveOf = (name: string): string =>
  writeImageArchive(`${work}/${name}.tar`, [
    { names: [`registry.lan/${name}:1`], withBusybox: false },
  ]).file;

const sumOf = async (path: string): Promise<string> =>
  (await command("sha256sum", path)).slice(0, 64);

describe("node-image", () => {
  test("installs crigc into a Debian, with the images of the archives in the keep rules", async () => {
    const root = `${work}/debian`;
    mkdirSync(root);
    await command("tar", "-xf", `${top}/.cache/debian-root/root.tar`, "-C", root);
    const { exitCode, stderr } = await nodeImage("--first-boot", root, archiveOf("baked"));
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(await sumOf(`${root}/usr/local/bin/crigc`)).toBe(
      await sumOf(`${folder}/crigc-linux-x64`),
    );
    const text = (path: string): string => readFileSync(`${root}/etc/${path}`, "utf8");
    expect(text("crigc/keep.d/baseline.list")).toContain("registry.lan/baked:1");
    const dropIn = "systemd/system/crigc.service.d/10-baseline.conf";
    expect(text(dropIn)).toContain("keep baseline --once");
    // The stamp of the first boot must not be there yet.
    const check = await inRoot(root, ["/usr/local/bin/crigc", "keep", "check"]);
    expect(check).toMatchObject({ exitCode: 0 });
  });

  test.each([
    ["arm64", "lib/ld-linux-aarch64.so.1"],
    ["arm64-musl", "lib/ld-musl-aarch64.so.1"],
    ["x64-musl", "lib/ld-musl-x86_64.so.1"],
  ])("picks the executable for the tree's processor and libc: %s", async (target, loader) => {
    const root = treeOf(target, loader, `${folder}/crigc-linux-${target}`);
    expect(await nodeImage(root)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await sumOf(`${root}/usr/local/bin/crigc`)).toBe(
      await sumOf(`${folder}/crigc-linux-${target}`),
    );
  });

  test("writes no baseline through a link that leads out of the tree", async () => {
    const root = treeOf("linked", "lib64/ld-linux-x86-64.so.2", `${folder}/crigc-linux-x64`);
    const outside = `${work}/outside`;
    mkdirSync(`${outside}/keep.d`, { recursive: true });
    mkdirSync(`${root}${outside}`, { recursive: true });
    mkdirSync(`${root}/etc`);
    symlinkSync(outside, `${root}/etc/crigc`);
    const { exitCode, stderr } = await nodeImage(root, archiveOf("other"));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("is a link out of the tree");
    expect(await command("find", outside, "-type", "f")).toBe("");
  });

  test.each([
    ["no tree", [], "missing ROOT"],
    ["the running system", ["/"], "use 'crigc install' for it"],
    ["an empty directory", ["EMPTY"], "cannot tell the processor"],
    ["a folder that is no release", ["--release", "EMPTY", "EMPTY"], "no release found in"],
  ])("%s is refused", async (_, words, said) => {
    mkdirSync(`${work}/empty`, { recursive: true });
    const { exitCode, stderr } = await nodeImage(
      ...words.map((word) => (word === "EMPTY" ? `${work}/empty` : word)),
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain(said);
  });

  test("refuses an executable that does not match SHA256SUMS before running it", async () => {
    const forged = `${work}/forged`;
    mkdirSync(forged);
    for (const name of ["node-image", "SHA256SUMS"])
      copyFileSync(`${folder}/${name}`, `${forged}/${name}`);
    const marker = `${work}/was-run`;
    writeFileSync(`${forged}/crigc-linux-x64`, `#!/bin/sh\ntouch '${marker}'\n`, { mode: 0o755 });
    const root = treeOf("victim", "lib64/ld-linux-x86-64.so.2", `${folder}/crigc-linux-x64`);
    const { exitCode, stderr } = await run("sh", `${forged}/node-image`, root);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("differs from SHA256SUMS");
    expect(await Bun.file(marker).exists()).toBe(false);
  });
});
