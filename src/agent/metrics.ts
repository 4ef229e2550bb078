/**
 * Every metric with its type, labels and help, and of a gauge that shows the node's state how it is read; counts passes
 * and events, and exposes all as text for Prometheus.
 */

import { isCutOff } from "../gc/pass-warnings.ts";
import type { Thresholds } from "../model/limits.ts";
import {
  type EventReason,
  eventReasons,
  type ImageItem,
  isGone,
  type Pass,
  passItems,
  type PodItem,
} from "../model/pass.ts";
import type { ImagePlan } from "../model/plan.ts";
import { instantToMs, since, toMs } from "../model/time.ts";
import { PASS_ENDS, type PassOutcome } from "../report/pass-words.ts";
import type { FilesystemStatus, StatusReport } from "../report/status.ts";
import { clean } from "../report/terminal.ts";

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
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly labels: readonly string[];
  /** All series, read at each scrape; absent: passes and events update them. */
  readonly read?: (figures: Figures) => Rows;
}

/** Loops whose runs are passes, by kind of pass. */
const PASS_LOOPS: readonly string[] = ["image-gc", "container-gc"];

const counter = (help: string, ...labels: readonly string[]): MetricDefinition => ({
  type: "counter",
  help,
  labels,
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
  crigc_pass_duration_seconds_total: counter("Time that passes took.", "kind"),
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

interface Series {
  readonly labels: readonly string[];
  value: number;
}

export class MetricRegistry {
  readonly #metrics = new Map<MetricName, Map<string, Series>>();

  add(name: MetricName, by: number | bigint, labels: readonly string[] = []): void {
    this.#series(name, labels).value += Math.max(0, Number(by));
  }

  set(name: MetricName, value: number | bigint | boolean, labels: readonly string[] = []): void {
    this.#series(name, labels).value = Number(value);
  }

  /** Replaces all series, so that stale ones disappear. */
  replace(name: MetricName, rows: Rows): void {
    this.#metrics.delete(name);
    for (const [labels, value] of rows) if (value !== null) this.set(name, value, labels);
  }

  /** Text exposition format 0.0.4. */
  text(): string {
    return METRIC_NAMES.map((name) => this.#textOf(name)).join("");
  }

  #series(name: MetricName, given: readonly string[]): Series {
    // Cleaned here, so that values printed alike are one series: duplicates would invalidate the whole response.
    const labels = given.map(clean);
    const metric = this.#metrics.get(name) ?? new Map<string, Series>();
    this.#metrics.set(name, metric);
    const key = labels.join("\0");
    const known = metric.get(key);
    if (known !== undefined) return known;
    const fresh: Series = { labels, value: 0 };
    metric.set(key, fresh);
    return fresh;
  }

  #textOf(name: MetricName): string {
    const { help, type, labels } = definitionOf(name);
    const metric = this.#metrics.get(name);
    if (metric === undefined || metric.size === 0) return "";
    const series = [...metric].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return [
      `# HELP ${name} ${help.replaceAll("\\", "\\\\")}\n`,
      `# TYPE ${name} ${type}\n`,
      ...series.map(([, it]) => `${name}${labelText(labels, it.labels)} ${it.value}\n`),
    ].join("");
  }
}

const METRIC_NAMES = Object.keys(METRICS).filter((name): name is MetricName =>
  Object.hasOwn(METRICS, name),
);
const definitionOf = (name: MetricName): MetricDefinition => METRICS[name];

function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return "";
  const escaped = (value = ""): string => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return `{${names.map((name, index) => `${name}="${escaped(values[index])}"`).join(",")}}`;
}

export class Metrics {
  readonly #registry = new MetricRegistry();
  readonly #failures = new Map<Pass["kind"], number>();
  #plan: ImagePlan | null = null;

  constructor() {
    // Metrics without labels, and those of events, exist from the start, so that their first increase is seen.
    for (const name of METRIC_NAMES) {
      const { labels, read } = definitionOf(name);
      if (labels.length === 0 && read === undefined) this.#registry.add(name, 0);
    }
    for (const reason of eventReasons) this.#registry.add("crigc_events_total", 0, [reason]);
  }

  observePass(pass: Pass): void {
    const { kind, plan } = pass;
    const registry = this.#registry;
    const outcome = passOutcome(pass);
    const endedAt = instantToMs(pass.endedAt) / 1000;
    const before = this.#failures.get(kind) ?? 0;
    const failures = outcome === "failed" ? before + 1 : isCutOff(pass) ? before : 0;
    this.#failures.set(kind, failures);
    this.#plan = plan.images ?? this.#plan;
    registry.add("crigc_passes_total", 1, [kind, outcome]);
    const tookMs = toMs(since(pass.endedAt, pass.startedAt));
    registry.add("crigc_pass_duration_seconds_total", tookMs / 1000, [kind]);
    if (outcome !== "failed")
      registry.set("crigc_pass_last_success_timestamp_seconds", endedAt, [kind]);
    registry.set("crigc_pass_consecutive_failures", failures, [kind]);
    countHalves(registry, pass);
    for (const item of passItems(pass)) countRemoval(registry, item, pass.purpose.kind);
  }

  observeEvent(reason: EventReason): void {
    this.#registry.add("crigc_events_total", 1, [reason]);
  }

  expose(node: NodeFigures): string {
    const figures = { ...node, plan: this.#plan };
    for (const name of METRIC_NAMES) {
      const rows = definitionOf(name).read?.(figures);
      if (rows !== undefined) this.#registry.replace(name, rows);
    }
    return this.#registry.text();
  }
}

/** The first of them that a half has. */
const OUTCOMES: readonly PassOutcome[] = [
  "failed",
  "dry-run",
  "stopped",
  "blocked",
  "futile",
  "short",
];

export function passOutcome(pass: Pass): PassOutcome {
  const { images, containers, plan } = pass;
  const unread = plan.containers?.logsError ?? null;
  const unready = plan.containers?.podSource.kind === "not-ready";
  if (pass.error !== null || unread !== null || unready) return "failed";
  const hasTarget = plan.images?.targets.some((target) => target.kind !== "everything") === true;
  const outcomes = [images?.end, containers?.end].flatMap((end) =>
    end === undefined || (end === "candidates-exhausted" && !hasTarget)
      ? []
      : [PASS_ENDS[end].outcome],
  );
  if (pass.dryRun) outcomes.push("dry-run");
  const worst = OUTCOMES.find((it) => outcomes.includes(it));
  return worst ?? (outcomes[0] === "idle" && passItems(pass).length === 0 ? "idle" : "done");
}

function countHalves(metrics: MetricRegistry, { images, containers }: Pass): void {
  metrics.add("crigc_container_freed_measured_bytes_total", containers?.measuredFreedBytes ?? 0n);
  if (images === null) return;
  metrics.set("crigc_futile", PASS_ENDS[images.end].outcome === "futile");
  metrics.add("crigc_image_freed_reported_bytes_total", images.reportedFreedBytes);
  metrics.add("crigc_image_freed_measured_bytes_total", images.measuredFreedBytes);
}

function countRemoval(metrics: MetricRegistry, item: ImageItem | PodItem, purpose: string): void {
  const { result } = item;
  const [kind, trigger, reason] = labelsOf(item, purpose);
  if (result.kind === "failed") metrics.add("crigc_removal_failures_total", 1, [kind, result.code]);
  else if (isGone(item)) metrics.add("crigc_removed_total", 1, [kind, trigger, reason]);
}

function labelsOf(
  item: ImageItem | PodItem,
  purpose: string,
): readonly [kind: string, trigger: string, reason: string] {
  if ("candidate" in item) {
    const { kind, ...trigger } = item.trigger;
    return ["image", kind, "signal" in trigger ? trigger.signal : kind];
  }
  const kind = "planned" in item ? "container" : "sandbox" in item ? "sandbox" : item.kind;
  return [kind, purpose, item.reason.kind];
}
