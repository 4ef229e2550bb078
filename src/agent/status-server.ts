/** Serves the agent's status, health and metrics on the control socket and the metrics address. */

import type { Config } from "../config/config.ts";
import { valuesOf } from "../config/settings.ts";
import { CONTROL_SOCKET } from "../engine/client.ts";
import type { Log } from "../engine/log.ts";
import type { ProcessWorld } from "../engine/owner.ts";
import type { Engine } from "../gc/ports.ts";
import type { Event, Pass } from "../model/pass.ts";
import { type Duration, type Instant, toMs, uptimeSince } from "../model/time.ts";
import { hostAndPort } from "../model/values.ts";
import { readClocks, wallClock } from "../node/clock.ts";
import { prepare } from "../node/files.ts";
import { ageNow } from "../policy/remember.ts";
import type { FilesystemStatus, StatusReport } from "../report/status.ts";
import type { Recorder } from "../state/recorder.ts";
import type { CommandServer } from "./commands.ts";
import {
  answered,
  type HealthCheck,
  type HttpAddress,
  type HttpProviders,
  keepOpen,
  serve,
  type Surface,
} from "./http.ts";
import { type Agent, type AgentState, emptyState } from "./loops.ts";
import { Metrics } from "./metrics.ts";

const EVENTS_MAX = 50;

export interface Attached {
  readonly agent: Agent;
  readonly engine: Engine;
  readonly recorder: Recorder | null;
}

export interface StatusServerOptions {
  readonly commands: CommandServer;
  readonly config: Config;
  readonly log: Log;
  readonly world: ProcessWorld;
  readonly startedAt: Instant;
}

export class StatusServer implements HttpProviders {
  readonly #options: StatusServerOptions;
  readonly #metrics = new Metrics();
  readonly #closers: (() => Promise<void>)[] = [];
  #attached: Attached | null = null;
  #events: readonly Event[] = [];
  #connectError: string | null = null;
  /** The command that holds the node. */
  #heldBy: string | null = null;

  constructor(options: StatusServerOptions) {
    this.#options = options;
  }

  /** Opens the control socket, and the metrics address if configured. Logs what fails; the agent continues without it. */
  async listen(): Promise<void> {
    const { commands, config, log } = this.#options;
    const { runDir, metricsBindAddress } = config.values;
    const open = (surface: Surface, address: HttpAddress) =>
      serve(address, {
        answer: (request) => answered(request, surface, this),
        ...(surface === "control" && {
          commands: (request, response, path) => commands.answer(request, response, path),
        }),
        onError: (message) => log.recurring("http", message),
      });
    const control = async () => open("control", { path: prepare(runDir, CONTROL_SOCKET) });
    this.#closers.push(await keepOpen({ name: "control socket", open: control, log }));
    if (metricsBindAddress === null) return;
    const metrics = () => open("metrics", hostAndPort(metricsBindAddress));
    this.#closers.push(await keepOpen({ name: "metrics address", open: metrics, log }));
  }

  attach(attached: Attached): void {
    this.#attached = attached;
    this.#connectError = null;
  }

  unreachable(message: string): void {
    this.#connectError = message;
  }

  /** `null`: this agent holds the node. */
  waiting(message: string | null): void {
    this.#heldBy = message;
  }

  passEnded(pass: Pass): void {
    this.#metrics.observePass(pass);
  }

  event(event: Event): void {
    this.#metrics.observeEvent(event.reason);
    this.#events = [...this.#events, event].slice(-EVENTS_MAX);
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
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

  readiness(): readonly HealthCheck[] {
    const held = this.#heldBy === null ? [] : [{ name: "node", problem: this.#heldBy }];
    return [...held, ...readinessOf(this.#attached?.agent.state() ?? null, this.#connectError)];
  }

  status(): StatusReport {
    const { world, config, startedAt } = this.#options;
    const attached = this.#attached;
    const state = attached?.agent.state() ?? emptyState;
    const { seen, images, pressure } = state;
    return {
      version: world.build.version,
      pid: world.self.pid,
      now: wallClock(),
      startedAt,
      dryRun: config.values.dryRun,
      runtime: seen?.runtime ?? null,
      runtimeError: state.runtimeError ?? this.#connectError,
      runtimeAnsweredAt: state.runtimeAnsweredAt,
      ledgerError: attached?.recorder?.state.failure ?? null,
      hold: attached?.engine.hold() ?? { kind: "none" },
      bootGrace: attached === null ? null : graceOf(attached),
      waiting: state.waiting,
      podSource: state.lastPasses.get("container-gc")?.plan.containers?.podSource ?? null,
      loops: state.loops,
      lastPasses: [...state.lastPasses.values()],
      filesystems: this.#filesystems(state.filesystems),
      underPressure: pressure?.condition ?? false,
      pressure: (pressure?.met ?? []).map((one) => ({
        signal: one.threshold.signal,
        mountpoint: one.filesystem.mountpoint,
        available: one.available,
        limit: one.limit,
        due: pressure?.due.includes(one) ?? false,
      })),
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

/** Ready once the runtime answered and the ledger is loaded, even if only in memory. */
export function readinessOf(
  state: AgentState | null,
  connectError: string | null,
): readonly HealthCheck[] {
  const silent = state === null ? (connectError ?? "not contacted yet") : state.runtimeError;
  const unasked = state !== null && state.runtimeAnsweredAt === null ? "not contacted yet" : null;
  return [
    { name: "runtime", problem: silent ?? unasked },
    { name: "ledger", problem: state === null ? "not loaded yet" : null },
  ];
}
