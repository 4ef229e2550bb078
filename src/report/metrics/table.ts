/** Every metric with its type, labels and meaning: the exposition, the documentation and the rules are held against it. */

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, ascending; infinity is added. */
  readonly buckets?: readonly number[];
}

const PASS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const CALL_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

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
const histogram = (
  help: string,
  buckets: readonly number[],
  labels: readonly string[],
): MetricDefinition => ({ type: "histogram", help, labels, buckets });

export const METRICS = {
  crigc_passes_total: counter(
    "Passes that ended, by kind and outcome: done, idle, short, futile, blocked, stopped, dry-run or failed.",
    "kind",
    "outcome",
  ),
  crigc_pass_duration_seconds: histogram("How long passes took.", PASS_SECONDS, ["kind"]),
  crigc_step_duration_seconds: histogram("How long each step of a pass took.", PASS_SECONDS, [
    "step",
  ]),
  crigc_pass_last_attempt_timestamp_seconds: gauge("When the last pass ended.", "kind"),
  crigc_pass_last_success_timestamp_seconds: gauge(
    "When the last pass ended that did not fail.",
    "kind",
  ),
  crigc_pass_consecutive_failures: gauge("Passes in a row that failed, up to now.", "kind"),

  crigc_image_wanted_bytes_total: counter(
    "Bytes that image passes wanted to free when they began.",
  ),
  crigc_image_freed_reported_bytes_total: counter(
    "Sizes of removed images, as the runtime reports them.",
  ),
  crigc_image_freed_measured_bytes_total: counter(
    "Bytes that the filesystem gained by image removal, by measurement.",
  ),
  crigc_container_freed_measured_bytes_total: counter(
    "Bytes that the filesystem gained by removal of containers, sandboxes and logs, by measurement.",
  ),
  crigc_log_removed_bytes_total: counter("Sizes of removed log files."),

  crigc_removed_total: counter(
    "Things removed: kind image, container, sandbox, pod-logs or log-link; what asked for it; the reason code.",
    "kind",
    "trigger",
    "reason",
  ),
  crigc_removal_duration_seconds: histogram(
    "How long the removal of an image took, waiting for its space included.",
    PASS_SECONDS,
    ["kind"],
  ),
  crigc_removal_skipped_total: counter(
    "Planned removals that were not tried, because facts had changed, by reason code.",
    "kind",
    "reason",
  ),
  crigc_removal_failures_total: counter(
    "Removals that failed, by cause: deadline, unreachable, refused, failed and so on, the same for every kind.",
    "kind",
    "cause",
  ),
  crigc_ghost_images_total: counter("Images that were removed with success and are still listed."),
  crigc_futile_passes_total: counter(
    "Image passes that ended because removal could not have reached their target.",
  ),
  crigc_futile: gauge(
    "1 if the last image pass was futile: something other than images fills the disk.",
  ),
  crigc_image_removal_blocked: gauge(
    "1 for each reason for which no image was removed in the last pass that judged images.",
    "block",
  ),
  crigc_images_kept: gauge(
    "Images kept in the last pass that judged images, by reason code.",
    "reason",
  ),
  crigc_image_candidates: gauge("Images that no rule keeps, in the last pass that judged images."),
  crigc_in_use_unknown: gauge(
    "1 if it is not known which images are in use, so that none is removed.",
  ),
  crigc_events_total: counter("Warning events, by reason.", "reason"),

  crigc_filesystem_capacity_bytes: gauge("Size of a filesystem.", "mountpoint", "role"),
  crigc_filesystem_available_bytes: gauge(
    "Bytes available to unprivileged users on a filesystem.",
    "mountpoint",
    "role",
  ),
  crigc_filesystem_inodes: gauge(
    "Inodes of a filesystem, 0 if it has no limit.",
    "mountpoint",
    "role",
  ),
  crigc_filesystem_inodes_free: gauge("Free inodes of a filesystem.", "mountpoint", "role"),
  crigc_filesystem_measured_timestamp_seconds: gauge(
    "When the figures of a filesystem were measured.",
    "mountpoint",
    "role",
  ),
  crigc_image_gc_high_threshold_ratio: gauge("Share of the disk at which image collection starts."),
  crigc_image_gc_low_threshold_ratio: gauge(
    "Share of the disk down to which images are collected.",
  ),
  crigc_images: gauge("Images that the runtime lists."),
  crigc_images_size_bytes: gauge("Sizes of all images, as the runtime reports them."),
  crigc_dead_containers: gauge("Containers that have exited and are still there."),
  crigc_disk_pressure: gauge("1 while disk pressure is reported, the transition period included."),
  crigc_eviction_threshold_met: gauge(
    "1 for each eviction signal whose threshold is met.",
    "signal",
  ),
  crigc_hold: gauge("1 while collection is on hold."),
  crigc_hold_until_timestamp_seconds: gauge("When the hold ends, 0 if there is none or no end."),
  crigc_boot_grace_remaining_seconds: gauge(
    "Watched time that is left after a boot before anything is removed.",
  ),

  crigc_pod_source_ready: gauge(
    "1 if the pod source could be believed in the last pass over containers, 0 if it is not ready.",
    "source",
  ),

  crigc_runtime_up: gauge("1 if the runtime answered last."),
  crigc_runtime_info: gauge("1, with the runtime's name and version.", "name", "version"),
  crigc_cri_calls_total: counter(
    "Calls to the runtime that ended, by method and gRPC code.",
    "method",
    "code",
  ),
  crigc_cri_call_duration_seconds: histogram("How long calls to the runtime took.", CALL_SECONDS, [
    "method",
  ]),
  crigc_ledger_up: gauge("1 if the ledger is kept on disk."),
  crigc_config_reload_success: gauge("1 if the configuration as it is written is in force."),
  crigc_start_time_seconds: gauge("When the agent started."),
  crigc_build_info: gauge("1, with the version and commit of this program.", "version", "commit"),
  process_cpu_seconds_total: counter("Processor time that the process took."),
  process_resident_memory_bytes: gauge("Resident memory of the process."),
  process_open_fds: gauge("Open file descriptors of the process."),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;

/** The rows of the table in the documentation. */
export const metricRows = (): readonly string[] =>
  Object.entries<MetricDefinition>(METRICS).map(
    ([name, it]) =>
      `| \`${name}\` | ${it.type} | ${it.labels.map((label) => `\`${label}\``).join(", ") || "–"} | ${it.help} |`,
  );
