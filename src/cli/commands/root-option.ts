/** The option `--root` of `install` and `uninstall`, and parsing of path options. */
import { usageError } from "../../model/errors.ts";
import { type Invocation, option, textOf } from "../command.ts";

export const ROOT_OPTION = option("root DIR", "file tree of a node image [this system]", {
  completes: "directory",
});

/** "/" is the running system. Relative paths are below the working directory. */
export function rootOf(invocation: Invocation): string {
  const text = textOf(invocation, "root");
  if (text === null) return "/";
  if (text === "") throw bad("root", text, "is not a directory; use the file tree of a node image");
  return text.replace(/(?!^)\/+$/, "");
}

/** An absolute path inside the tree, in its shortest form; `null`: not given. */
export function pathOf(invocation: Invocation, name: string): string | null {
  const text = textOf(invocation, name);
  if (text === null) return null;
  const path = text.replace(/(?!^)\/+$/, "");
  // Unit files split at blanks, and expand percent and dollar signs.
  if (/^(\/[\w.+@-]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path)) return path;
  throw bad(
    name,
    text,
    "is not a valid path: use an absolute path of letters, digits and . _ + @ -",
  );
}

export const bad = (name: string, text: string, message: string) =>
  usageError(`--${name}`, text, `${JSON.stringify(text.slice(0, 60))} ${message}`);
