// The kubelet's flags: those of its process, and those in files of the node for one that hides them or is not running.

import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { isMap, trimmed } from "../../model/values.ts";
import { codeOf, procText, reasonOf } from "../files.ts";
import { unitDirectories } from "./pods.ts";

export interface KubeletFlag {
  readonly text: string;
  /** `--root-dir`, or the file that sets it. */
  readonly source: string;
}

export interface KubeletFlags {
  readonly flags: ReadonlyMap<string, KubeletFlag>;
  /** Files that exist but cannot be read or parsed. */
  readonly problems: readonly string[];
}

/**
 * A process's own flags win. A plain kubelet has everything on its command line; k3s, rke2 and MicroK8s read the rest
 * from files. Without a process, the files show the settings of the next one.
 */
export function kubeletFlags(running: readonly KubeletProcess[], root: string): KubeletFlags {
  const [first] = running;
  const files = new Files(root);
  const written = writtenFor(first ?? null, files);
  const own = [...(first?.flags ?? [])].map(
    ([name, text]) => [name, { text, source: `--${name}` }] as const,
  );
  return { flags: new Map([...written, ...own]), problems: files.problems };
}

type Flags = ReadonlyMap<string, KubeletFlag>;

const none: Flags = new Map();

function writtenFor(running: KubeletProcess | null, files: Files): Flags {
  switch (running?.program) {
    case undefined:
      return (
        [microK8s(files, null), rancher(files, "k3s", null), rancher(files, "rke2", null)].find(
          ({ size }) => size > 0,
        ) ?? unitFlags(files)
      );
    case "k3s":
    case "rke2":
      return rancher(files, running.program, sourced(running.programFlags, "flag"));
    case "kubelite":
      return microK8s(files, running.programFlags.get("kubelet-args-file") ?? null);
    default:
      return none;
  }
}

const sourced = (flags: ReadonlyMap<string, string>, source: string): Flags =>
  new Map([...flags].map(([name, text]) => [name, { text, source }]));

/** One argument per line, with the variables of the snap. */
function microK8s(files: Files, named: string | null): Flags {
  const path = named ?? "/var/snap/microk8s/current/args/kubelet";
  const text = files.text(path)?.replaceAll(
    /\$\{?(SNAP_DATA|SNAP_COMMON|SNAP)\}?/g,
    (_, name: string) =>
      ({
        SNAP_DATA: "/var/snap/microk8s/current",
        SNAP_COMMON: "/var/snap/microk8s/common",
        SNAP: "/snap/microk8s/current",
      })[name] ?? "",
  );
  return sourced(flagsIn(wordsOf(text ?? "")), path);
}

/** The words of an environment file, a unit or a list of arguments, without comments, quotes and assignments. */
const wordsOf = (text: string): readonly string[] =>
  text
    .split("\n")
    .filter((line) => !/^\s*[#;]/.test(line))
    .flatMap((line) => line.replace(/^\s*(?:Environment=)?"?\w+=(?=["']?-)/, "").split(/\s+/))
    .map((word) => trimmed(word, "\"'", "\"'\\"))
    .filter((word) => word !== "");

const environmentFiles = [
  "/var/lib/kubelet/kubeadm-flags.env",
  "/etc/default/kubelet",
  "/etc/sysconfig/kubelet",
] as const;

/** What systemd would start, in about its order: a later file's flag wins. */
function unitFlags(files: Files): Flags {
  const units = unitDirectories.flatMap((directory) => [
    `${directory}/kubelet.service`,
    ...files
      .names(`${directory}/kubelet.service.d`)
      .filter((name) => name.endsWith(".conf"))
      .map((name) => `${directory}/kubelet.service.d/${name}`),
  ]);
  return new Map(
    [...units, ...environmentFiles].flatMap((path) => [
      ...sourced(flagsIn(wordsOf(files.text(path) ?? "")), path),
    ]),
  );
}

/**
 * `kubelet-arg` of the configuration file and its drop-ins, over what the distribution itself passes. `own`: `null` if
 * it is not running.
 */
function rancher(files: Files, product: "k3s" | "rke2", own: Flags | null): Flags {
  const path = own?.get("config")?.text ?? `/etc/rancher/${product}/config.yaml`;
  const documents = [
    path,
    ...files
      .names(`${path}.d`)
      .filter((name) => /\.ya?ml$/.test(name))
      .map((name) => `${path}.d/${name}`),
  ].flatMap((source) => {
    const values = files.document(source);
    return values === null ? [] : [{ source, values }];
  });
  if (documents.length === 0 && own === null) return none;
  let passed: readonly (readonly [string, KubeletFlag])[] = [];
  let data = own?.get("data-dir")?.text ?? null;
  for (const { source, values } of documents) {
    data = own?.get("data-dir")?.text ?? textOf(values["data-dir"]) ?? data;
    const added = [...sourced(flagsIn(listOf(values["kubelet-arg+"]).map(dashed)), source)];
    const replaced = values["kubelet-arg"];
    passed =
      replaced === undefined
        ? [...passed, ...added]
        : [...sourced(flagsIn(listOf(replaced).map(dashed)), source), ...added];
  }
  const dropIns = `${data ?? `/var/lib/rancher/${product}`}/agent/etc/kubelet.conf.d`;
  const usual = files.names(dropIns).length === 0 ? [] : [["config-dir", dropIns] as const];
  return new Map([...sourced(new Map(usual), product), ...passed]);
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

const listOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((it) => typeof it === "string");

const fileBytesMax = 1024 * 1024;

/** Files of the node below a root; an unreadable file becomes a problem. */
export class Files {
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

  /** Sorted by bytes; empty if the directory does not exist. */
  names(path: string): readonly string[] {
    return this.#tried(path, () => readdirSync(join(this.#root, path)).toSorted()) ?? [];
  }

  /** Does not follow links, like the kubelet. */
  isDirectory(path: string): boolean {
    return this.#tried(path, () => lstatSync(join(this.#root, path)).isDirectory()) ?? false;
  }

  #read(path: string): string {
    const full = join(this.#root, path);
    const found = statSync(full);
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.size > fileBytesMax) throw new Error("it is too large");
    return readFileSync(full, "utf8");
  }

  #tried<T>(path: string, read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      if (!["ENOENT", "ENOTDIR"].includes(codeOf(error)))
        this.problems.push(`cannot read the kubelet's configuration ${path}: ${reasonOf(error)}`);
      return null;
    }
  }
}

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
