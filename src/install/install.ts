/** `crigc install` and `crigc uninstall`: a few idempotent writes below a root directory, then the service is enabled. */
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  existsSync,
  lstatSync,
  mkdirSync,
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
import { pipeline } from "node:stream/promises";

import { HostError, messageOf } from "../model/errors.ts";
import { codeOf, draftName, hostError, sha256OfFile } from "../node/files.ts";
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

export interface InstallOptions {
  /** The tree; "/" is the running system. */
  readonly root: string;
  /** The executable to copy. */
  readonly from: string;
  readonly shellTexts: ShellTexts;
  /** Also start the agent. */
  readonly start: boolean;
  readonly dryRun: boolean;
}

/** Reports each change, before it is made. Throws `HostError`; a second call then completes the installation. */
export async function install(
  { root, from, shellTexts, start, dryRun }: InstallOptions,
  say: (change: string) => void,
): Promise<void> {
  const tree = new Tree(root, dryRun, say);
  const service = serviceIn(tree);
  if (start && !isRunning(tree, service))
    throw new HostError(
      "refused",
      `cannot start the agent in ${root}: neither systemd nor OpenRC runs there; leave out --start`,
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
  if (!isRunning(tree, service)) return;
  if (isNew || isChanged) await tree.run(service.commands.changed);
  if (start) await tree.run(service.commands.start);
}

export interface UninstallOptions {
  readonly root: string;
  readonly shellTexts: ShellTexts;
  /** Also configuration, keep rules and state. */
  readonly purge: boolean;
  readonly dryRun: boolean;
}

/** Removes what `install` writes, but no file that was edited since. Throws `HostError`. */
export async function uninstall(
  { root, shellTexts, purge, dryRun }: UninstallOptions,
  say: (change: string) => void,
): Promise<void> {
  const tree = new Tree(root, dryRun, say);
  const service = serviceIn(tree);
  const runs = isRunning(tree, service);
  if (runs && tree.has(service.file)) await tree.run(service.commands.stop);
  tree.removeLink(service.link, service.file);
  tree.removeUnedited(service.file, service.text);
  for (const [path, text] of shellFiles(shellTexts)) tree.removeUnedited(path, text);
  if (!purge) tree.removeUnedited(CONFIG, deployFiles.config);
  tree.remove(EXECUTABLE);
  for (const path of purge ? PURGED : []) tree.remove(path);
  for (const path of [...DIRECTORIES, "/etc/crigc"]) tree.removeIfEmpty(path);
  if (runs) await tree.run(service.commands.removed);
}

const shellFiles = (texts: ShellTexts): readonly (readonly [path: string, text: string])[] => [
  [SHELL_FILES.man, texts.man],
  [SHELL_FILES.bash, texts.bash],
  [SHELL_FILES.zsh, texts.zsh],
  [SHELL_FILES.fish, texts.fish],
];

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

  constructor(root: string, dryRun: boolean, say: (change: string) => void) {
    this.#dryRun = dryRun;
    this.#say = say;
    try {
      this.root = realpathSync(root);
    } catch (error) {
      throw hostError("read", error, (why) => `cannot install into ${root}: ${why}`);
    }
    if (!lstatSync(this.root).isDirectory())
      throw new HostError("refused", `cannot install into ${root}: not a directory`);
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
      throw hostError("write", error, (why) => `cannot ${change}: ${why}`);
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
    if (found !== null && readFileSync(outside, "utf8") === text && modeOf(found) === mode)
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
    this.#say(`${this.#dryRun ? "would " : ""}copy the executable to ${path}`);
    if (this.#dryRun) return true;
    const draft = join(dirname(outside), draftName(basename(outside)));
    try {
      makeParents(outside);
      await pipeline(
        createReadStream(from),
        createWriteStream(draft, { flags: "wx", flush: true }),
      );
      chmodSync(draft, 0o755);
      renameSync(draft, outside);
    } catch (error) {
      rmSync(draft, { force: true });
      throw hostError("write", error, (why) => `cannot write ${path}: ${why}`);
    }
    return true;
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

  removeLink(path: string, target: string): void {
    const outside = this.#outside(path);
    if (lstatOf(outside)?.isSymbolicLink() === true && readlinkSync(outside) === target)
      this.#do(`remove ${path}`, () => rmSync(outside));
  }

  removeUnedited(path: string, text: string): void {
    const outside = this.#outside(path);
    if (lstatOf(outside)?.isFile() !== true) return;
    if (readFileSync(outside, "utf8") === text) this.#do(`remove ${path}`, () => rmSync(outside));
    else this.#say(`keep ${path}, which was edited or is of another version`);
  }

  /** With everything in it; a link alone. */
  remove(path: string): void {
    const outside = this.#outside(path);
    if (lstatOf(outside) !== null)
      this.#do(`remove ${path}`, () => rmSync(outside, { recursive: true }));
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
  async run(line: string): Promise<void> {
    this.#say(`${this.#dryRun ? "would " : ""}run ${line}`);
    if (this.#dryRun) return;
    const child = Bun.spawn(["sh", "-c", line], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: COMMAND_TIMEOUT_MS,
    });
    const [stdout, stderr, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    if (code === 0) return;
    const printed = `${stderr}\n${stdout}`.trim().split("\n").slice(0, 5).join(" ");
    const why = printed === "" ? `it exited with ${child.signalCode ?? code}` : printed;
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
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}`);
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
  const isMasked = found.isSymbolicLink() && readlinkSync(outside) === "/dev/null";
  throw new HostError(
    "refused",
    isMasked
      ? `cannot install ${path}: the service is masked; unmask it first`
      : `cannot install ${path}: a link, directory or special file is there; move it away first`,
  );
}

const modeOf = (found: { readonly mode: number }): number => found.mode & 0o777;

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
