// The kubelets running on this machine, by their command lines in /proc.

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { procText } from "../files/proc-text.ts";

export interface KubeletProcess {
  readonly pid: number;
  /** The program's name: `kubelet`, or one that contains it, such as `k3s`. */
  readonly program: string;
  /** The kubelet's own flags without dashes, the last of each name; for k3s, rke2 and k0s those that they pass on. */
  readonly flags: ReadonlyMap<string, string>;
  /** The flags of the containing program; for a plain kubelet, its own. */
  readonly programFlags: ReadonlyMap<string, string>;
}

const programs = ["kubelet", "kubelite", "k3s", "rke2", "k0s", "hyperkube"];
/** Maximum number of processes to examine; a node has far fewer. */
const processesMax = 100_000;

/**
 * A plain kubelet comes before programs that contain one. Empty if none is running or other processes are hidden. One
 * in a nested PID namespace belongs to a node within this one (kind, k3d).
 */
export function kubeletProcesses(proc = "/proc"): readonly KubeletProcess[] {
  // A user who calls a program `kubelet` must not choose crigc's thresholds and directories.
  const trusted = new Set(["0", ...fieldOf(procText(join(proc, "self", "status")), "Uid")]);
  return namesIn(proc)
    .filter((name) => /^\d+$/.test(name))
    .slice(0, processesMax)
    .filter((pid) => mayBeKubelet(join(proc, pid), trusted))
    .flatMap((pid) => {
      const words = commandLine(join(proc, pid, "cmdline"));
      const program = words[0]?.slice(words[0].lastIndexOf("/") + 1) ?? "";
      return programs.includes(program) ? [{ pid: Number(pid), program, ...flagsOf(words) }] : [];
    })
    .toSorted((one, other) => programs.indexOf(one.program) - programs.indexOf(other.program));
}

function namesIn(proc: string): readonly string[] {
  try {
    return readdirSync(proc);
  } catch {
    return [];
  }
}

/** Checked first, because reading a command line may block: it waits for the memory of a process that hangs. */
function mayBeKubelet(directory: string, trusted: ReadonlySet<string>): boolean {
  const name = procText(join(directory, "comm"));
  if (!programs.some((program) => name.startsWith(program))) return false;
  const status = procText(join(directory, "status"));
  const users = fieldOf(status, "Uid");
  return (
    fieldOf(status, "NSpid").length === 1 &&
    users.length > 0 &&
    users.every((user) => trusted.has(user))
  );
}

/** The words of one line of a status; empty if there is no such line. */
const fieldOf = (status: string, name: string): readonly string[] =>
  new RegExp(`^${name}:\\s*(.+)$`, "m").exec(status)?.[1]?.trim().split(/\s+/) ?? [];

/** Words end in a zero byte; k3s writes its own as one text with spaces. */
function commandLine(path: string): readonly string[] {
  const text = procText(path).replace(/\0+$/, "");
  return text.includes("\0") ? text.split("\0") : text.split(/\s+/);
}

/** `--name=value`, `--name value` and `--name`, as words; the last of each name counts. */
export function flagsIn(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(pairsIn(words));
}

function pairsIn(words: readonly string[]): readonly (readonly [string, string])[] {
  return words.flatMap((word, at) => {
    const match = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (match === null) return [];
    const next = words[at + 1] ?? "";
    return [[match[1] ?? "", match[2] ?? (next.startsWith("-") ? "" : next)] as const];
  });
}

function flagsOf(words: readonly string[]): Pick<KubeletProcess, "flags" | "programFlags"> {
  const program = words[0] ?? "";
  const pairs = pairsIn(words);
  const programFlags = new Map(pairs);
  if (/(?:^|\/)(?:kubelet|hyperkube)$/.test(program)) return { flags: programFlags, programFlags };
  const passed = pairs.flatMap(([name, value]) => {
    if (name === "kubelet-arg") return [dashed(value)];
    return name === "kubelet-extra-args" ? value.split(/\s+/) : [];
  });
  return { flags: flagsIn(passed), programFlags };
}

/** k3s accepts arguments for the kubelet with and without dashes. */
export const dashed = (argument: string): string => `--${argument.replace(/^-+/, "")}`;
