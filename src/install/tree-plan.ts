/** The changes of a file tree, decided one by one before the first is made. */
import { HostError } from "../model/errors.ts";
import { runCommand } from "../node/executable.ts";
import { sha256OfText } from "../node/files.ts";
import type { Found, RootedTree } from "../node/rooted-tree.ts";
import { installed, type Manifest, parentsOf } from "./layout.ts";

/** What an installation has at a path. */
export type Wanted =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "text"; readonly path: string; readonly text: string; readonly mode: number }
  | {
      readonly kind: "executable";
      readonly path: string;
      /** Source, outside of the tree. */
      readonly from: string;
      readonly mode: number;
      readonly sha256: string;
    }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

export const textFile = (path: string, text: string, mode = 0o644): Wanted => ({
  kind: "text",
  path,
  text,
  mode,
});

export type TreeStep =
  | Wanted
  /** Keeps a copy of a file that somebody changed. */
  | { readonly kind: "move"; readonly path: string; readonly to: string }
  | { readonly kind: "remove" | "remove-if-empty" | "remove-tree"; readonly path: string };

export type Step =
  | TreeStep
  /** On the running system only. */
  | { readonly kind: "command"; readonly words: readonly string[] };

export const sha256Of = (wanted: Extract<Wanted, { kind: "text" | "executable" }>): string =>
  wanted.kind === "text" ? sha256OfText(wanted.text) : wanted.sha256;

export class TreePlan {
  readonly steps: TreeStep[] = [];
  readonly #tree: RootedTree;
  readonly #before: Manifest | null;
  readonly #found = new Map<string, Found>();

  /** `before`: the record of an earlier installation in the tree. */
  constructor(tree: RootedTree, before: Manifest | null) {
    this.#tree = tree;
    this.#before = before;
  }

  async #look(path: string): Promise<Found> {
    const found = this.#found.get(path) ?? (await this.#tree.look(path));
    this.#found.set(path, found);
    return found;
  }

  async isKind(path: string, kind: Found["kind"]): Promise<boolean> {
    return (await this.#look(path)).kind === kind;
  }

  #create(path: string, mode: number): void {
    this.steps.push({ kind: "directory", path, mode });
    this.#found.set(path, { kind: "directory" });
  }

  /** With its parents. Throws `HostError` if a foreign file is in the way. */
  async want(wanted: Wanted): Promise<void> {
    const { path } = wanted;
    for (const parent of parentsOf(path))
      if (await this.isKind(parent, "absent")) this.#create(parent, 0o755);
    const found = await this.#look(path);
    if (wanted.kind === "directory") {
      // The operator may have moved it by a link.
      if (found.kind === "directory" || found.kind === "link") return;
      if (found.kind !== "absent") throw blockedBy(path, found);
      this.#create(path, wanted.mode);
    } else if (wanted.kind === "link") {
      if (found.kind === "link" && found.target === wanted.target) return;
      if (found.kind !== "link" && found.kind !== "absent") throw blockedBy(path, found);
      this.steps.push(wanted);
    } else {
      // The configuration belongs to the operator.
      if (path === installed.config && found.kind !== "absent") return;
      if (found.kind !== "file" && found.kind !== "absent") throw blockedBy(path, found);
      const isWanted = found.kind === "file" && found.sha256 === sha256Of(wanted);
      if (isWanted && found.mode === wanted.mode) return;
      if (!isWanted && path !== installed.manifest) await this.setAside(path);
      this.steps.push(wanted);
    }
  }

  /** Moves away a file that no installation wrote; `false`: there is none. */
  async setAside(path: string): Promise<boolean> {
    const found = await this.#look(path);
    if (found.kind !== "file" || found.sha256 === this.#before?.files[path]) return false;
    // A copy in the state directory cannot start as a service; its name includes the directory if ambiguous.
    const name = path.split("/").slice(path.endsWith("/crigc") ? -2 : -1);
    const copy = `${installed.stateDirectory}/replaced-${name.join("-")}`;
    // An earlier copy is never overwritten by another one.
    const isFree = await this.isKind(copy, "absent");
    const to = isFree ? copy : `${copy}-${found.sha256.slice(0, 12)}`;
    this.steps.push({ kind: "move", path, to });
    return true;
  }

  /** Removes a file or link that is as the installation wrote it. */
  async removeOwn(path: string): Promise<void> {
    const found = await this.#look(path);
    const isOwn =
      found.kind === "file"
        ? found.sha256 === this.#before?.files[path]
        : found.kind === "link" && this.#before?.links.includes(path) === true;
    if (isOwn) this.steps.push({ kind: "remove", path });
  }

  /** Removes directories that became empty, deepest first. */
  async removeEmpty(directories: readonly string[]): Promise<void> {
    for (const path of directories.toSorted((one, other) => other.length - one.length))
      if (await this.isKind(path, "directory")) this.steps.push({ kind: "remove-if-empty", path });
  }
}

function blockedBy(path: string, found: Found): HostError {
  const refuse = (why: string): HostError =>
    new HostError("refused", `cannot install ${path}: ${why}`);
  if (found.kind === "link" && found.target === "/dev/null")
    return refuse("the service is masked; unmask it first");
  const what = {
    link: "a symbolic link",
    directory: "a directory",
    file: "a file",
    other: "a special file",
    absent: "nothing",
  }[found.kind];
  const target = found.kind === "link" ? ` to ${found.target}` : "";
  return refuse(`${what}${target} exists that crigc install did not create; move it away first`);
}

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

/** Carries out the steps one by one. The first failure ends it; the plan can then be made again. */
export async function apply(
  steps: readonly Step[],
  tree: RootedTree,
  done: (step: Step) => void,
): Promise<void> {
  for (const step of steps) if ((await carriedOut(step, tree)) !== false) done(step);
}

/** `false`: there was nothing to do after all. */
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
