/** The composition root: connects the process with the commands. Code that opens the machine is loaded on demand. */

import { dispatch } from "./cli/dispatch.ts";
import { exit } from "./cli/exit.ts";
import { diskReader } from "./config/load.ts";
import type { Openers } from "./engine/openers.ts";
import type { CommandRequest } from "./engine/owner.ts";
import { codeOf, reasonOf } from "./node/files.ts";
import { isBesideKubelet } from "./node/kubelet/pods.ts";
import { COMMIT_PROCESS, Output } from "./node/process.ts";
import { screenOf } from "./report/terminal.ts";

// Filled in by the build; a run from the sources has neither.
declare const CRIGC_VERSION: string | undefined;
declare const CRIGC_COMMIT: string | undefined;

const build = {
  version: typeof CRIGC_VERSION === "undefined" ? "0.0.0-unbuilt" : CRIGC_VERSION,
  commit: typeof CRIGC_COMMIT === "undefined" ? "" : CRIGC_COMMIT,
};

/** How long a reader may take after we were told to stop. */
const READER_PATIENCE_MS = 5_000;

const isCompiled = import.meta.path.startsWith("/$bunfs/");
/** The executable itself, even where another one lies at its path by now. */
const program = isCompiled ? ["/proc/self/exe"] : [process.execPath, import.meta.path];

if (process.argv[2] === COMMIT_PROCESS) {
  const { commitHere } = await import("./node/disk.ts");
  process.exit(commitHere(process.argv[3] ?? "") ? 0 : 1);
}

const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => stop.abort());
// A closed pipe or a full disk behind stdout must not interrupt a pass.
const stdout = new Output(process.stdout);
const stderr = new Output(process.stderr);

const screen = screenOf({
  isTerminal: process.stdout.isTTY,
  columns: process.stdout.columns,
  environment: process.env,
});

const code = await dispatch(process.argv.slice(2), process.env, {
  stdout: (text) => stdout.write(text),
  stderr: (text) => stderr.write(text),
  screen,
  user: process.env["SUDO_USER"] || `${process.getuid?.() ?? 0}`,
  signal: stop.signal,
  build,
  reader: diskReader,
  isBesideKubelet,
  open: opened,
});

await taken(stdout);
if (stdout.failure !== null && codeOf(stdout.failure) !== "EPIPE")
  stderr.write(`crigc: cannot write to standard output: ${reasonOf(stdout.failure)}\n`);
await taken(stderr);
process.exit(stdout.failure === null ? code : exit.internal);

async function opened(request?: Pick<CommandRequest, "owner" | "stderr">): Promise<Openers> {
  const { openersOf } = await import("./engine/openers.ts");
  const world = {
    build,
    self: { pid: process.pid, userId: process.getuid?.() ?? 0, program },
    stderr: request?.stderr ?? ((text: string) => stderr.write(text)),
  };
  return openersOf(world, request?.owner() ?? null);
}

/** After a signal, do not wait for a stalled reader of stdout. */
function taken(output: Output): Promise<void> {
  return new Promise((resolve) => {
    void output.close().then(resolve);
    const giveUp = (): void => void setTimeout(resolve, READER_PATIENCE_MS);
    if (stop.signal.aborted) giveUp();
    else stop.signal.addEventListener("abort", giveUp, { once: true });
  });
}
