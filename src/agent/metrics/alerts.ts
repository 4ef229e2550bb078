/** The recommended alerts, and the rule file made of them that `crigc print prometheus-rules` prints. */

export interface Alert {
  readonly name: string;
  readonly expression: string;
  /** `for` of the alert, as Prometheus writes it. */
  readonly holdsFor: string;
  readonly severity: "warning" | "critical";
  readonly summary: string;
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
    expression: [
      "absent(crigc_build_info)",
      // Known targets that are down and had an agent before.
      "max by (job, instance) (up == 0 and on (job, instance) max_over_time(crigc_build_info[7d]))",
      // Kubernetes nodes without a target; only if the targets have the label `node`.
      '(group by (node) (kube_node_info) unless on (node) crigc_build_info) and on () crigc_build_info{node!=""}',
    ].join(" or "),
    holdsFor: "15m",
    severity: "critical",
    summary:
      'Prometheus scrapes no crigc agent on {{ or $labels.node $labels.instance "any node" }}',
    action:
      "check systemctl status crigc on the nodes and the metrics address in Prometheus' targets",
  },
  {
    name: "CrigcRuntimeUnreachable",
    expression: "crigc_runtime_up == 0",
    holdsFor: "10m",
    severity: "critical",
    summary: "The container runtime has not answered for 10 minutes",
    action:
      "check the runtime's service and run crigc doctor; crigc resumes once the runtime answers",
  },
  {
    name: "CrigcPassesFailing",
    expression: "crigc_pass_consecutive_failures >= 3",
    holdsFor: "5m",
    severity: "warning",
    summary: "{{ $labels.kind }} has failed {{ $value }} times in a row",
    action:
      "crigc status shows the error; a failed list or measurement stops all removal on purpose",
  },
  {
    name: "CrigcNoImagePass",
    expression:
      'time() - (crigc_pass_last_success_timestamp_seconds{kind="image-gc"} or on (job, instance) crigc_start_time_seconds) > on (job, instance) crigc_pass_period_seconds{kind="image-gc"} + 3600',
    holdsFor: "5m",
    severity: "warning",
    summary: "No image GC pass has succeeded for an hour longer than its period",
    action: "check crigc status and /healthz for a loop that hangs",
  },
  {
    name: "CrigcDiskOverThreshold",
    expression: `${USED_RATIO.name} > on (job, instance) group_left () (crigc_image_gc_high_threshold_ratio + 0.02)`,
    holdsFor: "30m",
    severity: "warning",
    summary: "{{ $labels.mountpoint }} stays over the high threshold despite image GC",
    action: "crigc plan shows what is kept and why, crigc audit what no image explains",
  },
  {
    name: "CrigcDiskFullSoon",
    expression: `max by (job, instance, mountpoint) (crigc_filesystem_full_in_seconds) < 4 * 3600 unless on (job, instance, mountpoint) ${USED_RATIO.name} <= on (job, instance) group_left () (crigc_image_gc_high_threshold_ratio < 1)`,
    holdsFor: "15m",
    severity: "critical",
    summary:
      "{{ $labels.mountpoint }} is full in {{ $value | humanizeDuration }}, and image GC does not stop it",
    action: "crigc df shows what fills the disk; free space by hand or enlarge it",
  },
  {
    name: "CrigcDiskPressure",
    expression: "crigc_disk_pressure == 1",
    holdsFor: "15m",
    severity: "critical",
    summary: "The node has been short of disk space for 15 minutes",
    action:
      "free space by hand: crigc has no candidates left; crigc plan shows what fills the disk",
  },
  {
    name: "CrigcFutile",
    expression: "crigc_futile == 1",
    holdsFor: "15m",
    severity: "warning",
    summary: "Data other than images fills the disk, so crigc keeps the images",
    action: "search for what crigc plan calls other data: build caches, volumes, logs of programs",
  },
  {
    name: "CrigcKeepRulesInvalid",
    expression: 'crigc_image_removal_blocked{block="keep-rules-invalid"} == 1',
    holdsFor: "5m",
    severity: "critical",
    summary: "Invalid keep rules, so crigc removes no image",
    action: "crigc keep check shows the file and the line",
  },
  {
    name: "CrigcImagesBlocked",
    expression:
      'crigc_image_removal_blocked{block=~"usage-unknown|pods-unknown|pods-incomplete|invalid-capacity"} == 1',
    holdsFor: "30m",
    severity: "warning",
    summary: "No image is removed: {{ $labels.block }}",
    action: "crigc plan starts with what it cannot read",
  },
  {
    name: "CrigcRemovalsFail",
    expression:
      "sum by (job, instance, kind, cause) (increase(crigc_removal_failures_total[1h])) > 5",
    holdsFor: "0m",
    severity: "warning",
    summary: "Removals of kind {{ $labels.kind }} keep failing: {{ $labels.cause }}",
    action: "crigc history shows the removals and what the runtime answered",
  },
  {
    name: "CrigcGhostImages",
    expression: 'crigc_images_kept{reason="ghost"} > 0',
    holdsFor: "1h",
    severity: "warning",
    summary: "{{ $value }} images are still listed after a successful removal",
    action: "crigc audit lists them; search the runtime's log for their IDs",
  },
  {
    name: "CrigcHoldForgotten",
    expression: "crigc_hold == 1",
    holdsFor: "24h",
    severity: "warning",
    summary: "Garbage collection has been on hold for a day",
    action: "run crigc release if the hold is no longer needed",
  },
  {
    name: "CrigcLedgerLost",
    expression: "crigc_ledger_up == 0",
    holdsFor: "15m",
    severity: "warning",
    summary: "The ledger is not on disk, so a restart forgets when images were used",
    action: "check permissions and space of the state directory, and crigc status",
  },
  {
    name: "CrigcConfigRefused",
    expression: "crigc_config_reload_success == 0",
    holdsFor: "10m",
    severity: "warning",
    summary: "The configuration files differ from what is in force",
    action:
      "crigc status shows the difference or the error; systemctl reload crigc applies the files",
  },
  {
    name: "CrigcRuntimeSlow",
    expression:
      "histogram_quantile(0.9, sum by (job, instance, method, le) (rate(crigc_cri_call_duration_seconds_bucket[30m]))) > 10",
    holdsFor: "30m",
    severity: "warning",
    summary: "The runtime takes more than 10 seconds for {{ $labels.method }}",
    action:
      "check the disk's load and the number of containers; removalInterval spares a slow disk",
  },
];

/** The section of the documentation about an alert. */
export const runbookOf = ({ name }: Alert): string => `docs/operations.md#${name.toLowerCase()}`;

export function prometheusRules(): string {
  return [
    "# Rules for the metrics of crigc. Check them with: promtool check rules FILE",
    "groups:",
    "  - name: crigc-recording",
    "    rules:",
    `      - record: ${USED_RATIO.name}`,
    `        expr: ${quoted(USED_RATIO.expression)}`,
    "  - name: crigc-alerts",
    "    rules:",
    ...ALERTS.flatMap(alertLines),
    "",
  ].join("\n");
}

const alertLines = (alert: Alert): readonly string[] => [
  `      - alert: ${alert.name}`,
  `        expr: ${quoted(alert.expression)}`,
  `        for: ${alert.holdsFor}`,
  "        labels:",
  `          severity: ${alert.severity}`,
  "        annotations:",
  `          summary: ${quoted(alert.summary)}`,
  `          description: ${quoted(`What to do: ${alert.action}.`)}`,
  `          runbook: ${runbookOf(alert)}`,
];

/** In YAML's single quotes, everything except a single quote is literal. */
const quoted = (text: string): string => `'${text.replace(/'/g, "''")}'`;
