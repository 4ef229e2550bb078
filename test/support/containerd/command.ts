// Runs a command of the machine to its end and fails with what it said.

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** In place of this process's, with the directories of an administrator's programs. */
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** Milliseconds; none by default. */
  readonly timeout?: number;
}

/** mkfs, losetup and their kin live where a user's PATH often does not look. */
const searchPath = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

/** Answers with whatever exit code the command had; the caller judges it. What hangs is killed and gives exit code 137. */
export async function tryCommand(
  words: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const child = Bun.spawn([...words], {
    env: { ...process.env, PATH: searchPath },
    ...options,
    killSignal: "SIGKILL",
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** Answers with stdout, or throws with the command's own words. */
export async function command(...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await tryCommand(words);
  if (exitCode === 0) return stdout;
  throw new Error(`${words.join(" ")} ended with ${exitCode}: ${(stderr || stdout).trim()}`);
}

/** Runs in a root file system, with /proc, an empty /run if asked for, and nothing else of the machine. */
export const inRoot = (
  root: string,
  words: readonly string[],
  { ownRun = false }: { readonly ownRun?: boolean } = {},
): Promise<CommandResult> => {
  const run = ownRun ? 'mount -t tmpfs tmpfs "$0/run";' : "";
  const enter = `exec chroot "$0" env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive "$@"`;
  const script = `mount -t proc proc "$0/proc"; ${run} ${enter}`;
  return tryCommand(["unshare", "--mount", "sh", "-ec", script, root, ...words]);
};
