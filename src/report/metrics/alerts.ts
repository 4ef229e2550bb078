/** The alerts that we recommend: what each watches, what it means, and what to do; rules and documentation are made of them. */

export interface Alert {
  readonly name: string;
  readonly expression: string;
  /** How long it holds before the alert fires, as Prometheus writes it. */
  readonly holdsFor: string;
  readonly severity: "warning" | "critical";
  readonly summary: string;
  /** What an operator should do. */
  readonly action: string;
}

/** Used share of the image filesystem, by instance; a recording rule. */
export const USED_RATIO = {
  name: "crigc:imagefs_used:ratio",
  expression:
    '1 - crigc_filesystem_available_bytes{role="imagefs"} / crigc_filesystem_capacity_bytes{role="imagefs"}',
} as const;

export const ALERTS: readonly Alert[] = [
  {
    name: "CrigcAbsent",
    expression: "absent(crigc_build_info)",
    holdsFor: "15m",
    severity: "critical",
    summary: "No agent of crigc is scraped anywhere",
    action:
      "look at systemctl status crigc on the nodes, and at Prometheus' targets for the metrics address",
  },
  {
    name: "CrigcRuntimeUnreachable",
    expression: "crigc_runtime_up == 0",
    holdsFor: "10m",
    severity: "critical",
    summary: "The container runtime has not answered for 10 minutes",
    action:
      "look at the runtime's service and at crigc doctor; crigc goes on by itself once it answers",
  },
  {
    name: "CrigcPassesFailing",
    expression: "crigc_pass_consecutive_failures >= 3",
    holdsFor: "5m",
    severity: "warning",
    summary: "{{ $labels.kind }} has failed {{ $value }} times in a row",
    action: "crigc status names the error; a list or a stat that fails stops everything on purpose",
  },
  {
    name: "CrigcNoImagePass",
    expression: 'time() - crigc_pass_last_success_timestamp_seconds{kind="image-gc"} > 3600',
    holdsFor: "5m",
    severity: "warning",
    summary: "Image collection has not come to its end for more than an hour",
    action: "look at crigc status for a loop that hangs, and at /healthz",
  },
  {
    name: "CrigcDiskOverThreshold",
    expression: `${USED_RATIO.name} > on (job, instance) group_left () (crigc_image_gc_high_threshold_ratio + 0.02)`,
    holdsFor: "30m",
    severity: "warning",
    summary: "{{ $labels.mountpoint }} stays over the high threshold although images are collected",
    action: "crigc plan says what is kept and why, and crigc audit what no image explains",
  },
  {
    name: "CrigcDiskPressure",
    expression: "crigc_disk_pressure == 1",
    holdsFor: "15m",
    severity: "critical",
    summary: "The node has been short of disk for 15 minutes",
    action:
      "free space by hand: what crigc may remove is gone; crigc plan says what fills the disk",
  },
  {
    name: "CrigcFutile",
    expression: "crigc_futile == 1",
    holdsFor: "15m",
    severity: "warning",
    summary: "Something other than images fills the disk, so the images stay",
    action:
      "look for what crigc plan calls something else: build caches, volumes, logs of programs",
  },
  {
    name: "CrigcKeepRulesInvalid",
    expression: 'crigc_image_removal_blocked{block="keep-rules-invalid"} == 1',
    holdsFor: "5m",
    severity: "critical",
    summary: "The keep rules are invalid, so no image is removed",
    action: "crigc keep check names the file and the line",
  },
  {
    name: "CrigcImagesBlocked",
    expression:
      'crigc_image_removal_blocked{block=~"usage-unknown|pods-unknown|pods-incomplete|invalid-capacity"} == 1',
    holdsFor: "30m",
    severity: "warning",
    summary: "No image is removed: {{ $labels.block }}",
    action: "crigc plan says first what could not be read",
  },
  {
    name: "CrigcRemovalsFail",
    expression:
      "sum by (job, instance, kind, cause) (increase(crigc_removal_failures_total[1h])) > 5",
    holdsFor: "0m",
    severity: "warning",
    summary: "Removals of kind {{ $labels.kind }} keep failing: {{ $labels.cause }}",
    action: "crigc history names the things and what the runtime said",
  },
  {
    name: "CrigcGhostImages",
    expression: 'crigc_images_kept{reason="ghost"} > 0',
    holdsFor: "1h",
    severity: "warning",
    summary: "{{ $value }} images are still listed after their removal",
    action: "crigc audit names them; the runtime's log says what holds them",
  },
  {
    name: "CrigcHoldForgotten",
    expression: "crigc_hold == 1",
    holdsFor: "24h",
    severity: "warning",
    summary: "Collection has been on hold for a day",
    action: "crigc release, if the reason for the hold is gone",
  },
  {
    name: "CrigcLedgerLost",
    expression: "crigc_ledger_up == 0",
    holdsFor: "15m",
    severity: "warning",
    summary: "The ledger is not kept on disk, so a restart forgets when images were used",
    action: "look at the state directory: permissions, space, and what crigc status says",
  },
  {
    name: "CrigcConfigRefused",
    expression: "crigc_config_reload_success == 0",
    holdsFor: "10m",
    severity: "warning",
    summary: "A changed configuration was refused, the last good one is still in force",
    action: "crigc config --check names the line",
  },
  {
    name: "CrigcRuntimeSlow",
    expression:
      "histogram_quantile(0.9, sum by (job, instance, method, le) (rate(crigc_cri_call_duration_seconds_bucket[30m]))) > 10",
    holdsFor: "30m",
    severity: "warning",
    summary: "{{ $labels.method }} takes the runtime more than 10 seconds",
    action:
      "look at the disk's load and at the number of containers; a slow disk can be spared with removalInterval",
  },
];

/** The rows of the table in the documentation. */
export const alertRows = (): readonly string[] =>
  ALERTS.map(
    (it) =>
      `| \`${it.name}\` | ${it.severity} | ${it.holdsFor} | ${it.summary.replace(/\{\{ \$(?:labels\.)?(\w+) \}\}/g, "‹$1›")} | ${it.action} |`,
  );
