/** `crigc run`: waits for the runtime, then runs the agent with all its parts until it is stopped. */

import { exit } from "../cli/exit.ts";
import type { Config } from "../config/config.ts";
import { ConfigError, messageOf, RuntimeError } from "../model/errors.ts";
import { timer, wallClock } from "../node/clock.ts";
import type { Lock } from "../node/lock.ts";
import { shrinkOnceSettled } from "../node/process.ts";
import { type Log, logOf } from "./log.ts";
import { Agent } from "./loops.ts";
import { type LockHolder, openEngine, takeLock } from "./node.ts";
import { connect, type Connected } from "./runtime.ts";
import { StatusServer } from "./status-server.ts";
import type { ProcessWorld } from "./world.ts";

const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 30_000;
const LOCK_LOOK_MS = 5_000;

export interface AgentRun {
  readonly config: Config;
  readonly signal: AbortSignal;
}

/** Resolves with the exit code after `run.signal` aborted and everything is written. */
export async function runAgent(run: AgentRun, world: ProcessWorld): Promise<number> {
  await using running = new RunningAgent(run, world);
  return await running.run();
}

class RunningAgent {
  readonly #run: AgentRun;
  readonly #world: ProcessWorld;
  readonly #statusServer: StatusServer;
  readonly #closers: (() => void | Promise<void>)[] = [];
  readonly #log: Log;
  #agentLock: Lock | null = null;

  constructor(run: AgentRun, world: ProcessWorld) {
    this.#run = run;
    this.#world = world;
    this.#log = logOf(run.config, world);
    this.#statusServer = new StatusServer({
      config: () => run.config,
      log: () => this.#log,
      world,
      startedAt: wallClock(),
    });
  }

  async run(): Promise<number> {
    const { config, signal } = this.#run;
    this.#log.info(
      0,
      `crigc ${this.#world.build.version} starting${config.values.dryRun ? ", dry run: nothing is removed" : ""}`,
    );
    for (const warning of config.warnings) this.#log.warning(warning);
    // A second agent exits before it touches anything of the first one.
    const connected = await this.#connected();
    if (connected === null) return exit.done;
    this.#closers.push(() => connected.runtime.close());
    if (!(await this.#lock(connected))) return exit.busy;
    const looking = setInterval(() => void this.#lockAgain(connected), LOCK_LOOK_MS);
    this.#closers.push(() => {
      clearInterval(looking);
      this.#agentLock?.release();
    });
    return await this.#runWith(connected, signal);
  }

  async #runWith(connected: Connected, signal: AbortSignal): Promise<number> {
    const { engine, recorder, close } = await openEngine({
      ...this.#holder(connected),
      log: () => this.#log,
      startedAt: wallClock(),
      onPass: (pass) => this.#statusServer.passEnded(pass),
      onEvent: (event) => this.#statusServer.event(event),
    });
    this.#closers.push(close);
    const agent = new Agent(engine, () => this.#run.config);
    this.#statusServer.attach({ agent, engine, recorder });
    shrinkOnceSettled();
    await agent.run(signal);
    this.#log.info(0, "crigc stopping on request");
    return exit.done;
  }

  /** Tries until the runtime answers, and logs each failure once; `null`: stopped first. */
  async #connected(): Promise<Connected | null> {
    const { config, signal } = this.#run;
    await this.#statusServer.listen();
    this.#closers.push(() => this.#statusServer.close());
    let pauseMs = RETRY_FIRST_MS;
    while (!signal.aborted) {
      try {
        const connected = await connect(config, (call) => this.#statusServer.call(call));
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
        this.#log.failure("connect", `${messageOf(thrown)}; trying again in ${pauseMs / 1000} s`);
        await timer.sleep(pauseMs, signal);
        pauseMs = Math.min(pauseMs * 2, RETRY_LONGEST_MS);
      }
    }
    return null;
  }

  #holder(connected: Connected): LockHolder {
    return {
      config: () => this.#run.config,
      connected,
      self: this.#world.self,
      holder: "crigc run",
    };
  }

  /** `false`: another agent has it, which is logged. */
  async #lock(connected: Connected): Promise<boolean> {
    const { signal } = this.#run;
    const attempt = await takeLock(this.#holder(connected), { name: "agent", waitMs: 0, signal });
    if (attempt.kind === "acquired") {
      this.#agentLock = attempt.lock;
      return true;
    }
    const holder = attempt.kind === "held" && attempt.holder !== "" ? ` (${attempt.holder})` : "";
    this.#log.failure(
      "agent-lock",
      `another agent is already running for ${connected.endpoint}${holder}; each runtime has only one`,
    );
    return false;
  }

  /** If the lock's file was deleted, another agent could start. */
  async #lockAgain(connected: Connected): Promise<void> {
    const before = this.#agentLock;
    try {
      if (before?.isInPlace() === true) return;
      if (await this.#lock(connected)) before?.release();
    } catch (thrown) {
      this.#log.failure("agent-lock", messageOf(thrown));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const closer of this.#closers.toReversed()) await closer();
    this.#log.flush();
  }
}

/** Waiting does not help: the configuration must change. */
const isPermanent = (thrown: unknown): boolean =>
  thrown instanceof ConfigError || (thrown instanceof RuntimeError && thrown.kind === "ambiguous");
