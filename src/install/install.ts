/** `crigc install`: installs executable, manual page, completions, service, configuration and keep directory into a tree. */

import { HostError } from "../model/errors.ts";
import { isElf, loaderOf } from "../node/executable.ts";
import { sha256OfFile } from "../node/files.ts";
import { RootedTree } from "../node/rooted-tree.ts";
import { factsWithCopies, initOf, isOverlay, isRunning, manifestIn } from "./facts.ts";
import type { Init, Manifest } from "./manifest.ts";
import { DEFAULT_BIN_DIRECTORY, installed, type ShellTexts } from "./paths.ts";
import {
  backupPathOf,
  BASELINE_FILES,
  filesOf,
  installPlan,
  type InstallRequest,
  placesOf,
} from "./plan.ts";
import { apply, type Step } from "./step.ts";

export interface InstallOptions {
  readonly version: string;
  /** The tree; "/" is the running system. */
  readonly root: string;
  readonly from: string;
  /** Destination directory in the tree; `null`: that of an earlier installation, else the default. */
  readonly binDirectory: string | null;
  /** `null`: that of an earlier installation, else detected. */
  readonly init: Init | null;
  readonly shellTexts: ShellTexts;
  readonly baseline: boolean;
  /** Also start the agent, if the init system is running. */
  readonly start: boolean;
  readonly dryRun: boolean;
}

/** Returns the steps done, or to be done. Calls `done` after each. */
export async function install(
  options: InstallOptions,
  done: (step: Step) => void,
): Promise<readonly Step[]> {
  const tree = new RootedTree(options.root);
  if (!(await tree.isThere()))
    throw new HostError(
      "refused",
      `cannot install into ${options.root}: directory not found; set --root to the file tree of a node image`,
    );
  const before = await withoutRemovedBaseline(await manifestIn(tree), tree);
  const overlay = options.root !== "/" && (await isOverlay(tree));
  // After an uninstall only the record is left.
  const kept =
    before !== null && (await tree.look(before.executable)).kind === "file" ? before : null;
  const init = options.init ?? kept?.init ?? (overlay ? "systemd" : await initOf(tree));
  const path =
    options.binDirectory === null
      ? (kept?.executable ?? `${DEFAULT_BIN_DIRECTORY}/crigc`)
      : `${options.binDirectory}/crigc`;
  requireElf(options);
  if (!overlay) await requireLoader(options, tree);
  const isLive = async (it: Init): Promise<boolean> =>
    options.root === "/" && (await isRunning(it, tree));
  const request: InstallRequest = {
    version: options.version,
    init,
    executable: { path, from: options.from, sha256: await sha256OfFile(options.from) },
    shellTexts: options.shellTexts,
    baseline: options.baseline,
    live: await isLive(init),
    stops: before !== null && before.init !== init && (await isLive(before.init)),
    start: options.start,
  };
  const places = [
    ...filesOf(request, before).map((it) => it.path),
    ...(before === null ? [] : placesOf(before)),
  ];
  const facts = await factsWithCopies(tree, [installed.manifest, ...places], backupPathOf);
  const steps = installPlan(request, before, facts);
  if (!options.dryRun) await apply(steps, tree, done);
  return steps;
}

/** An upgrade keeps the baseline of an earlier installation, unless the operator removed its file since. */
async function withoutRemovedBaseline(
  before: Manifest | null,
  tree: RootedTree,
): Promise<Manifest | null> {
  if (before === null) return null;
  const files = { ...before.files };
  for (const path of BASELINE_FILES)
    if ((await tree.look(path)).kind === "absent") delete files[path];
  return { ...before, files };
}

/** An archive would be installed but never start. */
function requireElf({ from, root }: InstallOptions): void {
  if (!isElf(from))
    throw new HostError(
      "refused",
      `cannot install ${from} into ${root}: it is not a Linux executable; use an unpacked one, such as crigc-linux-x64`,
    );
}

/** Neither would a glibc build on Alpine, or one for another processor. */
async function requireLoader({ from, root }: InstallOptions, tree: RootedTree): Promise<void> {
  const loader = loaderOf(from);
  if (loader === null || (await tree.look(loader)).kind !== "absent") return;
  throw new HostError(
    "refused",
    `cannot install ${from} into ${root}: it needs ${loader}, which is missing there; use the build for its processor and libc (musl on Alpine)`,
  );
}
