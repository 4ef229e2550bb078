/** `crigc uninstall`: removes what `install` installed, with `purge` also configuration and state. */

import { RootedTree } from "../host/files/rooted-tree.ts";
import { apply } from "./apply.ts";
import { factsOf, manifestIn } from "./facts.ts";
import { isRunning } from "./init.ts";
import { installed } from "./paths.ts";
import { removalPlan } from "./removal-plan.ts";
import type { Step } from "./step.ts";

export interface UninstallOptions {
  /** The tree; "/" is the running system. */
  readonly root: string;
  readonly purge: boolean;
  readonly dryRun: boolean;
}

/** The steps that were done, or would be; `null` where no installation is recorded in the tree. */
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
  const facts = await factsOf(tree, paths);
  const steps = removalPlan({ purge: options.purge, live }, manifest, facts);
  if (!options.dryRun) await apply(steps, tree, done);
  return steps;
}
