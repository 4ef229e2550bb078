/** `crigc uninstall`: removes what `install` installed, with `purge` also configuration and state. */

import { RootedTree } from "../node/rooted-tree.ts";
import { factOf, type Facts, factsWithCopies, isRunning, manifestIn } from "./facts.ts";
import type { Manifest } from "./manifest.ts";
import { installed } from "./paths.ts";
import { backupPathOf, saved } from "./plan.ts";
import { apply, type Step, stoppedSteps, stopSteps } from "./step.ts";

export interface UninstallOptions {
  /** The tree; "/" is the running system. */
  readonly root: string;
  readonly purge: boolean;
  readonly dryRun: boolean;
}

/** The steps done, or to be done; `null` if no installation is recorded in the tree. */
export async function uninstall(
  options: UninstallOptions,
  done: (step: Step) => void,
): Promise<readonly Step[] | null> {
  const tree = new RootedTree(options.root);
  const manifest = await manifestIn(tree);
  if (manifest === null) return null;
  const live = options.root === "/" && (await isRunning(manifest.init, tree));
  const paths = [
    ...Object.keys(manifest.files),
    ...manifest.links,
    ...manifest.directories,
    installed.configDirectory,
    installed.stateDirectory,
    installed.runDirectory,
  ];
  const facts = await factsWithCopies(tree, paths, backupPathOf);
  const steps = removalPlan({ purge: options.purge, live }, manifest, facts);
  if (!options.dryRun) await apply(steps, tree, done);
  return steps;
}

export interface RemovalRequest {
  readonly purge: boolean;
  /** The init system is running, so the agent is stopped first. */
  readonly live: boolean;
}

/** What the manifest lists, with `purge` also configuration and state; without it, changed files are kept aside. */
export function removalPlan(
  request: RemovalRequest,
  manifest: Manifest,
  facts: Facts,
): readonly Step[] {
  const { purge, live } = request;
  const files = Object.keys(manifest.files).filter((path) => path !== installed.config);
  return [
    ...(live ? stopSteps(manifest.init) : []),
    ...manifest.links.filter((path) => factOf(facts, path).kind === "link").map(remove),
    ...files
      .filter((path) => factOf(facts, path).kind === "file")
      .flatMap((path): readonly Step[] => {
        const moved = purge ? [] : saved(path, { before: manifest, facts }, null);
        return moved.length > 0 ? moved : [remove(path)];
      }),
    ...(purge ? purgeSteps(live, facts) : []),
    ...emptied(manifest, purge, facts),
    ...(live ? stoppedSteps(manifest.init) : []),
  ];
}

const remove = (path: string): Step => ({ kind: "remove", path });

/** The state directory last: an interrupted removal resumes from the manifest in it. */
function purgeSteps(live: boolean, facts: Facts): readonly Step[] {
  return [
    installed.configDirectory,
    ...(live ? [installed.runDirectory] : []),
    installed.stateDirectory,
  ]
    .filter((path) => factOf(facts, path).kind === "directory")
    .map((path) => ({ kind: "remove-tree", path }));
}

/** Directories that the installation created, deepest first; without `purge`, not those of configuration and state. */
function emptied(manifest: Manifest, purge: boolean, facts: Facts): readonly Step[] {
  const roots = [installed.configDirectory, installed.stateDirectory];
  const isBelow = (path: string): boolean =>
    roots.some((root) => path === root || path.startsWith(`${root}/`));
  return manifest.directories
    .filter((path) => !isBelow(path) && factOf(facts, path).kind === "directory")
    .toSorted((one, other) => other.length - one.length)
    .filter((path) => !purge || path !== installed.runDirectory)
    .map((path) => ({ kind: "remove-if-empty", path }));
}
