// The release under test, built once for all files of the suite, and how each of its executables is run here.

import { resolve } from "node:path";

import { command, type CommandResult, tryCommand } from "../../support/containerd/command.ts";

export const top = resolve(import.meta.dir, "../../..");

export const targets = ["x64", "x64-baseline", "arm64", "x64-musl", "arm64-musl"] as const;

const key = Symbol.for("crigc.release-under-test");
const memo = globalThis as { [key]?: Promise<string> };

/** The folder with everything that `scripts/release` makes. */
export function released(): Promise<string> {
  memo[key] ??= buildRelease();
  return memo[key];
}

async function buildRelease(): Promise<string> {
  if (process.env["CRIGC_RELEASE"] !== undefined) return process.env["CRIGC_RELEASE"];
  await command("env", `CRIGC_COMMIT=${commit}`, `${top}/scripts/release`);
  return `${top}/dist/release`;
}

/** What a build from a folder without git can be given, too. */
export const commit = "0123456789abcdef0123456789abcdef01234567";

const cache = `${top}/.cache/release`;

/** The words that start an executable: by itself, or under an emulated processor. */
export async function starting(how: "x64" | "arm64" | "nehalem"): Promise<readonly string[]> {
  const folder = await released();
  switch (how) {
    case "x64":
      return [`${folder}/crigc-linux-x64`];
    case "arm64":
      return [
        `${cache}/bin/qemu-aarch64-static`,
        "-L",
        `${cache}/arm64`,
        `${folder}/crigc-linux-arm64`,
      ];
    case "nehalem":
      return [
        `${cache}/bin/qemu-x86_64-static`,
        "-cpu",
        "Nehalem",
        `${folder}/crigc-linux-x64-baseline`,
      ];
  }
}

/** The loader and libraries of musl, as Alpine would have them in /lib. */
export const muslLibraries = `${cache}/musl/lib`;

/** An emulator of a processor that is older than what is supported. */
export const tooOld = [`${cache}/bin/qemu-x86_64-static`, "-cpu", "core2duo"] as const;

/** Runs to the end with an environment of nothing but PATH. */
export function run(...words: readonly string[]): Promise<CommandResult> {
  return tryCommand(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", ...words]);
}
