// Files below a root directory as the system inside it would see them: absolute links resolve inside, and no path leads
// out.

import { constants, createReadStream, createWriteStream } from "node:fs";
import {
  lstat,
  mkdir,
  open,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { pipeline } from "node:stream/promises";

import { HostError } from "../model/errors.ts";
import { Directory } from "./directory.ts";
import { asRoot, codeOf, draftName, hostError, isAbsent, sha256OfFile } from "./files.ts";

export type Found =
  | { readonly kind: "absent" | "directory" | "other" }
  | { readonly kind: "file"; readonly sha256: string; readonly mode: number }
  | { readonly kind: "link"; readonly target: string };

/** The kernel's limit. */
const LINKS_MAX = 40;
/** Text files that crigc writes are smaller. */
const TEXT_BYTES_MAX = 1024 * 1024;

/**
 * Every path is absolute, as seen inside the root. Parents are opened one by one without following links; a link among
 * them is followed by its text, so that a hostile link cannot lead out of the root. The last component is never
 * followed.
 */
export class RootedTree {
  readonly #root: string;

  /** The root itself may be reached through links. */
  constructor(root: string) {
    this.#root = root;
  }

  /** Whether the root itself is a directory. */
  async isThere(): Promise<boolean> {
    try {
      return (await stat(this.#root)).isDirectory();
    } catch (error) {
      if (isAbsent(error)) return false;
      throw hostError("read", error, (why) => `cannot read ${this.#root}: ${why}`);
    }
  }

  async look(path: string): Promise<Found> {
    const found = this.#at(path, "read", async (parent, name) => lookAt(parent.pathOf(name)));
    return await orIfAbsent<Found>({ kind: "absent" }, found);
  }

  /** The content of a regular file; `null` if it is not one, or is larger than anything that crigc writes. */
  async readText(path: string): Promise<string | null> {
    const text = this.#at(path, "read", async (parent, name) => {
      if (!(await lstat(parent.pathOf(name))).isFile()) return null;
      await using file = await open(parent.pathOf(name), READING);
      const { size } = await file.stat();
      return size > TEXT_BYTES_MAX ? null : await file.readFile("utf8");
    });
    return await orIfAbsent(null, text);
  }

  async makeDirectory(path: string, mode: number): Promise<void> {
    await this.#at(path, "create the directory", async (parent, name) => {
      await mkdir(parent.pathOf(name), { mode });
      await setMode(parent.pathOf(name), constants.O_DIRECTORY, mode);
    });
  }

  async writeText(path: string, text: string, mode: number): Promise<void> {
    await this.#replace(path, mode, (fresh) =>
      writeFile(fresh, text, { flag: "wx", mode: 0o600, flush: true }),
    );
  }

  /** `from` is a path outside the root, of this process. */
  async copyIn(path: string, from: string, mode: number): Promise<void> {
    await this.#replace(path, mode, (fresh) => pipeline(createReadStream(from), newFile(fresh)));
  }

  async link(path: string, target: string): Promise<void> {
    await this.#at(path, "create the link", async (parent, name) => {
      const fresh = draftName(name);
      await symlink(target, parent.pathOf(fresh));
      await rename(parent.pathOf(fresh), parent.pathOf(name));
    });
  }

  /** By a copy, because the other place may be on another filesystem. */
  async move(path: string, to: string): Promise<void> {
    await this.#at(path, "move", async (parent, name) => {
      await using file = await open(parent.pathOf(name), READING);
      const { mode } = await file.stat();
      await this.#replace(to, mode & 0o777, (fresh) =>
        pipeline(file.createReadStream({ autoClose: false }), newFile(fresh)),
      );
      await parent.unlink(name);
    });
  }

  /** A file or a link. */
  async remove(path: string): Promise<void> {
    await this.#at(path, "remove", async (parent, name) => parent.unlink(name));
  }

  /** Returns whether it was empty and is now removed. */
  async removeIfEmpty(path: string): Promise<boolean> {
    return await this.#at(path, "remove the directory", async (parent, name) => {
      try {
        await parent.removeDirectory(name);
        return true;
      } catch (error) {
        if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) return false;
        throw error;
      }
    });
  }

  /** A directory with everything in it; links in it are removed, not followed. */
  async removeTree(path: string): Promise<void> {
    await this.#at(path, "remove everything in", async (parent, name) =>
      rm(parent.pathOf(name), { recursive: true }),
    );
  }

  /** Writes a new file and renames it: at any moment either the old or the new one exists. */
  async #replace(
    path: string,
    mode: number,
    write: (fresh: string) => Promise<void>,
  ): Promise<void> {
    await this.#at(path, "write", async (parent, name) => {
      const fresh = parent.pathOf(draftName(name));
      try {
        await write(fresh);
        await setMode(fresh, 0, mode);
        await rename(fresh, parent.pathOf(name));
      } catch (error) {
        await rm(fresh, { force: true });
        throw error;
      }
    });
  }

  async #at<T>(
    path: string,
    what: string,
    use: (parent: Directory, name: string) => Promise<T>,
  ): Promise<T> {
    const stack: Directory[] = [];
    try {
      stack.push(await Directory.open(`${this.#root}/.`));
      const { parent, name } = await descend(stack, path);
      return await use(parent, name);
    } catch (error) {
      if (error instanceof HostError) throw error;
      const advice = asRoot(error) || "; fix this and try again";
      throw hostError(
        "write",
        error,
        (why) => `cannot ${what} ${path} in ${this.#root}: ${why}${advice}`,
      );
    } finally {
      await closeAbove(stack, 0);
    }
  }
}

async function orIfAbsent<T>(absent: T, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof HostError && codeOf(error.cause) === "ENOENT") return absent;
    throw error;
  }
}

const newFile = (path: string) =>
  createWriteStream(path, { flags: "wx", mode: 0o600, flush: true });

/** Opens the parents of the last component. `stack` holds the root, then the way to the current directory. */
async function descend(
  stack: Directory[],
  path: string,
): Promise<{ readonly parent: Directory; readonly name: string }> {
  const pending = path.split("/").filter((component) => component !== "");
  const name = pending.pop();
  if (name === undefined) throw new RangeError(`${path} is not the path of a directory entry`);
  let links = 0;
  for (;;) {
    const here = topOf(stack);
    const component = pending.shift();
    if (component === undefined) return { parent: here, name };
    if (component === "" || component === ".") continue;
    if (component === "..") {
      // The root's parent is the root.
      await closeAbove(stack, Math.max(1, stack.length - 1));
    } else if ((await here.facts(component)).kind === "link") {
      links += 1;
      if (links > LINKS_MAX) throw new RangeError("more than 40 symbolic links follow each other");
      const target = await readlink(here.pathOf(component));
      if (target.startsWith("/")) await closeAbove(stack, 1);
      pending.unshift(...target.split("/"));
    } else {
      stack.push(await here.openBelow(component));
    }
  }
}

async function closeAbove(stack: Directory[], length: number): Promise<void> {
  while (stack.length > length) await stack.pop()?.[Symbol.asyncDispose]();
}

function topOf(stack: readonly Directory[]): Directory {
  const top = stack.at(-1);
  if (top === undefined) throw new RangeError("the root is not open");
  return top;
}

async function lookAt(path: string): Promise<Found> {
  const found = await lstat(path);
  if (found.isSymbolicLink()) return { kind: "link", target: await readlink(path) };
  if (found.isDirectory()) return { kind: "directory" };
  if (!found.isFile()) return { kind: "other" };
  return { kind: "file", mode: found.mode & 0o7777, sha256: await sha256OfFile(path) };
}

// Non-blocking, in case the file was replaced by a pipe since it was checked.
const READING = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Regardless of the process's umask. */
async function setMode(path: string, flags: number, mode: number): Promise<void> {
  await using opened = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | flags);
  await opened.chmod(mode);
}
