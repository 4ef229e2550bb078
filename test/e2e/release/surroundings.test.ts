// Where an executable runs: in an empty root with the named libraries, and on musl.

import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, cpSync, mkdirSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";

import { command } from "../../support/containerd/command.ts";
import { scratch } from "../../support/scratch.ts";
import { muslLibraries, released, run } from "./build.ts";

setDefaultTimeout(120_000);

const work = scratch();

/** Reads configuration and loads every library, then finds no runtime. */
const GC = ["gc", "--container-runtime-endpoint=unix:///none.sock"];

/** A root with one executable, and nothing else but `files`, which go to the same place inside. */
function emptyRoot(name: string, executable: string, files: readonly string[]): string {
  const root = `${work}/${name}`;
  mkdirSync(`${root}/proc`, { recursive: true });
  copyFileSync(executable, `${root}/crigc`);
  for (const file of files) {
    mkdirSync(`${root}${dirname(file)}`, { recursive: true });
    copyFileSync(realpathSync(file), `${root}${file}`);
    chmodSync(`${root}${file}`, 0o755);
  }
  return root;
}

/** The libraries that README names, where this machine has them. */
async function glibcFiles(): Promise<readonly string[]> {
  const listed = await command("ldd", `${await released()}/crigc-linux-x64`);
  const files = [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
  expect(files.map((path) => basename(path)).toSorted()).toEqual([
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
  ]);
  return files;
}

/** Runs crigc in the root, whose only other content is /proc: on glibc the engine finds its own stack there. */
const inside = (root: string, user: string): readonly string[] => [
  "unshare",
  "--mount",
  "sh",
  "-ec",
  'mount -t proc proc "$1/proc"; root=$1 user=$2; shift 2; exec chroot --userspec="$user" "$root" /crigc "$@"',
  "sh",
  root,
  user,
];

test("in an empty root with the named libraries the executable prints its configuration as any user, and reports that no runtime is there", async () => {
  const root = emptyRoot("glibc", `${await released()}/crigc-linux-x64`, await glibcFiles());
  for (const user of ["0:0", "65534:65534"]) {
    const within = inside(root, user);
    expect(await run(...within, "version")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await run(...within, "config", "-o", "json")).toMatchObject({ exitCode: 0, stderr: "" });
  }
  const { exitCode, stderr } = await run(...inside(root, "0:0"), ...GC);
  expect(exitCode).toBe(3);
  expect(stderr).toContain("/none.sock");
});

test("the musl executable prints its configuration on musl's own loader and libc", async () => {
  const root = emptyRoot("musl", `${await released()}/crigc-linux-x64-musl`, []);
  cpSync(muslLibraries, `${root}/lib`, { recursive: true, verbatimSymlinks: true });
  const preload = ["/lib/ld-musl-x86_64.so.1", "--preload", "/lib/libglibc-names.so", "/crigc"];
  const inRoot = ["chroot", root, ...preload];
  expect(await run(...inRoot, "config", "-o", "json")).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await run(...inRoot, ...GC)).toMatchObject({ exitCode: 3 });
});
