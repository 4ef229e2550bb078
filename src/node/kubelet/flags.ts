// The kubelets running on this machine, and their flags: those of the process, and those in files of the node for one
// that hides them or is not running.

import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { isMap, trimmed } from "../../model/values.ts";
import { isAbsent, namesIn, procText, reasonOf } from "../files.ts";
import { environmentFiles, unitDirectories } from "./pods.ts";

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
const PROCESSES_MAX = 100_000;

/**
 * A plain kubelet comes before programs that contain one. Empty if none is running or other processes are hidden. One
 * in a nested PID namespace belongs to a node within this one (kind, k3d).
 */
export function kubeletProcesses(proc = "/proc"): readonly KubeletProcess[] {
  // A user who calls a program `kubelet` must not choose crigc's thresholds and directories.
  const trusted = new Set(["0", ...fieldOf(procText(join(proc, "self", "status")), "Uid")]);
  return namesIn(proc)
    .filter((name) => /^\d+$/.test(name))
    .slice(0, PROCESSES_MAX)
    .filter((pid) => mayBeKubelet(join(proc, pid), trusted))
    .flatMap((pid) => {
      // Words end in a zero byte; k3s writes its own as one text with spaces.
      const line = procText(join(proc, pid, "cmdline")).replace(/\0+$/, "");
      const commandLine = line.includes("\0") ? line.split("\0") : line.split(/\s+/);
      const program = commandLine[0]?.slice(commandLine[0].lastIndexOf("/") + 1) ?? "";
      if (!programs.includes(program)) return [];
      return [{ pid: Number(pid), program, ...flagsOf(commandLine) }];
    })
    .toSorted((one, other) => programs.indexOf(one.program) - programs.indexOf(other.program));
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

function flagsOf(words: readonly string[]): Pick<KubeletProcess, "flags" | "programFlags"> {
  const pairs = pairsIn(words);
  const programFlags = new Map(pairs);
  if (/(?:^|\/)(?:kubelet|hyperkube)$/.test(words[0] ?? ""))
    return { flags: programFlags, programFlags };
  const passed = pairs.flatMap(([name, value]) => {
    if (name === "kubelet-arg") return [dashed(value)];
    return name === "kubelet-extra-args" ? value.split(/\s+/) : [];
  });
  return { flags: new Map(pairsIn(passed)), programFlags };
}

/** `--name=value`, `--name value` and `--name`. */
const pairsIn = (words: readonly string[]): readonly (readonly [string, string])[] =>
  words.flatMap((word, at) => {
    const match = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (match === null) return [];
    const next = words[at + 1] ?? "";
    return [[match[1] ?? "", match[2] ?? (next.startsWith("-") ? "" : next)] as const];
  });

/** k3s accepts arguments for the kubelet with and without dashes. */
const dashed = (argument: string): string => `--${argument.replace(/^-+/, "")}`;

export interface KubeletFlag {
  readonly text: string;
  /** `--root-dir`, or the file that sets it. */
  readonly source: string;
}

/** The last of each name counts. */
type Flags = readonly (readonly [name: string, flag: KubeletFlag])[];

/**
 * A process's own flags win. A plain kubelet has everything on its command line; k3s, rke2 and MicroK8s read the rest
 * from files. Without a process, the files show the settings of the next one.
 */
export function kubeletFlags(
  running: KubeletProcess | undefined,
  files: NodeFiles,
): ReadonlyMap<string, KubeletFlag> {
  const own = [...(running?.flags ?? [])].map(
    ([name, text]) => [name, { text, source: `--${name}` }] as const,
  );
  return new Map([...flagsInFiles(running, files), ...own]);
}

function flagsInFiles(running: KubeletProcess | undefined, files: NodeFiles): Flags {
  switch (running?.program) {
    case undefined: {
      const distributions = [microK8s, rancher("k3s"), rancher("rke2")];
      const found = distributions.map((read) => read(files)).find(({ length }) => length > 0);
      return found ?? unitFlags(files);
    }
    case "k3s":
    case "rke2":
      return rancher(running.program)(files, running.programFlags);
    case "kubelite":
      return microK8s(files, running.programFlags);
    default:
      return [];
  }
}

const sourced = (words: readonly string[], source: string): Flags =>
  pairsIn(words).map(([name, text]) => [name, { text, source }]);

const SNAP_VARIABLES: Readonly<Record<string, string>> = {
  SNAP_DATA: "/var/snap/microk8s/current",
  SNAP_COMMON: "/var/snap/microk8s/common",
  SNAP: "/snap/microk8s/current",
};

/** One argument per line, with the variables of the snap. */
function microK8s(files: NodeFiles, own?: ReadonlyMap<string, string>): Flags {
  const path = own?.get("kubelet-args-file") ?? "/var/snap/microk8s/current/args/kubelet";
  const text = (files.text(path) ?? "").replaceAll(
    /\$\{?(SNAP_DATA|SNAP_COMMON|SNAP)\}?/g,
    (_, name: string) => SNAP_VARIABLES[name] ?? "",
  );
  return sourced(wordsOf(text), path);
}

/** The words of an environment file, a unit or a list of arguments, without comments, quotes and assignments. */
const wordsOf = (text: string): readonly string[] =>
  text
    .split("\n")
    .filter((line) => !/^\s*[#;]/.test(line))
    .flatMap((line) => line.replace(/^\s*(?:Environment=)?"?\w+=(?=["']?-)/, "").split(/\s+/))
    .map((word) => trimmed(word, "\"'", "\"'\\"))
    .filter((word) => word !== "");

/** What systemd would start, in about its order: a later file's flag wins. */
function unitFlags(files: NodeFiles): Flags {
  const units = unitDirectories.flatMap((directory) => [
    `${directory}/kubelet.service`,
    ...files.paths(`${directory}/kubelet.service.d`, /\.conf$/),
  ]);
  return [...units, ...environmentFiles].flatMap((path) =>
    sourced(wordsOf(files.text(path) ?? ""), path),
  );
}

/**
 * `kubelet-arg` of the configuration file and its drop-ins, over what the distribution itself passes. `own`: its flags,
 * if it is running.
 */
const rancher =
  (product: "k3s" | "rke2") =>
  (files: NodeFiles, own?: ReadonlyMap<string, string>): Flags => {
    const path = own?.get("config") ?? `/etc/rancher/${product}/config.yaml`;
    const documents = [path, ...files.paths(`${path}.d`, /\.ya?ml$/)].flatMap((source) => {
      const values = files.document(source);
      return values === null ? [] : [{ source, values }];
    });
    if (documents.length === 0 && own === undefined) return [];
    let passed: Flags = [];
    let data = `/var/lib/rancher/${product}`;
    for (const { source, values } of documents) {
      const { "kubelet-arg": replacing, "kubelet-arg+": adding, "data-dir": directory } = values;
      if (typeof directory === "string") data = directory;
      if (replacing !== undefined) passed = sourced(argumentsIn(replacing), source);
      passed = [...passed, ...sourced(argumentsIn(adding), source)];
    }
    const dropIns = `${own?.get("data-dir") ?? data}/agent/etc/kubelet.conf.d`;
    const hasDropIns = files.paths(dropIns).length > 0;
    return hasDropIns ? [["config-dir", { text: dropIns, source: product }], ...passed] : passed;
  };

const argumentsIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((it) => typeof it === "string").map(dashed);

const FILE_BYTES_MAX = 1024 * 1024;

/** Files of the node below a root; an unreadable file becomes a problem. */
export class NodeFiles {
  readonly problems: string[] = [];
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** `null` if it does not exist, or cannot be read. */
  text(path: string): string | null {
    return this.#tried(path, () => this.#read(path));
  }

  /** A map in YAML or JSON. */
  document(path: string): Readonly<Record<string, unknown>> | null {
    return this.#tried(path, () => {
      const value: unknown = Bun.YAML.parse(this.#read(path));
      if (isMap(value)) return value;
      throw new Error("it is not a configuration");
    });
  }

  /** Of a directory's entries, sorted by bytes; empty if it does not exist. */
  paths(directory: string, matching = /(?:)/): readonly string[] {
    const names = this.#tried(directory, () => readdirSync(join(this.#root, directory))) ?? [];
    return names
      .filter((name) => matching.test(name))
      .toSorted()
      .map((name) => `${directory}/${name}`);
  }

  /** Does not follow links, like the kubelet. */
  isDirectory(path: string): boolean {
    return this.#tried(path, () => lstatSync(join(this.#root, path)).isDirectory()) ?? false;
  }

  #read(path: string): string {
    const full = join(this.#root, path);
    const found = statSync(full);
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.size > FILE_BYTES_MAX) throw new Error("it is too large");
    return readFileSync(full, "utf8");
  }

  #tried<T>(path: string, read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      if (!isAbsent(error))
        this.problems.push(`cannot read the kubelet's configuration ${path}: ${reasonOf(error)}`);
      return null;
    }
  }
}
