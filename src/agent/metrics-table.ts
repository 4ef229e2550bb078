/**
 * Every metric with its type, labels and help, and of a gauge that shows the node's state how it is read. Exposition,
 * documentation and rules are checked against it.
 */

import type { Thresholds } from "../model/limits.ts";
import type { ImagePlan } from "../model/plan.ts";
import { instantToMs } from "../model/time.ts";
import type { FilesystemStatus, StatusReport } from "../report/status.ts";

/** Status and configuration, read on each scrape. */
export interface NodeFigures extends StatusReport {
  /** Percent. */
  readonly thresholds: Thresholds;
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
  /** All series, read at each scrape; absent: passes and events update them. */
  readonly read?: (figures: Figures) => Rows;
}

const PASS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
/** Loops whose runs are passes, by kind of pass. */
const PASS_LOOPS: readonly string[] = ["image-gc", "container-gc"];

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
  crigc_image_freed_reported_bytes_total: counter("Reported sizes of removed images."),
  crigc_image_freed_measured_bytes_total: counter("Measured bytes freed by image removal."),
  crigc_container_freed_measured_bytes_total: counter("Measured bytes freed by container passes."),
  crigc_removed_total: counter("Removals by reason code.", "kind", "trigger", "reason"),
  crigc_removal_failures_total: counter(
    "Failed removals by cause, such as deadline or failed.",
    "kind",
    "cause",
  ),
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
  crigc_image_gc_high_threshold_ratio: state(
    "Disk usage at which image GC starts.",
    ({ thresholds }) => thresholds.highPercent / 100,
  ),
  crigc_disk_pressure: state(
    "1 while disk pressure is reported.",
    ({ underPressure }) => underPressure,
  ),
  crigc_hold: state("1 while garbage collection is on hold.", ({ hold }) => hold.kind === "held"),
  crigc_runtime_up: state(
    "1 if the runtime answered the last call.",
    ({ runtime, runtimeError }) => runtimeError === null && runtime !== null,
  ),
  crigc_ledger_up: state("1 if the ledger is on disk.", ({ ledgerError }) => ledgerError === null),
  crigc_start_time_seconds: state(
    "When the agent started.",
    ({ startedAt }) => instantToMs(startedAt) / 1000,
  ),
  crigc_build_info: states(
    "1, with crigc's version and commit.",
    ["version", "commit"],
    ({ version, commit }) => [[[version, commit], 1]],
  ),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
