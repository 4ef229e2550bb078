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
    if (await carriedOut(step, tree)) done(step);
  }
}

/** False where there was nothing to do after all. */
async function carriedOut(step: Step, tree: RootedTree): Promise<boolean> {
  switch (step.kind) {
    case "directory":
      await tree.makeDirectory(step.path, step.mode);
      return true;
    case "text":
      await tree.writeText(step.path, step.text, step.mode);
      return true;
    case "executable":
      await tree.copyIn(step.path, step.from, step.mode);
      return true;
    case "link":
      await tree.link(step.path, step.target);
      return true;
    case "move":
      await tree.move(step.path, step.to);
      return true;
    case "remove":
      await tree.remove(step.path);
      return true;
    case "remove-if-empty":
      return await tree.removeIfEmpty(step.path);
    case "remove-tree":
      await tree.removeTree(step.path);
      return true;
    case "command":
      await runCommand(step.words);
      return true;
    default:
      return assertNever(step);
  }
}
