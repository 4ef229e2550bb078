// Where an executable runs: in an empty root with the named libraries, and on musl.

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, cpSync, mkdirSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";

import { command, type CommandResult } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { numberedImages, startNode } from "../binary/node.ts";
import { muslLibraries, released, run, starting } from "./build.ts";

setDefaultTimeout(120_000);

const work = scratch();
let snapshot: string;
/** What the plan of the recorded node is on this very machine. */
let expected: CommandResult;

beforeAll(async () => {
  chmodSync(work, 0o755);
  snapshot = await recordSnapshot();
  expected = await run(...(await starting("x64")), "plan", "-o", "json", "--snapshot", snapshot);
  expect(expected).toMatchObject({ exitCode: 0, stderr: "" });
});

/** A node with three images, recorded: its path. */
async function recordSnapshot(): Promise<string> {
  await using node = await startNode({ node: { images: numberedImages(3) } });
  const taken = await run(...(await starting("x64")), "snapshot", ...node.flags);
  expect(taken).toMatchObject({ exitCode: 0 });
  return put(work, "snapshot.json", taken.stdout);
}

/** A root with one executable, the snapshot, and nothing else but `files`, which go to the same place inside. */
function emptyRoot(name: string, executable: string, files: readonly string[]): string {
  const root = `${work}/${name}`;
  mkdirSync(`${root}/proc`, { recursive: true });
  copyFileSync(executable, `${root}/crigc`);
  copyFileSync(snapshot, `${root}/snapshot.json`);
  chmodSync(`${root}/snapshot.json`, 0o644);
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

test("in an empty root with the named libraries the executable plans from a snapshot as any user, and reports that no runtime is there", async () => {
  const root = emptyRoot("glibc", `${await released()}/crigc-linux-x64`, await glibcFiles());
  const plan = ["plan", "-o", "json", "--snapshot", "/snapshot.json"];
  for (const user of ["0:0", "65534:65534"]) {
    const within = inside(root, user);
    expect(await run(...within, "version")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await run(...within, ...plan)).toEqual(expected);
  }
  const { exitCode, stderr } = await run(...inside(root, "0:0"), "gc");
  expect(exitCode).toBe(3);
  expect(stderr).toContain("containerd");
});

test("the musl executable plans from a snapshot on musl's own loader and libc", async () => {
  const root = emptyRoot("musl", `${await released()}/crigc-linux-x64-musl`, []);
  cpSync(muslLibraries, `${root}/lib`, { recursive: true, verbatimSymlinks: true });
  const preload = ["/lib/ld-musl-x86_64.so.1", "--preload", "/lib/libglibc-names.so", "/crigc"];
  const plan = ["plan", "-o", "json", "--snapshot", "/snapshot.json"];
  expect(await run("chroot", root, ...preload, ...plan)).toEqual(expected);
});
