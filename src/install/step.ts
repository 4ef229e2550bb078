/** One change of a file tree or of the running system. A plan is a list of steps, made without changing anything. */

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
  /** Somebody changed what we wrote: their version is kept elsewhere. */
  | { readonly kind: "move"; readonly path: string; readonly to: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "remove-if-empty"; readonly path: string }
  | { readonly kind: "remove-tree"; readonly path: string }
  /** On the running system only. */
  | { readonly kind: "command"; readonly words: readonly string[] };

/** In a few words, for people. */
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
