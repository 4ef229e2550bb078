/** The composition root: the process on one side, commands on the other. */

import { dispatch } from "./cli/dispatch.ts";
import { openersOf } from "./compose/openers.ts";
import { systemdOf } from "./compose/systemd.ts";
import { diskReader } from "./config/load.ts";
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

const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop.abort());
// Who reads our answer may go away; that is no reason to stop in the middle of a pass.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

const screen = screenOf({
  isTerminal: process.stdout.isTTY,
  columns: process.stdout.columns,
  environment: process.env,
});

const code = await dispatch(process.argv.slice(2), process.env, {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
  screen,
  signal: stop.signal,
  build,
  reader: diskReader,
  open: openersOf({
    build,
    self: { pid: process.pid, userId: process.getuid?.() ?? 0 },
    systemd: systemdOf(process.env, process.pid),
    stderr: (text) => void process.stderr.write(text),
    errorScreen: screenOf({
      isTerminal: process.stderr.isTTY,
      columns: process.stderr.columns,
      environment: process.env,
    }),
    onHangup: (listener) => {
      process.on("SIGHUP", listener);
      return () => void process.off("SIGHUP", listener);
    },
  }),
});

await Promise.all([taken(process.stdout), taken(process.stderr)]);
process.exit(code);

/** Leaving at once would cut off what a pipe has not taken yet, all that is beyond its 64 KiB. */
function taken(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.end(() => resolve());
    // Who stops us need not wait for a reader that does not read.
    const giveUp = (): void => void setTimeout(resolve, READER_PATIENCE_MS);
    if (stop.signal.aborted) giveUp();
    else stop.signal.addEventListener("abort", giveUp, { once: true });
  });
}
