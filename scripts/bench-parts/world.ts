// What is measured: the executable, a program to compare it with, and nodes for it to look at.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { nodeOf } from "./node.ts";
import type { Command } from "./runs.ts";

const top = join(import.meta.dir, "../..");

export interface Programs {
  readonly crigc: string;
  readonly printLine: string;
  /** The calls of a plan with the same libraries, and nothing else. */
  readonly floor: string;
}

/** `executable`: one that is there already. */
export async function buildPrograms(
  directory: string,
  executable: string | undefined,
): Promise<Programs> {
  const crigc = executable ?? join(directory, "crigc");
  if (executable === undefined) await done([join(top, "scripts/build"), crigc]);
  const source = join(directory, "print-line.ts");
  writeFileSync(source, 'console.log("a line");\n');
  const printLine = join(directory, "print-line");
  await done([process.execPath, "build", "--compile", "--outfile", printLine, source]);
  const floor = join(directory, "floor");
  await done([join(top, "scripts/build"), "--entry", join(import.meta.dir, "floor.ts"), floor]);
  return { crigc, printLine, floor };
}

async function done(command: Command): Promise<void> {
  const child = Bun.spawn([...command], { stdio: ["ignore", "pipe", "pipe"], cwd: top });
  if ((await child.exited) === 0) return;
  throw new Error(`${command.join(" ")} failed: ${await child.stderr.text()}`);
}

/** A runtime in a process of its own, with a state directory that knows the node and one that is empty. */
export class NodeUnderTest {
  readonly #directory: string;
  readonly #program: string;
  readonly #runtime: Bun.Subprocess<"ignore", "pipe", "inherit">;

  private constructor(
    directory: string,
    program: string,
    runtime: Bun.Subprocess<"ignore", "pipe", "inherit">,
  ) {
    this.#directory = directory;
    this.#program = program;
    this.#runtime = runtime;
  }

  static async start(of: {
    readonly count: number;
    readonly program: string;
    readonly directory: string;
    /** Goes before the command of the runtime. */
    readonly priority: Command;
  }): Promise<NodeUnderTest> {
    const directory = join(of.directory, `node-${of.count}`);
    for (const name of ["logs", "links", "root", "keep"])
      mkdirSync(join(directory, name), { recursive: true });
    const description = join(directory, "node.json");
    writeFileSync(description, JSON.stringify(nodeOf(of.count, directory)));
    const socket = join(directory, "cri.sock");
    const main = join(top, "test/support/fake-runtime/main.ts");
    const runtime = Bun.spawn(
      [...of.priority, process.execPath, main, "--socket", socket, "--node", description],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    // It says one line when it listens.
    await runtime.stdout.getReader().read();
    const node = new NodeUnderTest(directory, of.program, runtime);
    await node.#fillLedger();
    return node;
  }

  get socket(): string {
    return join(this.#directory, "cri.sock");
  }

  plan(ledger: "filled" | "none"): Command {
    return [this.#program, "plan", ...this.#flags(ledger)];
  }

  agent(): Command {
    return [this.#program, "run", ...this.#flags("filled")];
  }

  async stop(): Promise<void> {
    this.#runtime.kill("SIGTERM");
    await this.#runtime.exited;
  }

  /** As the agent's first passes would. */
  async #fillLedger(): Promise<void> {
    await done([this.#program, "gc", ...this.#flags("filled")]);
    rmSync(join(this.#directory, "state-none"), { recursive: true, force: true });
  }

  /** No image has to go, however full the disk is that this runs on. */
  #flags(ledger: "filled" | "none"): readonly string[] {
    const at = (name: string): string => join(this.#directory, name);
    return Object.entries({
      "container-runtime-endpoint": this.socket,
      "state-dir": at(`state-${ledger}`),
      "run-dir": at(`run-${ledger}`),
      "pod-logs-dir": at("logs"),
      "container-logs-dir": at("links"),
      "root-dir": at("root"),
      "keep-dir": at("keep"),
      "pod-source": "cri",
      "image-gc-high-threshold": "100",
      "image-gc-low-threshold": "99",
      "eviction-hard": "nodefs.available<1Mi,imagefs.available<1Mi",
    }).flatMap(([name, value]) => [`--${name}`, value]);
  }
}
