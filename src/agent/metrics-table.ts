/**
 * Every metric with its type, labels and help, and of a gauge that shows the node's state how it is read. Exposition,
 * documentation and rules are checked against it.
 */

import type { Thresholds } from "../model/limits.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { ProcessFigures } from "../model/ports.ts";
import { type Instant, instantToMs, toMs } from "../model/time.ts";
import type { FilesystemStatus, StatusReport } from "../report/status.ts";

/** Status and configuration, read on each scrape. */
export interface NodeFigures extends StatusReport {
  /** Percent. */
  readonly thresholds: Thresholds;
  /** With a threshold, each once. */
  readonly signals: readonly string[];
  readonly usage: ProcessFigures;
  readonly commit: string;
}

/** `plan`: of the last pass that evaluated images. */
type Figures = NodeFigures & { readonly plan: ImagePlan | null };

/** `null`: no series. */
export type Value = number | bigint | boolean | null;
/** Label values in the order of the metric's labels, and the value. */
export type Rows = readonly (readonly [labels: readonly string[], value: Value])[];

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, ascending; infinity is added. */
  readonly buckets?: readonly number[];
  /** All series, read at each scrape; absent: passes, calls and events update them. */
  readonly read?: (figures: Figures) => Rows;
}

const PASS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const CALL_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** Loops whose runs are passes, by kind of pass. */
const PASS_LOOPS: readonly string[] = ["image-gc", "container-gc"];
const USE_UNKNOWN: readonly string[] = ["usage-unknown", "pods-unknown", "pods-incomplete"];

const timestamp = (at: Instant): number => instantToMs(at) / 1000;

const counter = (help: string, ...labels: readonly string[]): MetricDefinition => ({
  type: "counter",
  help,
  labels,
});
const histogram = (help: string, label: string, buckets: readonly number[]): MetricDefinition => ({
  type: "histogram",
  help,
  labels: [label],
  buckets,
});
const gauge = (help: string, ...labels: readonly string[]): MetricDefinition => ({
  type: "gauge",
  help,
  labels,
});
const states = (
  help: string,
  labels: readonly string[],
  read: (figures: Figures) => Rows,
): MetricDefinition => ({ type: "gauge", help, labels, read });
const state = (help: string, read: (figures: Figures) => Value): MetricDefinition =>
  states(help, [], (figures) => [[[], read(figures)]]);
/** One series per role, so that queries need not know which roles share a filesystem; none without figures. */
const diskGauge = (help: string, read: (disk: FilesystemStatus) => Value): MetricDefinition =>
  states(help, ["mountpoint", "role"], ({ filesystems }) =>
    filesystems.flatMap((disk) =>
      disk.filesystem.roles.map(
        (role) =>
          [
            [disk.filesystem.mountpoint, role],
            disk.filesystem.unmeasured === undefined ? read(disk) : null,
          ] as const,
      ),
    ),
  );

export const METRICS = {
  crigc_passes_total: counter(
    "Passes by outcome: done, idle, short, futile, blocked, stopped, dry-run or failed.",
    "kind",
    "outcome",
  ),
  crigc_pass_duration_seconds: histogram("Duration of passes.", "kind", PASS_SECONDS),
  crigc_step_duration_seconds: histogram(
    "Duration of the steps and waits of a pass.",
    "step",
    PASS_SECONDS,
  ),
  crigc_pass_last_attempt_timestamp_seconds: gauge("When the last pass ended.", "kind"),
  crigc_pass_last_success_timestamp_seconds: gauge(
    "When the last pass without failure ended.",
    "kind",
  ),
  crigc_pass_period_seconds: states(
    "Configured pause between passes; absent without a trigger.",
    ["kind"],
    ({ loops }) =>
      loops
        .filter(({ name, enabled }) => enabled && PASS_LOOPS.includes(name))
        .map(({ name, periodMs }) => [[name], periodMs / 1000]),
  ),
  crigc_pass_consecutive_failures: gauge("Failed passes in a row.", "kind"),
  crigc_image_wanted_bytes_total: counter("Bytes that image passes had to free."),
  crigc_image_freed_reported_bytes_total: counter("Reported sizes of removed images."),
  crigc_image_freed_measured_bytes_total: counter("Measured bytes freed by image removal."),
  crigc_container_freed_measured_bytes_total: counter("Measured bytes freed by container passes."),
  crigc_log_removed_bytes_total: counter("Sizes of removed log files."),
  crigc_removed_total: counter("Removals by reason code.", "kind", "trigger", "reason"),
  crigc_removal_duration_seconds: histogram(
    "Duration of an image removal, with the wait for space.",
    "kind",
    PASS_SECONDS,
  ),
  crigc_removal_skipped_total: counter(
    "Removals skipped because the node had changed.",
    "kind",
    "reason",
  ),
  crigc_removal_failures_total: counter(
    "Failed removals by cause, such as deadline or failed.",
    "kind",
    "cause",
  ),
  crigc_ghost_images_total: counter("Images still listed after a successful removal."),
  crigc_futile_passes_total: counter("Image passes that were futile."),
  crigc_futile: gauge("1 if the last image pass was futile."),
  crigc_image_removal_blocked: states(
    "1 for each block of image removal.",
    ["block"],
    ({ plan, waiting }) =>
      [...(plan?.blocks ?? []), ...(waiting === null ? [] : [waiting])].map(({ kind }) => [
        [kind],
        1,
      ]),
  ),
  crigc_images_kept: states("Images kept in the last image pass.", ["reason"], ({ plan }) =>
    [...Map.groupBy(plan?.kept ?? [], ({ reason }) => reason.kind)].map(([code, kept]) => [
      [code],
      kept.length,
    ]),
  ),
  crigc_image_candidates: state(
    "Candidates in the last image pass.",
    ({ plan }) => plan && plan.candidates.length,
  ),
  crigc_in_use_unknown: state("1 if crigc cannot tell which images are in use.", ({ plan }) =>
    (plan?.blocks ?? []).some(({ kind }) => USE_UNKNOWN.includes(kind)),
  ),
  crigc_events_total: counter("Warning events.", "reason"),
  crigc_filesystem_capacity_bytes: diskGauge(
    "Size of a filesystem.",
    ({ filesystem }) => filesystem.capacityBytes,
  ),
  crigc_filesystem_available_bytes: diskGauge(
    "Bytes available to unprivileged users.",
    ({ filesystem }) => filesystem.availableBytes,
  ),
  crigc_filesystem_inodes: diskGauge(
    "Inodes of a filesystem; 0: no limit.",
    ({ filesystem }) => filesystem.inodes,
  ),
  crigc_filesystem_inodes_free: diskGauge(
    "Free inodes of a filesystem.",
    ({ filesystem }) => filesystem.inodesFree,
  ),
  crigc_filesystem_measured_timestamp_seconds: diskGauge(
    "When a filesystem was measured.",
    ({ filesystem }) => timestamp(filesystem.measuredAt),
  ),
  crigc_image_gc_high_threshold_ratio: state(
    "Disk usage at which image GC starts.",
    ({ thresholds }) => thresholds.highPercent / 100,
  ),
  crigc_image_gc_low_threshold_ratio: state(
    "Disk usage to which image GC frees down.",
    ({ thresholds }) => thresholds.lowPercent / 100,
  ),
  crigc_images: state("Images that the runtime lists.", ({ images }) => images && images.count),
  crigc_images_size_bytes: state(
    "Reported sizes of all images.",
    ({ images }) => images && images.sizeBytes,
  ),
  crigc_dead_containers: state("Dead containers.", ({ deadContainers }) => deadContainers),
  crigc_disk_pressure: state(
    "1 while disk pressure is reported.",
    ({ underPressure }) => underPressure,
  ),
  crigc_eviction_threshold_met: states(
    "1 for each eviction signal over its threshold.",
    ["signal"],
    ({ signals, pressure }) =>
      signals.map((signal) => [[signal], pressure.some((met) => met.signal === signal)]),
  ),
  crigc_hold: state("1 while garbage collection is on hold.", ({ hold }) => hold.kind === "held"),
  crigc_hold_until_timestamp_seconds: state(
    "When the hold ends; 0 without hold or end.",
    ({ hold }) => (hold.kind === "none" || hold.until === null ? 0 : timestamp(hold.until)),
  ),
  crigc_boot_grace_remaining_seconds: state(
    "Remaining grace period after a boot.",
    ({ bootGrace }) => (bootGrace === null ? 0 : toMs(bootGrace) / 1000),
  ),
  crigc_pod_source_ready: states(
    "1 if the pod source was ready in the last container pass.",
    ["source"],
    ({ podSource }) =>
      podSource === null || podSource.kind === "none"
        ? []
        : [[[podSource.source], podSource.kind === "ready"]],
  ),
  crigc_runtime_up: state(
    "1 if the runtime answered the last call.",
    ({ runtime, runtimeError }) => runtimeError === null && runtime !== null,
  ),
  crigc_runtime_info: states(
    "1, with the runtime's name and version.",
    ["name", "version"],
    ({ runtime }) => (runtime === null ? [] : [[[runtime.name, runtime.version], 1]]),
  ),
  crigc_cri_calls_total: counter("Ended calls to the runtime, by gRPC code.", "method", "code"),
  crigc_cri_call_duration_seconds: histogram(
    "Duration of calls to the runtime.",
    "method",
    CALL_SECONDS,
  ),
  crigc_ledger_up: state("1 if the ledger is on disk.", ({ ledgerError }) => ledgerError === null),
  crigc_start_time_seconds: state("When the agent started.", ({ startedAt }) =>
    timestamp(startedAt),
  ),
  crigc_build_info: states(
    "1, with crigc's version and commit.",
    ["version", "commit"],
    ({ version, commit }) => [[[version, commit], 1]],
  ),
  process_cpu_seconds_total: {
    ...state("CPU time of the process.", ({ usage }) => usage.cpuSeconds),
    type: "counter",
  },
  process_resident_memory_bytes: state(
    "Resident memory of the process.",
    ({ usage }) => usage.residentBytes,
  ),
  process_open_fds: state("Open file descriptors of the process.", ({ usage }) => usage.openFiles),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
