// Runs a system command to its end, with a time limit.

import { HostError, messageOf } from "../../model/errors.ts";

/** As long as a service may take to stop, and a little more. */
const timeoutMs = 200_000;

/** Throws with the command's output if it failed. */
export async function runCommand(words: readonly string[]): Promise<void> {
  const line = words.join(" ");
  const failed = (reason: string, cause?: unknown): HostError =>
    new HostError("refused", `cannot run ${line}: ${reason}; run it by hand to see why`, {
      cause,
    });
  let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  try {
    child = Bun.spawn([...words], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: timeoutMs,
    });
  } catch (error) {
    throw failed(messageOf(error), error);
  }
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code === 0) return;
  const said = `${stderr}\n${stdout}`.trim().split("\n").slice(0, 5).join(" ");
  throw failed(said === "" ? `it exited with ${child.signalCode ?? code}` : said);
}
