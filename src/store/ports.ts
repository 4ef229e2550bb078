// What the store needs of the machine beside SQLite: making, moving and listing files of the state directory.

/** Every function throws what node:fs throws, with its `code`, but for what is said to be answered. */
export interface StateFiles {
  /** With its parents; does nothing where it exists. */
  makeDirectory(path: string, mode: number): void;
  /** An empty file, if there is none yet. */
  createFile(path: string, mode: number): void;
  /** `null`: it does not exist. Throws where that cannot be told. */
  sizeBytes(path: string): number | null;
  /** Tells one file from another that took its name; `null`: it does not exist. */
  identity(path: string): string | null;
  rename(from: string, to: string): void;
  remove(path: string): void;
  names(directory: string): readonly string[];
  /** Copies files into a fresh private directory and returns its path. */
  copyAside(paths: readonly string[]): string;
  /** Removes what `copyAside` made. */
  dropCopy(directory: string): void;
}
