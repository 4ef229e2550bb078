/** `crigc run`: waits for the runtime, then runs the agent with all its parts until it is stopped. */

import type { Config } from "../config/config.ts";
import { journalOf, type Log, logOf } from "../engine/log.ts";
import { connect, type Connected, openEngine } from "../engine/node.ts";
import {
  lockRuntime,
  lockState,
  type Owner,
  type ProcessWorld,
  type RunCommand,
} from "../engine/owner.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../model/errors.ts";
import { timer, wallClock } from "../node/clock.ts";
import { holderWords, type Lock, type LockWait } from "../node/lock.ts";
import { shrinkOnceSettled } from "../node/process.ts";
import { CommandServer } from "./commands.ts";
import { Agent } from "./loops.ts";
import { type Attached, StatusServer } from "./status-server.ts";

const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 30_000;

export interface AgentRun {
  readonly config: Config;
  readonly signal: AbortSignal;
  /** Runs a command line that came over the control socket. */
  readonly command: RunCommand;
}

/** Resolves after `run.signal` aborted and everything is written. Throws `HostError` `lock` beside another agent. */
export async function runAgent(run: AgentRun, world: ProcessWorld): Promise<void> {
  await using running = new AgentProcess(run, world);
  await running.run();
}

class AgentProcess {
  readonly #run: AgentRun;
  readonly #world: ProcessWorld;
  readonly #statusServer: StatusServer;
  readonly #opened = new AsyncDisposableStack();
  readonly #log: Log;
  readonly #commands: CommandServer;
  /** `null` until this agent holds the node and is connected. */
  #owner: ((progressed: () => void) => Owner) | null = null;
  /** Why it is not yet. */
  #waits: Error = new RuntimeError("unreachable", "the agent is starting; try again");

  constructor(run: AgentRun, world: ProcessWorld) {
    this.#run = run;
    this.#world = world;
    this.#log = logOf(run.config, world.stderr);
    this.#commands = new CommandServer({
      version: world.build.version,
      run: run.command,
      owner: (progressed) => {
        if (this.#owner === null) throw this.#waits;
        return this.#owner(progressed);
      },
      stop: run.signal,
      onError: (message) => this.#log.recurring("command", message),
    });
    this.#statusServer = new StatusServer({
      commands: this.#commands,
      config: run.config,
      log: this.#log,
      world,
      startedAt: wallClock(),
    });
  }

  async run(): Promise<void> {
    const { config, signal } = this.#run;
    this.#log.info(
      0,
      `crigc ${this.#world.build.version} starting${config.values.dryRun ? ", dry run: nothing is removed" : ""}`,
    );
    for (const warning of config.warnings) this.#log.warning(warning);
    await this.#statusServer.listen();
    this.#opened.defer(() => this.#statusServer.close());
    try {
      // A second agent ends before it touches anything of the first one.
      await this.#lock((wait) => lockState(config, wait));
      const connected = await this.#connected();
      if (connected === null) return;
      this.#opened.defer(() => connected.runtime.close());
      await this.#lock((wait) => lockRuntime(connected.endpoint, wait));
      await this.#runWith(connected, signal);
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "stopped") throw thrown;
    }
  }

  async #runWith(connected: Connected, signal: AbortSignal): Promise<void> {
    const { config } = this.#run;
    const { engine, recorder, close } = await openEngine({
      config,
      connected,
      self: this.#world.self,
      owner: null,
      log: this.#log,
      isAgent: true,
      listener: this.#statusServer,
    });
    this.#opened.defer(close);
    const agent = new Agent(engine, config);
    this.#statusServer.attach({ agent, engine, recorder });
    if (!config.values.dryRun) this.#serve({ engine, recorder, agent }, connected);
    shrinkOnceSettled();
    await agent.run(signal);
    this.#log.info(0, "crigc stopping on request");
    await this.#commands.ended();
  }

  /** From here on commands run in this agent. */
  #serve(
    { agent, engine: { journal, memory, passes }, recorder }: Attached,
    { endpoint }: Connected,
  ): void {
    this.#owner = (progressed) => ({
      endpoint,
      memory,
      passes,
      recorder,
      progressed,
      journal: journalOf(journal, {
        imageDone: progressed,
        containerDone: progressed,
        passEnded: (pass, seen) => agent.commandEnded(pass, seen),
      }),
      turn: (wait) => agent.turn(wait),
    });
  }

  /** Tries until the runtime answers, and logs each failure once; `null`: stopped first. */
  async #connected(): Promise<Connected | null> {
    const { config, signal } = this.#run;
    let pauseMs = RETRY_FIRST_MS;
    while (!signal.aborted) {
      try {
        const connected = await connect(config);
        if (signal.aborted) {
          connected.runtime.close();
          return null;
        }
        this.#log.success("connect", "Connecting to the runtime");
        this.#log.info(1, `connected to the runtime at ${connected.endpoint}`);
        return connected;
      } catch (thrown) {
        if (isPermanent(thrown)) throw thrown;
        this.#statusServer.unreachable(messageOf(thrown));
        const message = `the agent waits for the runtime: ${messageOf(thrown)}`;
        if (!this.#run.config.values.dryRun) this.#waits = new RuntimeError("unreachable", message);
        this.#log.failure("connect", `${messageOf(thrown)}; trying again in ${pauseMs / 1000} s`);
        await timer.sleep(pauseMs, signal);
        pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS);
      }
    }
    return null;
  }

  /** Waits for commands that hold the node; a dry run holds nothing. Throws `HostError` `lock` beside another agent. */
  async #lock(take: (wait: LockWait) => Promise<Lock>): Promise<void> {
    if (this.#run.config.values.dryRun) {
      this.#waits = new HostError("lock", "the agent is a dry run and runs no commands");
      return;
    }
    const onHeld: LockWait["onHeld"] = (holder) => {
      const message = `the agent waits for ${holderWords(holder)}, which holds the node`;
      this.#log.info(0, message);
      this.#statusServer.waiting(message);
      this.#waits = new HostError("lock", `${message}; try again`);
    };
    const lock = await take({ waitMs: Infinity, signal: this.#run.signal, onHeld });
    this.#opened.defer(() => lock.release());
    this.#statusServer.waiting(null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/** Waiting does not help: the configuration must change. */
const isPermanent = (thrown: unknown): boolean =>
  thrown instanceof ConfigError || (thrown instanceof RuntimeError && thrown.kind === "ambiguous");
