/** Serves the agent's status, health and metrics on the control socket and the metrics address. */

import type { Config } from "../config/config.ts";
import { valuesOf } from "../config/settings.ts";
import { CONTROL_SOCKET } from "../engine/client.ts";
import type { ProcessWorld } from "../engine/owner.ts";
import type { Journal } from "../gc/journal.ts";
import type { Engine } from "../gc/ports.ts";
import { HostError, RuntimeError } from "../model/errors.ts";
import type { Event, Pass } from "../model/pass.ts";
import { type Duration, toMs, uptimeSince } from "../model/time.ts";
import { hostAndPort } from "../model/values.ts";
import { readClocks, wallClock } from "../node/clock.ts";
import { prepare } from "../node/files.ts";
import { ageNow } from "../policy/remember.ts";
import type { FilesystemStatus, StatusReport } from "../report/status.ts";
import type { Recorder } from "../state/recorder.ts";
import type { CommandServer } from "./commands.ts";
import { type HealthCheck, type HttpProviders, keepOpen, serve } from "./http.ts";
import { type Agent, type AgentState, emptyState } from "./loops.ts";
import { Metrics } from "./metrics.ts";
import { pressureStatus } from "./pressure.ts";

const EVENTS_MAX = 50;

export interface Attached {
  readonly agent: Agent;
  readonly engine: Engine;
  readonly recorder: Recorder | null;
}

export interface StatusServerOptions {
  readonly commands: CommandServer;
  readonly config: Config;
  readonly journal: Journal;
  readonly world: ProcessWorld;
}

export class StatusServer implements HttpProviders {
  readonly #options: StatusServerOptions;
  readonly #startedAt = wallClock();
  readonly #metrics = new Metrics();
  readonly #closed = new AbortController();
  #listeners: Promise<void>[] = [];
  #attached: Attached | null = null;
  #events: readonly Event[] = [];
  /** What the agent waits for: a command that holds the node (`HostError`) or the runtime; `null`: nothing, or it has just begun. */
  waits: HostError | RuntimeError | null = null;

  constructor(options: StatusServerOptions) {
    this.#options = options;
  }

  /** Keeps the control socket open, and the metrics address if configured. Logs what fails; the agent continues without it. */
  listen(): void {
    const { commands, config, journal } = this.#options;
    const { runDir, metricsBindAddress: address } = config.values;
    const { signal: stop } = this.#closed;
    const onError = (message: string): void => journal.say("error", message);
    const control = async () =>
      serve(
        { path: prepare(runDir, CONTROL_SOCKET) },
        { surface: "control", from: this, commands, onError },
      );
    this.#listeners = [keepOpen({ name: "control socket", open: control, journal, stop })];
    if (address === null) return;
    const metrics = () => serve(hostAndPort(address), { surface: "metrics", from: this, onError });
    this.#listeners.push(keepOpen({ name: "metrics address", open: metrics, journal, stop }));
  }

  attach(attached: Attached): void {
    this.#attached = attached;
    this.waits = null;
  }

  passEnded(pass: Pass): void {
    this.#metrics.observePass(pass);
  }

  event(event: Event): void {
    this.#metrics.observeEvent(event.reason);
    this.#events = [...this.#events, event].slice(-EVENTS_MAX);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#listeners);
  }

  metrics(): string {
    return this.#metrics.expose({
      ...this.status(),
      thresholds: this.#options.config.limits.images,
      commit: this.#options.world.build.commit,
    });
  }

  health(): readonly HealthCheck[] {
    const timeoutMs = toMs(this.#options.config.values.runtimeRequestTimeout);
    return [
      ...healthOf(this.#attached?.agent.state() ?? null, timeoutMs),
      ...this.#options.commands.health(2 * timeoutMs + 120_000),
    ];
  }

  /** Ready once the runtime answered and the ledger is loaded, even if only in memory. */
  readiness(): readonly HealthCheck[] {
    const { waits } = this;
    const { runtimeError, runtimeAnsweredAt } = this.status();
    const unasked = runtimeAnsweredAt === null ? "not contacted yet" : null;
    return [
      ...(waits instanceof HostError ? [{ name: "node", problem: waits.message }] : []),
      { name: "runtime", problem: runtimeError ?? unasked },
      { name: "ledger", problem: this.#attached === null ? "not loaded yet" : null },
    ];
  }

  status(): StatusReport {
    const { world, config } = this.#options;
    const { waits } = this;
    const attached = this.#attached;
    const state = attached?.agent.state() ?? emptyState;
    const { seen, images, pressure } = state;
    return {
      version: world.build.version,
      pid: world.self.pid,
      now: wallClock(),
      startedAt: this.#startedAt,
      dryRun: config.values.dryRun,
      runtime: seen?.runtime ?? null,
      runtimeError: state.runtimeError ?? (waits instanceof RuntimeError ? waits.message : null),
      runtimeAnsweredAt: state.runtimeAnsweredAt,
      ledgerError: attached?.recorder?.state.failure ?? null,
      hold: attached?.engine.hold() ?? { kind: "none" },
      bootGrace: attached === null ? null : graceOf(attached),
      waiting: state.waiting,
      podSource: state.podSource,
      loops: state.loops,
      lastPasses: [...state.lastPasses.values()],
      filesystems: this.#filesystems(state.filesystems),
      underPressure: pressure?.condition ?? false,
      pressure: pressure === null ? [] : pressureStatus(pressure),
      images,
      deadContainers: seen?.deadContainers ?? null,
      events: this.#events,
      values: valuesOf(config),
    };
  }

  #filesystems(filesystems: AgentState["filesystems"]): readonly FilesystemStatus[] {
    const { lowPercent, highPercent } = this.#options.config.limits.images;
    return filesystems.map((filesystem) => ({
      filesystem,
      thresholds: filesystem.roles.includes("imagefs") ? { lowPercent, highPercent } : null,
    }));
  }
}

function graceOf({ engine }: Attached): Duration | null {
  const ledger = engine.memory.current();
  const { graceUntil } = ledger;
  const totalUptime = ageNow(ledger, readClocks());
  return graceUntil === null || totalUptime >= graceUntil
    ? null
    : uptimeSince(graceUntil, totalUptime);
}

/** A loop is alive if a run or a removal of it ended within three of its periods and two calls' timeouts. */
export function healthOf(state: AgentState | null, timeoutMs: number): readonly HealthCheck[] {
  if (state === null) return [{ name: "waiting for the runtime", problem: null }];
  return state.loops
    .filter((loop) => loop.enabled)
    .map(({ name, periodMs, silentMs }) => {
      if (silentMs === null || silentMs <= 3 * periodMs + 2 * timeoutMs)
        return { name, problem: null };
      const seconds = Math.round(silentMs / 1000);
      return { name, problem: `no run and no removal ended for ${seconds} s` };
    });
}
