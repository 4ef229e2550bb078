// A directory that was opened without following a link: what happens below it happens by its handle, whatever is renamed meanwhile.

import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, readFile, rmdir, unlink } from "node:fs/promises";

const FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export interface Entry {
  readonly name: string;
  readonly kind: "directory" | "link" | "other";
}

export interface EntryFacts {
  readonly kind: Entry["kind"];
  /** What unlinking it gives back: blocks on disk; 0 where another name keeps them. */
  readonly bytes: bigint;
}

/** Every method throws what the operating system says, with its code. */
export class Directory {
  readonly #handle: FileHandle;
  /** Of the filesystem. */
  readonly #device: bigint;

  private constructor(handle: FileHandle, device: bigint) {
    this.#handle = handle;
    this.#device = device;
  }

  /** `path` itself must be no link (`ENOTDIR`, `ELOOP`); resolve it first where it may be one. */
  static async open(path: string): Promise<Directory> {
    const handle = await open(path, FLAGS);
    try {
      const { dev } = await handle.stat({ bigint: true });
      return new Directory(handle, dev);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async openBelow(name: string): Promise<Directory> {
    return await Directory.open(this.#path(name));
  }

  /** Whether nothing is mounted on this directory that is not on its parent: a bind mount shares even its device. */
  async isOnMountOf(parent: Directory): Promise<boolean> {
    return this.#device === parent.#device && (await this.#mountId()) === (await parent.#mountId());
  }

  async entries(): Promise<readonly Entry[]> {
    const found = await readdir(this.#path(), { withFileTypes: true });
    return found.map((entry) => ({
      name: entry.name,
      kind: entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other",
    }));
  }

  async facts(name: string): Promise<EntryFacts> {
    const facts = await lstat(this.#path(name), { bigint: true });
    const kind = facts.isDirectory() ? "directory" : facts.isSymbolicLink() ? "link" : "other";
    return { kind, bytes: kind === "directory" || facts.nlink > 1n ? 0n : facts.blocks * 512n };
  }

  /** Of a link, the link itself. */
  async unlink(name: string): Promise<void> {
    await unlink(this.#path(name));
  }

  async removeDirectory(name: string): Promise<void> {
    await rmdir(this.#path(name));
  }

  /** For reading through node:fs; the last component may be a link, which the call then follows or not. */
  pathOf(name: string): string {
    return this.#path(name);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** "" where the kernel does not tell it: then the device alone tells mounts apart. */
  async #mountId(): Promise<string> {
    const facts = await readFile(`/proc/self/fdinfo/${this.#handle.fd}`, "utf8");
    return /^mnt_id:\s*(\d+)$/m.exec(facts)?.[1] ?? "";
  }

  #path(name?: string): string {
    const self = `/proc/self/fd/${this.#handle.fd}`;
    if (name === undefined) return self;
    const plain = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
    if (!plain) throw new RangeError(`${JSON.stringify(name)} is not the name of an entry`);
    return `${self}/${name}`;
  }
}

/** Opens, uses, and closes whatever happens. */
export async function withDirectory<T>(
  opening: Promise<Directory>,
  use: (directory: Directory) => Promise<T>,
): Promise<T> {
  const directory = await opening;
  try {
    return await use(directory);
  } finally {
    await directory.close();
  }
}
