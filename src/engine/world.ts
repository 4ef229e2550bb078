/** The process environment, which main passes to everything that is opened. Loads no other file, because main loads it at once. */

/** Internal: runs `syncfs` on the path that follows. */
export const COMMIT_PROCESS = "__commit";

export interface Process {
  readonly pid: number;
  readonly userId: number;
  /** Command that starts this program: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
}

export interface ProcessWorld {
  readonly stderr: (text: string) => void;
  readonly self: Process;
  readonly build: { readonly version: string; readonly commit: string };
}
