// Where an executable runs: an empty root with the named libraries, musl, a hostile working directory, Bun's variables.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname } from "node:path";

import { command, type CommandResult, tryCommand } from "../../support/containerd/command.ts";
import { muslLibraries, released, run, starting } from "./build.ts";
import { recordSnapshot } from "./snapshot.ts";

setDefaultTimeout(120_000);

let scratch: string;
let snapshot: string;
/** What the plan of the recorded node is on this very machine. */
let expected: CommandResult;

beforeAll(async () => {
  scratch = mkdtempSync(`${tmpdir()}/crigc-surroundings-`);
  chmodSync(scratch, 0o755);
  snapshot = await recordSnapshot(scratch);
  expected = await run(...(await starting("x64")), "plan", "-o", "json", "--snapshot", snapshot);
  expect(expected).toMatchObject({ exitCode: 0, stderr: "" });
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A root with one executable, the snapshot, and nothing else but `files`, which go to the same place inside. */
function emptyRoot(name: string, executable: string, files: readonly string[]): string {
  const root = `${scratch}/${name}`;
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

describe("an empty root with the named libraries", () => {
  let root: string;

  beforeAll(async () => {
    root = emptyRoot("glibc", `${await released()}/crigc-linux-x64`, await glibcFiles());
  });

  test.each([
    ["root", "0:0"],
    ["nobody", "65534:65534"],
  ])("lets the executable plan from a snapshot as %s", async (_, user) => {
    const within = inside(root, user);
    expect(await run(...within, "version")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await run(...within, "plan", "-o", "json", "--snapshot", "/snapshot.json")).toEqual(
      expected,
    );
  });

  test("lets the executable report that no runtime is there", async () => {
    const { exitCode, stderr } = await run(...inside(root, "0:0"), "gc");
    expect(exitCode).toBe(3);
    expect(stderr).toContain("containerd");
  });
});

describe("musl", () => {
  test("the musl executable plans from a snapshot on musl's own loader and libc", async () => {
    const root = emptyRoot("musl", `${await released()}/crigc-linux-x64-musl`, []);
    cpSync(muslLibraries, `${root}/lib`, { recursive: true, verbatimSymlinks: true });
    const preload = ["/lib/ld-musl-x86_64.so.1", "--preload", "/lib/libglibc-names.so", "/crigc"];
    const planned = await run(
      "chroot",
      root,
      ...preload,
      "plan",
      "-o",
      "json",
      "--snapshot",
      "/snapshot.json",
    );
    expect(planned).toEqual(expected);
  });
});

describe("a hostile working directory", () => {
  const evil = `import { writeFileSync } from "node:fs"; writeFileSync(process.env.EVIL_FILE ?? "/tmp/evil", "ran");`;
  let directory: string;

  beforeAll(() => {
    directory = `${scratch}/hostile`;
    mkdirSync(`${directory}/node_modules/@grpc/grpc-js`, { recursive: true });
    mkdirSync(`${directory}/node_modules/valibot`, { recursive: true });
    const file = (name: string, text: string): void => writeFileSync(`${directory}/${name}`, text);
    file(".env", "CRIGC_MAX_IMAGES=7\nBUN_OPTIONS=--preload=./evil.ts\nCRIGC_CONFIG=./evil.yaml\n");
    file(".env.production", "CRIGC_MAX_IMAGES=7\n");
    file(".env.local", "CRIGC_MAX_IMAGES=7\n");
    file("bunfig.toml", 'preload = ["./evil.ts"]\n[run]\nbun = true\n');
    file("evil.ts", evil);
    file("evil.yaml", "apiVersion: crigc/v1\nkind: CrigcConfiguration\nmaxImages: 7\n");
    file("tsconfig.json", '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}');
    file(
      "package.json",
      '{"name":"crigc","main":"evil.ts","scripts":{"plan":"touch ran"},"imports":{"#x":"./evil.ts"}}',
    );
    for (const name of ["@grpc/grpc-js", "valibot"]) {
      file(`node_modules/${name}/package.json`, `{"name":"${name}","main":"index.js"}`);
      file(`node_modules/${name}/index.js`, evil);
    }
  });

  const within = async (...words: readonly string[]): Promise<CommandResult> =>
    tryCommand([
      "sh",
      "-c",
      'cd "$0" && exec "$@"',
      directory,
      "/usr/bin/env",
      "-i",
      `EVIL_FILE=${directory}/ran`,
      ...words,
    ]);

  test("is neither read nor run", async () => {
    const executable = await starting("x64");
    expect(await within(...executable, "plan", "-o", "json", "--snapshot", snapshot)).toEqual(
      expected,
    );
    const { stdout } = await within(...executable, "config", "-o", "json");
    expect(JSON.parse(stdout).values.maxImages).toMatchObject({ source: "default" });
    expect(await Bun.file(`${directory}/ran`).exists()).toBe(false);
  });

  test("matters for BUN_OPTIONS and BUN_BE_BUN only, which the unit unsets", async () => {
    const executable = await starting("x64");
    const { stdout } = await within("BUN_BE_BUN=1", ...executable, "--version");
    expect(stdout.trim()).toBe(Bun.version);
    await within("BUN_OPTIONS=--preload=./evil.ts", ...executable, "version");
    expect(await Bun.file(`${directory}/ran`).exists()).toBe(true);
  });
});
