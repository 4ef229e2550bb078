/** Every metric with its type, labels and help. Exposition, documentation and rules are checked against it. */

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
/** One series per role of a filesystem. */
const diskGauge = (help: string): MetricDefinition => gauge(help, "mountpoint", "role");
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
  crigc_pass_duration_seconds: histogram("Duration of passes.", PASS_SECONDS, ["kind"]),
  crigc_step_duration_seconds: histogram(
    "Duration of each step of a pass, and of its waits within steps: turn, lock, lists, containers, creation, space.",
    PASS_SECONDS,
    ["step"],
  ),
  crigc_pass_last_attempt_timestamp_seconds: gauge("When the last pass ended.", "kind"),
  crigc_pass_last_success_timestamp_seconds: gauge(
    "When the last pass ended that did not fail.",
    "kind",
  ),
  crigc_pass_period_seconds: gauge(
    "Configured pause between passes, by kind; absent for a kind without a trigger.",
    "kind",
  ),
  crigc_pass_consecutive_failures: gauge("Passes in a row that failed, up to now.", "kind"),

  crigc_image_wanted_bytes_total: counter("Bytes that image passes had to free when they began."),
  crigc_image_freed_reported_bytes_total: counter(
    "Sizes of removed images, as the runtime reports them.",
  ),
  crigc_image_freed_measured_bytes_total: counter(
    "Bytes freed by image removal, as measured on the filesystem.",
  ),
  crigc_container_freed_measured_bytes_total: counter(
    "Bytes freed by removal of containers, sandboxes and logs, as measured on the filesystem.",
  ),
  crigc_log_removed_bytes_total: counter("Sizes of removed log files."),

  crigc_removed_total: counter(
    "Removals by kind (image, container, sandbox, pod-logs, log-link), trigger and reason code.",
    "kind",
    "trigger",
    "reason",
  ),
  crigc_removal_duration_seconds: histogram(
    "Duration of an image removal, including the wait for its space.",
    PASS_SECONDS,
    ["kind"],
  ),
  crigc_removal_skipped_total: counter(
    "Planned removals that were skipped because the node had changed, by reason code.",
    "kind",
    "reason",
  ),
  crigc_removal_failures_total: counter(
    "Removals that failed, by cause: deadline, unreachable, refused, failed and so on, the same for every kind.",
    "kind",
    "cause",
  ),
  crigc_ghost_images_total: counter("Images still listed after a successful removal."),
  crigc_image_regrets: gauge(
    "Images that came back after they were removed, as recorded in the history, by trigger of the removal.",
    "trigger",
  ),
  crigc_image_regret_bytes: gauge("Reported sizes of these images.", "trigger"),
  crigc_futile_passes_total: counter("Image passes that ended because too little can be freed."),
  crigc_futile: gauge("1 if the last image pass was futile: other data fills the disk."),
  crigc_image_removal_blocked: gauge(
    "1 for each reason for which no image was removed in the last pass that evaluated images, or for which one waits now.",
    "block",
  ),
  crigc_images_kept: gauge(
    "Images kept in the last pass that evaluated images, by reason code.",
    "reason",
  ),
  crigc_image_candidates: gauge(
    "Candidates (images that no rule keeps) in the last pass that evaluated images.",
  ),
  crigc_in_use_unknown: gauge(
    "1 if crigc cannot tell which images are in use, so it removes none.",
  ),
  crigc_events_total: counter("Warning events, by reason.", "reason"),

  crigc_filesystem_capacity_bytes: diskGauge("Size of a filesystem."),
  crigc_filesystem_available_bytes: diskGauge(
    "Bytes available to unprivileged users on a filesystem.",
  ),
  crigc_filesystem_inodes: diskGauge("Inodes of a filesystem, 0 if it has no limit."),
  crigc_filesystem_inodes_free: diskGauge("Free inodes of a filesystem."),
  crigc_filesystem_measured_timestamp_seconds: diskGauge(
    "When the figures of a filesystem were measured.",
  ),
  crigc_filesystem_growth_bytes_per_second: diskGauge(
    "Rate at which other programs fill a filesystem; absent without a clear trend.",
  ),
  crigc_filesystem_high_threshold_in_seconds: diskGauge(
    "Time to the high threshold at the present rate, 0 if it is reached; absent without a forecast.",
  ),
  crigc_filesystem_full_in_seconds: diskGauge(
    "Time until a filesystem is full at the present rate if nothing is removed; absent without a forecast.",
  ),
  crigc_image_gc_high_threshold_ratio: gauge("Disk usage at which image GC starts, as a ratio."),
  crigc_image_gc_low_threshold_ratio: gauge("Disk usage to which image GC frees down, as a ratio."),
  crigc_images: gauge("Images that the runtime lists."),
  crigc_images_size_bytes: gauge("Sizes of all images, as the runtime reports them."),
  crigc_dead_containers: gauge("Dead containers."),
  crigc_disk_pressure: gauge("1 while disk pressure is reported, the transition period included."),
  crigc_eviction_threshold_met: gauge(
    "1 for each eviction signal whose threshold is met.",
    "signal",
  ),
  crigc_hold: gauge("1 while garbage collection is on hold."),
  crigc_hold_until_timestamp_seconds: gauge(
    "When the hold ends; 0 without a hold or without an end.",
  ),
  crigc_boot_grace_remaining_seconds: gauge(
    "Remaining grace period after a boot, in which nothing is removed.",
  ),

  crigc_pod_source_ready: gauge(
    "1 if the pod source was ready in the last container pass, 0 if not.",
    "source",
  ),

  crigc_runtime_up: gauge("1 if the last call to the runtime was answered."),
  crigc_runtime_info: gauge("1, with the runtime's name and version.", "name", "version"),
  crigc_cri_calls_total: counter(
    "Calls to the runtime that ended, by method and gRPC code.",
    "method",
    "code",
  ),
  crigc_cri_call_duration_seconds: histogram("Duration of calls to the runtime.", CALL_SECONDS, [
    "method",
  ]),
  crigc_ledger_up: gauge("1 if the ledger is on disk."),
  crigc_config_reload_success: gauge("1 if the configuration on disk is in force."),
  crigc_start_time_seconds: gauge("When the agent started."),
  crigc_build_info: gauge("1, with the version and commit of this program.", "version", "commit"),
  process_cpu_seconds_total: counter("Processor time that the process took."),
  process_resident_memory_bytes: gauge("Resident memory of the process."),
  process_open_fds: gauge("Open file descriptors of the process."),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
