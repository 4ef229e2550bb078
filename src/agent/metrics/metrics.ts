/** The metrics of an agent: updated by passes, calls and events, and exposed as text. */

import type { HoldState } from "../../model/hold.ts";
import type { Thresholds } from "../../model/limits.ts";
import type { EventReason, Pass } from "../../model/pass.ts";
import type { ImagePlan } from "../../model/plan.ts";
import type { CallRecord, ProcessFigures } from "../../model/ports.ts";
import { type Duration, type Instant, instantToMs, toMs } from "../../model/time.ts";
import type { FilesystemStatus, StatusReport } from "../../report/document/status.ts";
import { eventReasons } from "../../report/pass-words.ts";
import { countKept, countPass, passOutcome } from "./pass.ts";
import { MetricRegistry } from "./registry.ts";
import type { MetricName } from "./table.ts";

/** Status and configuration, read on each scrape. */
export interface NodeFigures extends StatusReport {
  /** Percent. */
  readonly thresholds: Thresholds;
  readonly signals: readonly string[];
}

export interface Metrics {
  observePass(pass: Pass): void;
  observeCall(call: CallRecord): void;
  observeEvent(reason: EventReason): void;
  setNode(node: NodeFigures): void;
  setProcess(figures: ProcessFigures): void;
  /** Prometheus text, version 0.0.4. */
  expose(): string;
}

export function createMetrics(build: {
  readonly version: string;
  readonly commit: string;
  readonly startedAt: Instant;
}): Metrics {
  const registry = new MetricRegistry();
  const failures = new Map<Pass["kind"], number>();
  let cpuSeconds = 0;
  /** The pass whose kept images are not counted yet. */
  let plan: ImagePlan | null = null;
  registry.set("crigc_build_info", 1, [build.version, build.commit]);
  registry.set("crigc_start_time_seconds", instantToMs(build.startedAt) / 1000);
  for (const name of FROM_THE_START) registry.add(name, 0);
  for (const reason of eventReasons) registry.add("crigc_events_total", 0, [reason]);

  return {
    observePass: (pass) => {
      countPass(registry, pass);
      plan = pass.plan.images ?? plan;
      const failed = passOutcome(pass) === "failed" ? (failures.get(pass.kind) ?? 0) + 1 : 0;
      failures.set(pass.kind, failed);
      registry.set("crigc_pass_consecutive_failures", failed, [pass.kind]);
    },
    observeCall: ({ method, code, tookMs }) => {
      registry.add("crigc_cri_calls_total", 1, [method, code]);
      registry.observe("crigc_cri_call_duration_seconds", tookMs / 1000, [method]);
    },
    observeEvent: (reason) => registry.add("crigc_events_total", 1, [reason]),
    setNode: (node) => setNode(registry, node),
    setProcess: (figures) => {
      registry.add("process_cpu_seconds_total", figures.cpuSeconds - cpuSeconds);
      cpuSeconds = Math.max(cpuSeconds, figures.cpuSeconds);
      if (figures.residentBytes !== null) {
        registry.set("process_resident_memory_bytes", figures.residentBytes);
      }
      if (figures.openFiles !== null) registry.set("process_open_fds", figures.openFiles);
    },
    expose: () => {
      if (plan !== null) countKept(registry, plan);
      plan = null;
      return registry.expose();
    },
  };
}

/** Counters without labels, and those of events, exist from the start, so that their first increase is seen. */
const FROM_THE_START: readonly MetricName[] = [
  "crigc_image_wanted_bytes_total",
  "crigc_image_freed_reported_bytes_total",
  "crigc_image_freed_measured_bytes_total",
  "crigc_container_freed_measured_bytes_total",
  "crigc_log_removed_bytes_total",
  "crigc_ghost_images_total",
  "crigc_futile_passes_total",
  "crigc_futile",
  "crigc_in_use_unknown",
];

/** Loops whose runs are passes, by kind of pass. */
const PASS_LOOPS: readonly string[] = ["image-gc", "container-gc"] satisfies Pass["kind"][];

function setNode(registry: MetricRegistry, node: NodeFigures): void {
  registry.set("crigc_runtime_up", flag(node.runtimeError === null && node.runtime !== null));
  if (node.runtime !== null)
    registry.replace("crigc_runtime_info", [[[node.runtime.name, node.runtime.version], 1]]);
  if (node.waiting !== null) registry.set("crigc_image_removal_blocked", 1, [node.waiting.kind]);
  setFilesystems(registry, node.filesystems);
  registry.replace(
    "crigc_pass_period_seconds",
    node.loops
      .filter(({ name, enabled }) => enabled && PASS_LOOPS.includes(name))
      .map(({ name, periodMs }) => [[name], periodMs / 1000] as const),
  );
  if (node.images !== null) {
    registry.set("crigc_images", node.images.count);
    registry.set("crigc_images_size_bytes", node.images.sizeBytes);
  }
  if (node.deadContainers !== null) registry.set("crigc_dead_containers", node.deadContainers);
  registry.set("crigc_disk_pressure", flag(node.underPressure));
  const met = new Set(node.pressure.map(({ signal }) => signal));
  registry.replace(
    "crigc_eviction_threshold_met",
    [...new Set(node.signals)].map((signal) => [[signal], flag(met.has(signal))] as const),
  );
  registry.set("crigc_image_gc_high_threshold_ratio", node.thresholds.highPercent / 100);
  registry.set("crigc_image_gc_low_threshold_ratio", node.thresholds.lowPercent / 100);
  registry.set("crigc_hold", flag(node.hold.kind === "held"));
  registry.set("crigc_hold_until_timestamp_seconds", holdEnd(node.hold));
  registry.set(
    "crigc_boot_grace_remaining_seconds",
    node.bootGrace === null ? 0 : toMs(node.bootGrace) / 1000,
  );
  const { podSource } = node;
  registry.replace(
    "crigc_pod_source_ready",
    podSource === null || podSource.kind === "none"
      ? []
      : [[[podSource.source], flag(podSource.kind === "ready")]],
  );
  registry.set("crigc_ledger_up", flag(node.ledgerError === null));
  const returned = node.regrets?.returned ?? [];
  registry.replace(
    "crigc_image_regrets",
    returned.map((one) => [[one.trigger], one.count] as const),
  );
  registry.replace(
    "crigc_image_regret_bytes",
    returned.map((one) => [[one.trigger], one.sizeBytes] as const),
  );
  registry.set("crigc_config_reload_success", flag(node.configurationError === null));
}

type FilesystemGauge = readonly [MetricName, (it: FilesystemStatus) => number | bigint | null];

const FILESYSTEM_GAUGES: readonly FilesystemGauge[] = [
  ["crigc_filesystem_capacity_bytes", ({ filesystem }) => filesystem.capacityBytes],
  ["crigc_filesystem_available_bytes", ({ filesystem }) => filesystem.availableBytes],
  ["crigc_filesystem_inodes", ({ filesystem }) => filesystem.inodes],
  ["crigc_filesystem_inodes_free", ({ filesystem }) => filesystem.inodesFree],
  [
    "crigc_filesystem_measured_timestamp_seconds",
    ({ filesystem }) => instantToMs(filesystem.measuredAt) / 1000,
  ],
  [
    "crigc_filesystem_growth_bytes_per_second",
    ({ forecast }) => forecast && Number(forecast.bytesPerHour) / 3600,
  ],
  [
    "crigc_filesystem_high_threshold_in_seconds",
    ({ forecast }) => secondsOf(forecast?.untilHigh ?? null),
  ],
  ["crigc_filesystem_full_in_seconds", ({ forecast }) => secondsOf(forecast?.untilFull ?? null)],
];

/** One series per role, so that queries need not know which roles share a filesystem. */
function setFilesystems(registry: MetricRegistry, filesystems: readonly FilesystemStatus[]): void {
  for (const [name, figure] of FILESYSTEM_GAUGES)
    registry.replace(
      name,
      filesystems.flatMap((it) => {
        const { roles, mountpoint } = it.filesystem;
        const value = figure(it);
        return value === null ? [] : roles.map((role) => [[mountpoint, role], value] as const);
      }),
    );
}

const secondsOf = (span: Duration | null): number | null =>
  span === null ? null : toMs(span) / 1000;
const flag = (value: boolean): number => (value ? 1 : 0);
const holdEnd = (hold: HoldState): number =>
  hold.kind === "none" || hold.until === null ? 0 : instantToMs(hold.until) / 1000;
