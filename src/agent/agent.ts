/** `crigc run`: waits for the runtime, then runs the agent with all its parts until it is stopped. */

import { exit } from "../cli/exit.ts";
import type { Config, Written } from "../config/config.ts";
import { shown } from "../config/settings.ts";
import { ConfigError, messageOf, RuntimeError } from "../model/errors.ts";
import { timer, wallClock } from "../node/clock.ts";
import type { Lock } from "../node/lock.ts";
import { shrinkOnceSettled } from "../node/process.ts";
import { type Log, logForm, logOf } from "./log.ts";
import { Agent } from "./loops.ts";
import { type LockHolder, openEngine, takeLock } from "./node.ts";
import { LiveConfig } from "./reload.ts";
import { connect, type Connected } from "./runtime.ts";
import { StatusServer } from "./status-server.ts";
import type { ProcessWorld } from "./world.ts";

const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 30_000;
const LOCK_LOOK_MS = 5_000;

export interface AgentRun {
  readonly first: Written;
  /** Reads flags, environment and files again. Throws `ConfigError`. */
  readonly read: () => Written;
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
  readonly #live: LiveConfig;
  readonly #statusServer: StatusServer;
  readonly #closers: (() => void | Promise<void>)[] = [];
  #log: Log;
  #agent: Agent | null = null;
  #agentLock: Lock | null = null;
  /** Ends a pause between connection attempts: on reload or stop. */
  #wake = new AbortController();

  constructor(run: AgentRun, world: ProcessWorld) {
    this.#run = run;
    this.#world = world;
    this.#live = new LiveConfig(run, world.kubelet.found, (config) => {
      const places = config.sources.evictionHard.from.join(", ");
      const thresholds = shown(config, "evictionHard");
      this.#log.info(0, `eviction thresholds are now ${thresholds}, ${places}`);
    });
    this.#log = logOf(this.#live.current(), world);
    this.#statusServer = new StatusServer({
      config: this.#live.current,
      difference: this.#live.difference,
      log: () => this.#log,
      world,
      startedAt: wallClock(),
    });
    run.signal.addEventListener("abort", () => this.#wake.abort());
    this.#closers.push(world.onHangup(() => this.#reload()));
  }

  async run(): Promise<number> {
    const { signal } = this.#run;
    const config = this.#live.current();
    this.#log.info(
      0,
      `crigc ${this.#world.build.version} starting${config.values.dryRun ? ", dry run: nothing is removed" : ""}`,
    );
    for (const warning of config.warnings) this.#log.warning(warning);
    const watchdog = this.#keepAlive();
    this.#closers.push(() => clearInterval(watchdog));
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
    const { systemd, kubelet } = this.#world;
    const { engine, recorder, close } = await openEngine({
      ...this.#holder(connected),
      kubelet,
      log: () => this.#log,
      startedAt: wallClock(),
      onPass: (pass) => this.#statusServer.passEnded(pass),
      onEvent: (event) => this.#statusServer.event(event),
    });
    this.#closers.push(close);
    const agent = new Agent(engine, this.#live.current);
    this.#agent = agent;
    this.#statusServer.attach({ agent, engine, recorder });
    systemd.ready(`watching ${connected.endpoint}`);
    shrinkOnceSettled();
    await agent.run(signal);
    systemd.stopping();
    this.#log.info(0, "crigc stopping on request");
    return exit.done;
  }

  /**
   * Tries until the runtime answers, and logs each failure once; `null`: stopped first. A configuration that is
   * reloaded meanwhile is tried at once, with its sockets.
   */
  async #connected(): Promise<Connected | null> {
    const { signal } = this.#run;
    await this.#statusServer.listen();
    this.#closers.push(() => this.#statusServer.close());
    let pauseMs = RETRY_FIRST_MS;
    while (!signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      try {
        const connected = await connect(this.#live.current(), (call) =>
          this.#statusServer.call(call),
        );
        if (wake.signal.aborted) {
          // The configured socket may have changed meanwhile.
          connected.runtime.close();
          continue;
        }
        this.#live.isConnected = true;
        this.#log.success("connect", "Connecting to the runtime");
        this.#log.info(1, `connected to the runtime at ${connected.endpoint}`);
        return connected;
      } catch (thrown) {
        if (wake.signal.aborted) continue;
        if (isPermanent(thrown)) throw thrown;
        this.#statusServer.unreachable(messageOf(thrown));
        this.#log.failure("connect", `${messageOf(thrown)}; trying again in ${pauseMs / 1000} s`);
        // Report ready now: the boot must not wait for a runtime that may never start. /readyz shows the rest.
        this.#world.systemd.ready(`waiting for the runtime: ${messageOf(thrown)}`);
        await timer.sleep(pauseMs, wake.signal);
        pauseMs = wake.signal.aborted ? RETRY_FIRST_MS : Math.min(pauseMs * 2, RETRY_LONGEST_MS);
      }
    }
    return null;
  }

  #holder(connected: Connected): LockHolder {
    return {
      config: this.#live.current,
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

  #reload(): void {
    let config: Config;
    try {
      config = this.#live.reload();
    } catch (thrown) {
      this.#log.error(
        `configuration not reloaded, the last valid one stays in force: ${messageOf(thrown)}`,
      );
      return;
    }
    this.#log = this.#log.reconfigured(logForm(config));
    this.#log.info(0, "configuration reloaded");
    for (const warning of config.warnings) this.#log.warning(warning);
    for (const name of config.waiting) {
      this.#log.warning(`${name} changed and takes effect when the agent restarts`);
    }
    this.#agent?.reloaded();
    this.#wake.abort();
  }

  #keepAlive(): ReturnType<typeof setInterval> | undefined {
    const { systemd } = this.#world;
    if (systemd.watchdogMs === null) return undefined;
    return setInterval(() => {
      // A working timer must not hide a hanging loop.
      if (!this.#statusServer.isAlive()) return;
      systemd.alive();
      systemd.status(this.#statusServer.statusLine());
    }, systemd.watchdogMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const closer of this.#closers.toReversed()) await closer();
    this.#log.flush();
  }
}

/** Waiting does not help: the configuration must change. */
const isPermanent = (thrown: unknown): boolean =>
  thrown instanceof ConfigError || (thrown instanceof RuntimeError && thrown.kind === "ambiguous");
