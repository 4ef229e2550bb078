// What the store needs of the machine besides SQLite: creating, moving and listing files of the state directory.

/** Every function throws the error of node:fs with its `code`, except where a result is documented for it. */
export interface StateFiles {
  /** With its parents; does nothing if it exists. */
  makeDirectory(path: string, mode: number): void;
  /** Creates an empty file if there is none. */
  createFile(path: string, mode: number): void;
  /** `null` if it does not exist. Throws if that cannot be determined. */
  sizeBytes(path: string): number | null;
  /** Distinguishes a file from another that replaced it; `null` if it does not exist. */
  identity(path: string): string | null;
  rename(from: string, to: string): void;
  remove(path: string): void;
  names(directory: string): readonly string[];
  /** Copies files into a fresh private directory and returns its path. */
  copyAside(paths: readonly string[]): string;
  /** Removes what `copyAside` made. */
  dropCopy(directory: string): void;
}
