// Runs a command of the machine to its end and fails with what it said.

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** mkfs, losetup and their kin live where a user's PATH often does not look. */
const searchPath = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

/** Answers with whatever exit code the command had; the caller judges it. */
export async function tryCommand(words: readonly string[]): Promise<CommandResult> {
  const child = Bun.spawn([...words], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, PATH: searchPath },
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** Answers with stdout, or throws with the command's own words. */
export async function command(...words: readonly string[]): Promise<string> {
  const result = await tryCommand(words);
  if (result.exitCode !== 0) {
    throw new Error(
      `${words.join(" ")} ended with ${result.exitCode}: ${(result.stderr || result.stdout).trim()}`,
    );
  }
  return result.stdout;
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
