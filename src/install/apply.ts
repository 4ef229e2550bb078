/** Executes an installation plan step by step. The first failure ends it; the plan can then be run again. */

import type { RootedTree } from "../host/files/rooted-tree.ts";
import { runCommand } from "../host/process/command.ts";
import { assertNever } from "../model/assert.ts";
import type { Step } from "./step.ts";

export async function apply(
  steps: readonly Step[],
  tree: RootedTree,
  done: (step: Step) => void,
): Promise<void> {
  for (const step of steps) {
    if ((await carriedOut(step, tree)) !== false) done(step);
  }
}

/** False where there was nothing to do after all. */
function carriedOut(step: Step, tree: RootedTree): Promise<boolean | void> {
  switch (step.kind) {
    case "directory":
      return tree.makeDirectory(step.path, step.mode);
    case "text":
      return tree.writeText(step.path, step.text, step.mode);
    case "executable":
      return tree.copyIn(step.path, step.from, step.mode);
    case "link":
      return tree.link(step.path, step.target);
    case "move":
      return tree.move(step.path, step.to);
    case "remove":
      return tree.remove(step.path);
    case "remove-if-empty":
      return tree.removeIfEmpty(step.path);
    case "remove-tree":
      return tree.removeTree(step.path);
    case "command":
      return runCommand(step.words);
    default:
      return assertNever(step);
  }
}
