/** One change of a file tree or of the running system. A plan is a list of steps, made without changing anything. */

import { runCommand } from "../node/executable.ts";
import type { RootedTree } from "../node/rooted-tree.ts";
import type { Init } from "./manifest.ts";

export type Step =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "text"; readonly path: string; readonly text: string; readonly mode: number }
  /** Copies the executable `from`, a path outside of the tree. */
  | {
      readonly kind: "executable";
      readonly path: string;
      readonly from: string;
      readonly mode: number;
    }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  /** Keeps a copy of a file that somebody changed. */
  | { readonly kind: "move"; readonly path: string; readonly to: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "remove-if-empty"; readonly path: string }
  | { readonly kind: "remove-tree"; readonly path: string }
  /** On the running system only. */
  | { readonly kind: "command"; readonly words: readonly string[] };

export function stepWords(step: Step): string {
  switch (step.kind) {
    case "directory":
      return `create directory ${step.path}`;
    case "text":
      return `write ${step.path}`;
    case "executable":
      return `copy the executable to ${step.path}`;
    case "link":
      return `link ${step.path} to ${step.target}`;
    case "move":
      return `keep the changed ${step.path} as ${step.to}`;
    case "remove":
      return `remove ${step.path}`;
    case "remove-if-empty":
      return `remove ${step.path} if it is empty`;
    case "remove-tree":
      return `remove ${step.path} with everything in it`;
    case "command":
      return `run ${step.words.join(" ")}`;
  }
}

/** Before the service is removed, while its init system is running. */
export const stopSteps = (init: Init): readonly Step[] => STOP[init].map(command);

/** After it was removed. */
export const stoppedSteps = (init: Init): readonly Step[] => STOPPED[init].map(command);

const STOP: Readonly<Record<Init, readonly (readonly string[])[]>> = {
  systemd: [["systemctl", "stop", "crigc.service"]],
  openrc: [["rc-service", "crigc", "stop"]],
  none: [],
};

const STOPPED: Readonly<Record<Init, readonly (readonly string[])[]>> = {
  systemd: [["systemctl", "daemon-reload"]],
  openrc: [],
  none: [],
};

const command = (words: readonly string[]): Step => ({ kind: "command", words });

/** Carries them out one by one. The first failure ends it; the plan can then be run again. */
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
  }
}
