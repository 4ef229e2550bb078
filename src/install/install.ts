/** `crigc install` and `crigc uninstall`: a few idempotent writes below a root directory, then the service is enabled. */
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError, messageOf, usageError } from "../model/errors.ts";
import { codeOf, draftName, hostError, reasonOf, sha256OfFile } from "../node/files.ts";
import { deployFiles } from "./deploy.ts";

const EXECUTABLE = "/usr/local/bin/crigc";
export const OWN_EXECUTABLE = "/proc/self/exe";
export const CONFIG = "/etc/crigc/crigc.yaml";
/** With `--purge` they go with everything in them. */
const PURGED = ["/etc/crigc", "/run/crigc", "/var/lib/crigc"] as const;
const DIRECTORIES = ["/etc/crigc/conf.d", "/etc/crigc/keep.d", "/var/lib/crigc"] as const;

/** Where man, bash, zsh and fish look. */
export const SHELL_FILES = {
  man: "/usr/local/share/man/man8/crigc.8",
  bash: "/usr/local/share/bash-completion/completions/crigc",
  zsh: "/usr/local/share/zsh/site-functions/_crigc",
  fish: "/etc/fish/completions/crigc.fish",
} as const;
export type ShellTexts = Readonly<Record<keyof typeof SHELL_FILES, string>>;

interface Service {
  readonly file: string;
  readonly text: string;
  readonly mode: number;
  /** Its existence enables the service. */
  readonly link: string;
  /** The init system runs if this exists: absent in a container, and in the tree of an image. */
  readonly running: string;
  /** Those of systemd do not wait: during a boot that could wait for ever. The pattern matches a loaded unit only. */
  readonly commands: Readonly<Record<"changed" | "start" | "stop" | "removed", string>>;
}

const SERVICES = {
  systemd: {
    file: "/etc/systemd/system/crigc.service",
    text: deployFiles["systemd-unit"],
    mode: 0o644,
    link: "/etc/systemd/system/multi-user.target.wants/crigc.service",
    running: "/run/systemd/system",
    commands: {
      changed: "systemctl daemon-reload && systemctl try-restart --no-block crigc.service",
      start: "systemctl start --no-block crigc.service",
      stop: "systemctl stop 'crigc.servic[e]'",
      removed: "systemctl daemon-reload",
    },
  },
  openrc: {
    file: "/etc/init.d/crigc",
    text: deployFiles.openrc,
    mode: 0o755,
    link: "/etc/runlevels/default/crigc",
    running: "/run/openrc/softlevel",
    commands: {
      changed: "rc-service --ifstarted crigc restart",
      start: "rc-service crigc start",
      stop: "rc-service --ifstarted crigc stop",
      removed: "true",
    },
  },
} as const satisfies Readonly<Record<string, Service>>;

interface Options {
  /** The tree; "/" is the running system. */
  readonly root: string;
  readonly shellTexts: ShellTexts;
  readonly dryRun: boolean;
}

export interface InstallOptions extends Options {
  /** The executable to copy. */
  readonly from: string;
  /** Also start the agent. */
  readonly start: boolean;
}

/** Reports each change, before it is made. Throws `HostError`; a second call then completes the installation. */
export async function install(
  { root, from, shellTexts, start, dryRun }: InstallOptions,
  say: (change: string) => void,
): Promise<void> {
  const tree = new Tree(root, dryRun, say);
  const service = serviceIn(tree);
  if (start && !isRunning(tree, service))
    throw usageError(
      "--start",
      "",
      `cannot start the agent in ${root}: neither systemd nor OpenRC runs there; leave it out`,
    );
  const files = shellFiles(shellTexts);
  // What is in the way is reported before anything is written.
  for (const path of [EXECUTABLE, service.file, ...files.map(([it]) => it)])
    tree.checkReplaceable(path);
  for (const path of DIRECTORIES) tree.directory(path, path === "/var/lib/crigc" ? 0o700 : 0o755);
  const isNew = await tree.copy(from, EXECUTABLE);
  if (!tree.has(CONFIG)) tree.write(CONFIG, deployFiles.config, 0o644);
  for (const [path, text] of files) tree.write(path, text, 0o644);
  const isChanged = tree.write(service.file, service.text, service.mode);
  tree.link(service.link, service.file);
  const runs = isRunning(tree, service);
  if (runs && (isNew || isChanged)) tree.run(service.commands.changed);
  if (start) tree.run(service.commands.start);
  if (!tree.isChanged) say("already installed; nothing to do");
}

/** Removes what `install` writes, but no file that was edited since; `purge`: also configuration, keep rules and state. Throws `HostError`. */
export function uninstall(
  { root, shellTexts, purge, dryRun }: Options & { readonly purge: boolean },
  say: (change: string) => void,
): void {
  const tree = new Tree(root, dryRun, say);
  const service = serviceIn(tree);
  const runs = isRunning(tree, service);
  if (runs && tree.has(service.file)) tree.run(service.commands.stop);
  tree.remove(service.link, service.file);
  tree.remove(service.file, service.text);
  for (const [path, text] of shellFiles(shellTexts)) tree.remove(path, text);
  if (!purge) tree.remove(CONFIG, deployFiles.config);
  tree.remove(EXECUTABLE);
  for (const path of purge ? PURGED : []) tree.remove(path);
  for (const path of [...DIRECTORIES, "/etc/crigc"]) tree.removeIfEmpty(path);
  if (runs && tree.isChanged) tree.run(service.commands.removed);
  if (!tree.isChanged) say("crigc is not installed; nothing to do");
}

const shellFiles = (texts: ShellTexts) =>
  (["man", "bash", "zsh", "fish"] as const).map((it) => [SHELL_FILES[it], texts[it]] as const);

/** OpenRC if only that is there. An overlay that has neither yet gets the unit. */
function serviceIn(tree: Tree): Service {
  const hasAny = (paths: readonly string[]): boolean => paths.some((path) => tree.has(path));
  const hasSystemd = hasAny(["/usr/lib/systemd/systemd", "/lib/systemd/systemd"]);
  const hasOpenrc = hasAny(["/sbin/openrc-run", "/usr/sbin/openrc-run"]);
  return hasOpenrc && !hasSystemd ? SERVICES.openrc : SERVICES.systemd;
}

const isRunning = (tree: Tree, service: Service): boolean =>
  tree.root === "/" && tree.has(service.running);

/** The files below a root directory. A link never leads out of it: such a path is rejected. */
class Tree {
  readonly root: string;
  readonly #dryRun: boolean;
  readonly #say: (change: string) => void;
  isChanged = false;

  constructor(root: string, dryRun: boolean, say: (change: string) => void) {
    this.#dryRun = dryRun;
    this.#say = (change) => {
      this.isChanged = true;
      say(change);
    };
    try {
      this.root = realpathSync(root);
    } catch (error) {
      throw usageError("--root", root, `cannot install into ${root}: ${reasonOf(error)}`);
    }
    if (!lstatSync(this.root).isDirectory())
      throw usageError("--root", root, `cannot install into ${root}: not a directory`);
  }

  /** Where a path of the tree is outside of it. Only its last component may be a link, which nothing here follows. */
  #outside(path: string): string {
    const inside = join(this.root, dirname(path));
    let existing = inside;
    while (!existsSync(existing) && lstatOf(existing) === null) existing = dirname(existing);
    const real = realOf(existing);
    if (real !== this.root && !real.startsWith(this.root === "/" ? "/" : `${this.root}/`))
      throw new HostError(
        "refused",
        `cannot install ${path}: ${existing} is a link that leads out of ${this.root}`,
      );
    return join(real, inside.slice(existing.length), basename(path));
  }

  /** A link counts, whatever it leads to. */
  has(path: string): boolean {
    return lstatOf(this.#outside(path)) !== null;
  }

  checkReplaceable(path: string): void {
    replaceable(path, this.#outside(path));
  }

  /** `change` in the infinitive. Always returns true. */
  #do(change: string, action: () => void): true {
    this.#say(this.#dryRun ? `would ${change}` : change);
    if (this.#dryRun) return true;
    try {
      action();
    } catch (error) {
      throw hostError("write", error, `cannot ${change}`);
    }
    return true;
  }

  directory(path: string, mode: number): void {
    const outside = this.#outside(path);
    if (existsSync(outside)) return;
    this.#do(`create directory ${path}`, () => {
      makeParents(outside);
      mkdirSync(outside);
      chmodSync(outside, mode);
    });
  }

  /** Returns whether the file was not like that before. */
  write(path: string, text: string, mode: number): boolean {
    const outside = this.#outside(path);
    const found = replaceable(path, outside);
    if (found !== null && readFileSync(outside, "utf8") === text && (found.mode & 0o777) === mode)
      return false;
    return this.#do(`write ${path}`, () =>
      replaceFile(outside, (draft) => {
        writeFileSync(draft, text, { flag: "wx", flush: true });
        chmodSync(draft, mode);
      }),
    );
  }

  /** Copies an executable. Returns whether it was not there before. */
  async copy(from: string, path: string): Promise<boolean> {
    const outside = this.#outside(path);
    const found = replaceable(path, outside);
    if (found !== null && (await sha256OfFile(outside)) === (await sha256OfFile(from)))
      return false;
    return this.#do(`copy the executable to ${path}`, () =>
      replaceFile(outside, (draft) => {
        copyFileSync(from, draft, constants.COPYFILE_EXCL);
        chmodSync(draft, 0o755);
        const file = openSync(draft, "r");
        fsyncSync(file);
        closeSync(file);
      }),
    );
  }

  link(path: string, target: string): void {
    const outside = this.#outside(path);
    const found = lstatOf(outside);
    if (found?.isSymbolicLink() === true && readlinkSync(outside) === target) return;
    if (found !== null && !found.isSymbolicLink()) replaceable(path, outside);
    this.#do(`enable the service: link ${path} to ${target}`, () =>
      replaceFile(outside, (draft) => symlinkSync(target, draft)),
    );
  }

  /** `written`: the text or the target of the link that `install` wrote there, without which it stays; absent: all goes. */
  remove(path: string, written?: string): void {
    const outside = this.#outside(path);
    const found = lstatOf(outside);
    if (found === null) return;
    const content = found.isSymbolicLink()
      ? readlinkSync
      : (it: string) => readFileSync(it, "utf8");
    if (written === undefined || (!found.isDirectory() && content(outside) === written))
      this.#do(`remove ${path}`, () => rmSync(outside, { recursive: true }));
    else this.#say(`keep ${path}, which was edited or is of another version`);
  }

  removeIfEmpty(path: string): void {
    if (this.#dryRun) return;
    const outside = this.#outside(path);
    try {
      rmdirSync(outside);
      this.#say(`remove directory ${path}`);
    } catch (error) {
      if (!["ENOENT", "ENOTEMPTY", "ENOTDIR"].includes(codeOf(error) ?? "")) throw error;
    }
  }

  /** A line of shell, with what it printed as the reason of a failure. */
  run(line: string): void {
    this.#say(`${this.#dryRun ? "would " : ""}run ${line}`);
    if (this.#dryRun) return;
    const command = ["sh", "-c", line];
    const ran = Bun.spawnSync(command, { stdin: "ignore", timeout: COMMAND_TIMEOUT_MS });
    if (ran.exitCode === 0) return;
    const printed = [ran.stderr, ran.stdout].join(" ").replaceAll(/\s+/g, " ").trim().slice(0, 500);
    const why = printed || `it exited with ${ran.signalCode ?? ran.exitCode}`;
    throw new HostError("refused", `cannot run ${line}: ${why}; run it by hand to see why`);
  }
}

/** A stop waits for the removal in flight. */
const COMMAND_TIMEOUT_MS = 200_000;

function lstatOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return null;
    throw hostError("read", error, `cannot read ${path}`);
  }
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new HostError("refused", `cannot follow the link ${path}: ${messageOf(error)}`);
  }
}

/** `null`: absent. Throws for what is not a file, such as the link of a masked service. */
function replaceable(path: string, outside: string): Stats | null {
  const found = lstatOf(outside);
  if (found === null || found.isFile()) return found;
  throw new HostError(
    "refused",
    `cannot install ${path}: a link, directory or special file is there; move it away, or unmask the service, first`,
  );
}

/** Whatever the mask of the process: other users read what is installed. */
function makeParents(path: string): void {
  const parent = dirname(path);
  if (existsSync(parent)) return;
  makeParents(parent);
  mkdirSync(parent);
  chmodSync(parent, 0o755);
}

/** A draft in the same directory replaces the path at once, so that nothing reads half of it. */
function replaceFile(path: string, make: (draft: string) => void): void {
  makeParents(path);
  const draft = join(dirname(path), draftName(basename(path)));
  try {
    make(draft);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
