// A directory opened without following links: what is below it is reached through its handle, so renames cannot redirect it.

import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readFile, rmdir, unlink } from "node:fs/promises";

import { codeOf } from "./files.ts";

const FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Names are bytes. One that is not UTF-8 has no text that leads back to it. */
export type EntryName = string | Buffer;

export interface Entry {
  /** As text, for reading and for messages. */
  readonly name: string;
  /** For every call; the text itself if that is the same. */
  readonly raw: EntryName;
  readonly kind: "directory" | "link" | "other";
}

export interface EntryFacts {
  readonly kind: Entry["kind"];
  /** Blocks that unlinking it frees; 0 if another name keeps them. */
  readonly bytes: bigint;
}

/** Every method throws the operating system's error, with its code. */
export class Directory {
  readonly #handle: FileHandle;
  /** Of the filesystem. */
  readonly #device: bigint;

  private constructor(handle: FileHandle, device: bigint) {
    this.#handle = handle;
    this.#device = device;
  }

  /** `path` itself must not be a link (`ENOTDIR`, `ELOOP`); resolve it first if it may be one. */
  static async open(path: EntryName): Promise<Directory> {
    const handle = await open(path, FLAGS);
    try {
      return new Directory(handle, (await handle.stat({ bigint: true })).dev);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  openBelow(name: EntryName): Promise<Directory> {
    return Directory.open(this.#pathOf(name));
  }

  /** Whether nothing is mounted on this directory that is not on its parent; a bind mount even has the same device. */
  async isOnMountOf(parent: Directory): Promise<boolean> {
    return this.#device === parent.#device && (await this.#mountId()) === (await parent.#mountId());
  }

  async entries(): Promise<readonly Entry[]> {
    const found = await readdir(this.#path, { withFileTypes: true });
    // What decoding puts in place of bytes that are not UTF-8.
    if (!found.some(({ name }) => name.includes("\uFFFD")))
      return found.map((entry) => ({ name: entry.name, raw: entry.name, kind: kindOf(entry) }));
    const entries: Entry[] = [];
    for (const raw of await readdir(this.#path, { encoding: "buffer" })) {
      const facts = await ifThere(this.facts(raw));
      if (facts !== undefined) entries.push({ name: raw.toString(), raw, kind: facts.kind });
    }
    return entries;
  }

  async facts(name: EntryName): Promise<EntryFacts> {
    const facts = await lstat(this.#pathOf(name), { bigint: true });
    const kind = kindOf(facts);
    return { kind, bytes: kind === "directory" || facts.nlink > 1n ? 0n : facts.blocks * 512n };
  }

  /** Removes a link itself, not its target. */
  async unlink(name: EntryName): Promise<void> {
    await unlink(this.#pathOf(name));
  }

  async removeDirectory(name: EntryName): Promise<void> {
    await rmdir(this.#pathOf(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  /** For reading through node:fs; the last component may be a link, which the call then follows or not. */
  pathOf(name: string): string {
    const plain = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
    if (!plain) throw new RangeError(`${JSON.stringify(name)} is not the name of an entry`);
    return `${this.#path}/${name}`;
  }

  #pathOf(name: EntryName): EntryName {
    return typeof name === "string"
      ? this.pathOf(name)
      : Buffer.concat([Buffer.from(`${this.#path}/`), name]);
  }

  get #path(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  /** "" if the kernel does not say; then only the device tells mounts apart. */
  async #mountId(): Promise<string> {
    return mountIdIn(await readFile(`/proc/self/fdinfo/${this.#handle.fd}`, "utf8")) ?? "";
  }
}

/** The mount of an open file, in the text of its `/proc/self/fdinfo`. */
export const mountIdIn = (fdinfo: string): string | undefined =>
  /^mnt_id:\s*(\d+)$/m.exec(fdinfo)?.[1];

const kindOf = (file: Pick<Stats, "isDirectory" | "isSymbolicLink">): Entry["kind"] =>
  file.isDirectory() ? "directory" : file.isSymbolicLink() ? "link" : "other";

/** `undefined` in place of ENOENT. */
export async function ifThere<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
