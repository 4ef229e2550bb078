// A process of its own for dispatch and commands: what they write is kept, and files come from texts.

import type { World } from "../../src/cli/command.ts";
import { dispatch } from "../../src/cli/dispatch.ts";
import type { Environment } from "../../src/config/settings.ts";
import type { Openers } from "../../src/engine/openers.ts";
import { HostError } from "../../src/model/errors.ts";
import type { Screen } from "../../src/report/terminal.ts";
import { readerOf } from "../config/loading.ts";
import { plainScreen } from "../report/build.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Around {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Environment;
  readonly screen?: Screen;
  /** That the process is asked to stop. */
  readonly signal?: AbortSignal;
  /** What the command opens; everything else that it would open is missing. */
  readonly open?: Partial<Openers>;
}

export async function crigc(argv: readonly string[], around: Around = {}): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  const world: World = {
    stdout: (text) => void (stdout += text),
    stderr: (text) => void (stderr += text),
    screen: around.screen ?? plainScreen,
    user: "0",
    signal: around.signal ?? new AbortController().signal,
    build: { version: "1.2.3", commit: "abcdef0" },
    reader: readerOf(around.files ?? {}),
    isBesideKubelet: () => false,
    // A command that opens what its test does not give fails loudly.
    open: async () => ({ askAgent: noAgent, agentHolding: () => null, ...around.open }) as Openers,
  };
  // An agent of the machine that runs the tests is none of theirs.
  const env = around.env ?? { CRIGC_RUN_DIR: "/nonexistent/run" };
  const code = await dispatch(argv, env, world);
  return { code, stdout, stderr };
}

const noAgent = async (): Promise<never> => {
  const cause = Object.assign(new Error("no such socket"), { code: "ENOENT" });
  throw new HostError("http", "no agent runs here", { cause });
};
