// The kubelets that run on this machine, by their command lines in /proc.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface KubeletProcess {
  readonly pid: number;
  /** The program's name: `kubelet`, or `k3s` and the like, which run it inside. */
  readonly program: string;
  /** The kubelet's own flags without dashes, the last of each name; for k3s and rke2 what `--kubelet-arg` passes on. */
  readonly flags: ReadonlyMap<string, string>;
}

const programs = new Set(["kubelet", "k3s", "rke2", "k0s", "kubelite", "hyperkube"]);
/** Processes that are looked at; a node has far fewer. */
const processesMax = 100_000;

/** Empty where none runs, and where other processes are hidden from us. */
export function kubeletProcesses(proc = "/proc"): readonly KubeletProcess[] {
  return namesIn(proc)
    .filter((name) => /^\d+$/.test(name))
    .slice(0, processesMax)
    .flatMap((pid) => {
      const words = commandLine(join(proc, pid, "cmdline"));
      const program = words[0]?.slice(words[0].lastIndexOf("/") + 1) ?? "";
      return programs.has(program) ? [{ pid: Number(pid), program, flags: flagsOf(words) }] : [];
    });
}

function namesIn(proc: string): readonly string[] {
  try {
    return readdirSync(proc);
  } catch {
    return [];
  }
}

/** Words end in a zero byte; k3s writes its own as one text with spaces. A process may be gone by now. */
function commandLine(path: string): readonly string[] {
  try {
    const text = readFileSync(path, "utf8").replace(/\0+$/, "");
    return text.includes("\0") ? text.split("\0") : text.split(/\s+/);
  } catch {
    return [];
  }
}

function flagsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [at, word] of words.entries()) {
    const match = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (match === null) continue;
    const next = words[at + 1] ?? "";
    const value = match[2] ?? (next.startsWith("-") ? "" : next);
    const passed =
      match[1] === "kubelet-arg" ? /^-*([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(value) : null;
    if (passed === null) flags.set(match[1] ?? "", value);
    else flags.set(passed[1] ?? "", passed[2] ?? "");
  }
  return flags;
}
