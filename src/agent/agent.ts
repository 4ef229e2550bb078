/** `crigc run`: waits for the runtime, then runs the agent with all its parts until it is stopped. */

import { existsSync } from "node:fs";

import type { Config } from "../config/config.ts";
import { logOf } from "../engine/log.ts";
import { connect, type Connected, openEngine } from "../engine/node.ts";
import type { Owner, ProcessWorld, RunCommand } from "../engine/owner.ts";
import { Journal } from "../gc/journal.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../model/errors.ts";
import { timer } from "../node/clock.ts";
import {
  holderWords,
  isSameSocket,
  type Lock,
  lockRuntime,
  lockState,
  type LockWait,
  socketDirectory,
} from "../node/lock.ts";
import { shrinkOnceSettled } from "../node/process.ts";
import { CommandServer } from "./commands.ts";
import { Agent } from "./loops.ts";
import { StatusServer } from "./status-server.ts";

const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 30_000;

export interface AgentRun {
  readonly config: Config;
  readonly signal: AbortSignal;
  /** Runs a command line that came over the control socket. */
  readonly command: RunCommand;
}

/** Resolves after `run.signal` aborted and everything is written. Throws `HostError` `lock` beside another agent. */
export const runAgent = (run: AgentRun, world: ProcessWorld): Promise<void> =>
  new AgentProcess(run, world).run();

class AgentProcess {
  readonly #run: AgentRun;
  readonly #world: ProcessWorld;
  readonly #statusServer: StatusServer;
  readonly #opened = new AsyncDisposableStack();
  /** The log alone, until the node is open. */
  readonly #journal: Journal;
  readonly #commands: CommandServer;
  /** Of the runtime; `null`: not connected yet. */
  #endpoint: string | null = null;
  /** `null` until this agent holds the node and is connected. */
  #owner: ((progressed: () => void) => Owner) | null = null;

  constructor(run: AgentRun, world: ProcessWorld) {
    this.#run = run;
    this.#world = world;
    this.#journal = new Journal(timer, [logOf(run.config, world.stderr)]);
    this.#commands = new CommandServer({
      version: world.build.version,
      run: run.command,
      holds: (endpoint) => this.#holds(endpoint),
      owner: (progressed) => {
        if (this.#owner === null) throw this.#whyNotYet();
        return this.#owner(progressed);
      },
      stop: run.signal,
    });
    this.#statusServer = new StatusServer({
      commands: this.#commands,
      config: run.config,
      journal: this.#journal,
      world,
    });
  }

  async run(): Promise<void> {
    const { config, signal } = this.#run;
    await using opened = this.#opened;
    this.#journal.say(
      0,
      `crigc ${this.#world.build.version} starting${config.values.dryRun ? ", dry run: nothing is removed" : ""}`,
    );
    for (const warning of config.warnings) this.#journal.say("warning", warning);
    this.#statusServer.listen();
    opened.defer(() => this.#statusServer.close());
    try {
      const { stateDir, containerRuntimeEndpoint: named } = config.values;
      // A second agent ends before it touches anything of the first one.
      await this.#lock((wait) => lockState(stateDir, wait));
      // A named runtime is held while it does not answer, too.
      const isNamed = named !== null && existsSync(socketDirectory(named));
      if (isNamed) await this.#lock((wait) => lockRuntime(named, wait));
      const connected = await this.#connected();
      if (connected === null) return;
      const { endpoint, runtime } = connected;
      this.#endpoint = endpoint;
      opened.defer(() => runtime.close());
      if (!isNamed) await this.#lock((wait) => lockRuntime(endpoint, wait));
      await this.#runWith(connected, signal);
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "stopped") throw thrown;
    }
  }

  async #runWith(connected: Connected, signal: AbortSignal): Promise<void> {
    const { config } = this.#run;
    const { engine, recorder, recorded } = await openEngine({
      config,
      connected,
      self: this.#world.self,
      owner: null,
      journal: this.#journal.with(this.#statusServer),
      isAgent: true,
    });
    this.#opened.defer(async () => void (await recorded()));
    const agent = new Agent(engine, config);
    this.#statusServer.attach({ agent, engine, recorder });
    const { journal, memory, passes } = engine;
    if (recorder !== null)
      this.#owner = (progressed) => ({
        endpoint: connected.endpoint,
        memory,
        passes,
        recorder,
        progressed,
        journal: journal.with({
          done: progressed,
          passEnded: (pass, seen) => agent.passEnded(pass, seen),
        }),
        turn: (wait) => agent.turn(wait),
      });
    shrinkOnceSettled();
    await agent.run(signal);
    this.#journal.say(0, "crigc stopping on request");
    await this.#commands.ended();
  }

  /** A dry run holds nothing. An agent that has not found its runtime yet may be about to find the named one. */
  #holds(named: string | null): boolean {
    const { dryRun, containerRuntimeEndpoint } = this.#run.config.values;
    const ours = this.#endpoint ?? containerRuntimeEndpoint;
    return !dryRun && (named === null || ours === null || isSameSocket(named, ours));
  }

  /** Why it runs no commands yet. */
  #whyNotYet(): Error {
    const { waits } = this.#statusServer;
    if (waits instanceof HostError) return new HostError("lock", `${waits.message}; try again`);
    const what =
      waits === null ? "is starting; try again" : `waits for the runtime: ${waits.message}`;
    return new RuntimeError("unreachable", `the agent ${what}`);
  }

  /** Tries until the runtime answers, and logs each failure once; `null`: stopped first. */
  async #connected(): Promise<Connected | null> {
    const { config, signal } = this.#run;
    for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS)) {
      try {
        const connected = await connect(config);
        this.#statusServer.waits = null;
        this.#journal.ends("connect", "connecting to the runtime succeeded");
        this.#journal.say(1, `connected to the runtime at ${connected.endpoint}`);
        return connected;
      } catch (thrown) {
        if (isPermanent(thrown)) throw thrown;
        this.#statusServer.waits = new RuntimeError("unreachable", messageOf(thrown));
        this.#journal.begins("connect", `${messageOf(thrown)}; trying again`);
        await timer.sleep(pauseMs, signal);
        if (signal.aborted) return null;
      }
    }
  }

  /** Waits for commands that hold the node; a dry run holds nothing. Throws `HostError` `lock` beside another agent. */
  async #lock(take: (wait: LockWait) => Promise<Lock | null>): Promise<void> {
    if (this.#run.config.values.dryRun) return;
    const onHeld: LockWait["onHeld"] = (holder) => {
      const message = `the agent waits for ${holderWords(holder)}, which holds the node`;
      this.#journal.say(0, message);
      this.#statusServer.waits = new HostError("lock", message);
    };
    this.#opened.use(await take({ waitMs: Infinity, signal: this.#run.signal, onHeld }));
    this.#statusServer.waits = null;
  }
}

/** Waiting does not help: the configuration must change. */
const isPermanent = (thrown: unknown): boolean =>
  thrown instanceof ConfigError || (thrown instanceof RuntimeError && thrown.kind === "ambiguous");
