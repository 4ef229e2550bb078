// Metrics: what passes, calls and the node add, and the text that Prometheus reads.

import { describe, expect, test } from "bun:test";

import {
  createMetrics,
  type Metrics,
  type NodeFigures,
} from "../../../src/agent/metrics/metrics.ts";
import { passOutcome } from "../../../src/agent/metrics/pass.ts";
import { MetricRegistry } from "../../../src/agent/metrics/registry.ts";
import { type MetricDefinition, METRICS } from "../../../src/agent/metrics/table.ts";
import { removeSandbox } from "../../../src/gc/container/sandbox-removal.ts";
import { OthersRemovals } from "../../../src/gc/others-removal.ts";
import { failureCode, RuntimeError } from "../../../src/model/errors.ts";
import type { Pass } from "../../../src/model/pass.ts";
import { minutes } from "../../../src/model/time.ts";
import {
  containerOutcome,
  containerPlan,
  forecast,
  GIB,
  imageOutcome,
  imagePlan,
  measured,
  NOW,
  pass,
  removedImage,
  sandbox,
  status,
} from "../../report/build.ts";

const fresh = (): Metrics => createMetrics({ version: "0.1.0", commit: "abc", startedAt: NOW });

const met = (signal: string) => ({
  signal,
  mountpoint: "/",
  available: 1n,
  limit: 2n,
  due: true,
});

const node = (differences: Partial<NodeFigures> = {}): NodeFigures => ({
  ...status(),
  filesystems: [{ filesystem: measured(), thresholds: null, forecast }],
  thresholds: { highPercent: 85, lowPercent: 80 },
  images: { count: 7, sizeBytes: GIB },
  deadContainers: 3,
  signals: ["imagefs.available"],
  pressure: [met("imagefs.available")],
  bootGrace: minutes(2),
  podSource: { kind: "ready", source: "kubelet-dir" },
  regrets: {
    removedImages: 9,
    returned: [{ trigger: "space", count: 2, sizeBytes: 7n }],
    soonest: minutes(1),
  },
  ...differences,
});

/** The value of one series, as it is exposed. */
function valueOf(metrics: { expose(): string }, series: string): number | null {
  const line = metrics
    .expose()
    .split("\n")
    .find((it) => it.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}

describe("a pass", () => {
  test("metrics of a pass count its outcome, its removals and the freed bytes", () => {
    const metrics = fresh();
    metrics.observePass(pass());
    const expected: readonly (readonly [string, number])[] = [
      ['crigc_passes_total{kind="gc",outcome="done"}', 1],
      ['crigc_pass_duration_seconds_count{kind="gc"}', 1],
      ['crigc_pass_duration_seconds_bucket{kind="gc",le="1"}', 0],
      ['crigc_pass_duration_seconds_bucket{kind="gc",le="2.5"}', 1],
      ['crigc_pass_duration_seconds_bucket{kind="gc",le="+Inf"}', 1],
      ['crigc_pass_duration_seconds_sum{kind="gc"}', 1.85],
      ['crigc_step_duration_seconds_count{step="execute"}', 1],
      ["crigc_image_wanted_bytes_total", 4_294_967_296],
      ["crigc_image_freed_reported_bytes_total", 263_192_576],
      ["crigc_image_freed_measured_bytes_total", 526_385_152],
      ["crigc_container_freed_measured_bytes_total", 12_582_912],
      ["crigc_log_removed_bytes_total", 5_242_880],
      ['crigc_removed_total{kind="image",trigger="space",reason="space"}', 2],
      ['crigc_removed_total{kind="container",trigger="periodic",reason="pod-gone"}', 1],
      ['crigc_removed_total{kind="pod-logs",trigger="periodic",reason="pod-gone"}', 1],
      ['crigc_images_kept{reason="pinned"}', 1],
      ["crigc_image_candidates", 3],
      ["crigc_in_use_unknown", 0],
      ["crigc_futile", 0],
      ['crigc_pass_last_success_timestamp_seconds{kind="gc"}', 1_768_478_402.1],
    ];
    for (const [series, value] of expected)
      expect([series, valueOf(metrics, series)]).toEqual([series, value]);
  });

  test("a removal that misses its deadline has the cause deadline, for an image as for a sandbox", async () => {
    const metrics = fresh();
    const late = new RuntimeError("deadline", "StopPodSandbox did not answer in time");
    const { signal } = new AbortController();
    const failing = {
      runtime: { sandboxDetail: async () => ({ state: "not-ready" }) },
      writer: { stopSandbox: () => Promise.reject(late) },
      signal,
      others: new OthersRemovals({ monotonicNs: () => 0n, sleep: async () => undefined }, signal),
    } as unknown as Parameters<typeof removeSandbox>[2];
    const { item } = await removeSandbox(sandbox(1), { kind: "pod-gone" }, failing);
    const sandboxes = [item];
    const result = { kind: "failed", message: late.message, code: failureCode(late) } as const;
    metrics.observePass(
      pass({
        images: imageOutcome({ items: [removedImage(1, { result })] }),
        containers: containerOutcome({ containers: [], sandboxes, logs: [] }),
      }),
    );
    for (const kind of ["image", "sandbox"])
      expect([
        kind,
        valueOf(metrics, `crigc_removal_failures_total{kind="${kind}",cause="deadline"}`),
      ]).toEqual([kind, 1]);
  });

  test("metrics count failed removals by cause, skipped ones by reason, and ghosts", () => {
    const metrics = fresh();
    const items = [
      removedImage(1, { result: { kind: "failed", message: "x", code: "unreachable" } }),
      removedImage(2, { result: { kind: "ghost" } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "in-use", users: [] } } }),
    ];
    metrics.observePass(pass({ images: imageOutcome({ items }), containers: null }));
    expect(valueOf(metrics, 'crigc_removal_failures_total{kind="image",cause="unreachable"}')).toBe(
      1,
    );
    expect(valueOf(metrics, 'crigc_removal_skipped_total{kind="image",reason="in-use"}')).toBe(1);
    expect(valueOf(metrics, "crigc_ghost_images_total")).toBe(1);
    expect(
      valueOf(metrics, 'crigc_removed_total{kind="image",trigger="space",reason="space"}'),
    ).toBeNull();
  });

  test("a failed pass keeps the time of the last success and counts failures in a row", () => {
    const metrics = fresh();
    const failed = pass({ error: "x", images: null, containers: null });
    metrics.observePass(failed);
    metrics.observePass(failed);
    expect(valueOf(metrics, 'crigc_pass_consecutive_failures{kind="gc"}')).toBe(2);
    expect(valueOf(metrics, 'crigc_pass_last_success_timestamp_seconds{kind="gc"}')).toBeNull();
    metrics.observePass(pass());
    expect(valueOf(metrics, 'crigc_pass_consecutive_failures{kind="gc"}')).toBe(0);
  });

  test("a reason that no longer applies has no series any more", () => {
    const metrics = fresh();
    const blocked = imagePlan({ blocks: [{ kind: "pods-unknown", message: "x" }], candidates: [] });
    metrics.observePass(pass({ plan: { images: blocked, containers: null } }));
    expect(valueOf(metrics, 'crigc_image_removal_blocked{block="pods-unknown"}')).toBe(1);
    expect(valueOf(metrics, "crigc_in_use_unknown")).toBe(1);
    metrics.observePass(pass());
    expect(valueOf(metrics, 'crigc_image_removal_blocked{block="pods-unknown"}')).toBeNull();
    expect(valueOf(metrics, "crigc_in_use_unknown")).toBe(0);
  });

  const images = (end: Parameters<typeof imageOutcome>[0]): Pass =>
    pass({ images: imageOutcome(end), containers: null });
  const outcomes: readonly (readonly [string, Pass])[] = [
    ["done", pass()],
    ["failed", pass({ error: "x" })],
    ["failed", images({ end: "observation-failed" })],
    ["failed", pass({ plan: { images: null, containers: containerPlan({ logsError: "x" }) } })],
    ["dry-run", pass({ dryRun: true })],
    ["stopped", images({ end: "stopped" })],
    ["blocked", images({ end: "blocked" })],
    ["blocked", pass({ images: null, containers: containerOutcome({ end: "blocked" }) })],
    ["futile", images({ end: "nothing-freed" })],
    ["short", images({ end: "candidates-exhausted" })],
    ["short", images({ end: "settle-exhausted" })],
    ["idle", images({ end: "nothing-to-do", items: [] })],
    ["done", pass({ images: imageOutcome({ end: "nothing-to-do", items: [] }) })],
  ];

  test.each(outcomes)("is %s", (outcome, it) => {
    expect(passOutcome(it)).toBe(outcome as ReturnType<typeof passOutcome>);
  });
});

describe("the node", () => {
  const other = {
    filesystem: measured({ mountpoint: "/other" }),
    thresholds: null,
    forecast: null,
  };

  test("a filesystem has one series for each of its roles", () => {
    const metrics = fresh();
    metrics.setNode(node());
    for (const role of ["nodefs", "imagefs"])
      expect(
        valueOf(
          metrics,
          `crigc_filesystem_available_bytes{mountpoint="/var/lib/containerd",role="${role}"}`,
        ),
      ).toBe(6_442_450_944);
    const measuredAt =
      'crigc_filesystem_measured_timestamp_seconds{mountpoint="/other",role="nodefs"}';
    metrics.setNode(node({ filesystems: [other] }));
    expect(valueOf(metrics, measuredAt)).toBe(Date.UTC(2026, 0, 15, 12) / 1000 + 0.25);
    expect(valueOf(metrics, "crigc_image_gc_high_threshold_ratio")).toBe(0.85);
    expect(valueOf(metrics, 'crigc_eviction_threshold_met{signal="imagefs.available"}')).toBe(1);
    expect(valueOf(metrics, "crigc_boot_grace_remaining_seconds")).toBe(120);
  });

  test("a filesystem that no longer exists has no series any more", () => {
    const metrics = fresh();
    metrics.setNode(node());
    metrics.setNode(node({ filesystems: [other] }));
    expect(metrics.expose()).not.toContain('mountpoint="/var/lib/containerd"');
  });

  test("metrics show when a filesystem reaches its threshold and is full, and nothing that is not foreseen", () => {
    const metrics = fresh();
    const names = ["growth_bytes_per_second", "high_threshold_in_seconds", "full_in_seconds"];
    const shown = (): readonly (number | null)[] =>
      names.map((name) =>
        valueOf(
          metrics,
          `crigc_filesystem_${name}{mountpoint="/var/lib/containerd",role="imagefs"}`,
        ),
      );
    metrics.setNode(node());
    expect(shown()).toEqual([1_073_741_824 / 3600, 21_600, 75_600]);
    const far = { ...forecast, untilHigh: null, untilFull: null };
    metrics.setNode(
      node({ filesystems: [{ filesystem: measured(), thresholds: null, forecast: far }] }),
    );
    expect(shown()).toEqual([1_073_741_824 / 3600, null, null]);
    metrics.setNode(
      node({ filesystems: [{ filesystem: measured(), thresholds: null, forecast: null }] }),
    );
    expect(shown()).toEqual([null, null, null]);
  });

  test("metrics show the period of each kind of pass that something asks for", () => {
    const metrics = fresh();
    const [loop] = status().loops;
    const loops = [
      { ...loop!, name: "image-gc" as const, periodMs: 7_200_000 },
      { ...loop!, name: "container-gc" as const, periodMs: 60_000 },
      { ...loop!, name: "image-cache" as const, periodMs: 30_000 },
    ];
    metrics.setNode(node({ loops }));
    expect(valueOf(metrics, 'crigc_pass_period_seconds{kind="image-gc"}')).toBe(7200);
    expect(valueOf(metrics, 'crigc_pass_period_seconds{kind="container-gc"}')).toBe(60);
    metrics.setNode(node({ loops: loops.map((it) => ({ ...it, enabled: false })) }));
    expect(metrics.expose()).not.toContain("crigc_pass_period_seconds{");
  });

  test("metrics show whether the pod source was ready, and nothing about an unused one", () => {
    const metrics = fresh();
    metrics.setNode(node());
    expect(valueOf(metrics, 'crigc_pod_source_ready{source="kubelet-dir"}')).toBe(1);
    const podSource = { kind: "not-ready", source: "kubelet-api", why: "x" } as const;
    metrics.setNode(node({ podSource }));
    expect(valueOf(metrics, 'crigc_pod_source_ready{source="kubelet-api"}')).toBe(0);
    expect(valueOf(metrics, 'crigc_pod_source_ready{source="kubelet-dir"}')).toBeNull();
    metrics.setNode(node({ podSource: { kind: "none", why: "x" } }));
    expect(metrics.expose()).not.toContain("crigc_pod_source_ready{");
  });

  test("metrics show a hold with its end", () => {
    const metrics = fresh();
    metrics.setNode(node({ hold: { kind: "held", until: NOW, since: null, reason: "" } }));
    expect(valueOf(metrics, "crigc_hold")).toBe(1);
    expect(valueOf(metrics, "crigc_hold_until_timestamp_seconds")).toBe(1_768_478_400.25);
  });

  test("metrics show the process's figures, and processor time only grows", () => {
    const metrics = fresh();
    metrics.setProcess({ cpuSeconds: 1.5, residentBytes: 100, openFiles: 9 });
    metrics.setProcess({ cpuSeconds: 1.25, residentBytes: 90, openFiles: null });
    metrics.setProcess({ cpuSeconds: 1.25, residentBytes: null, openFiles: null });
    expect(valueOf(metrics, "process_cpu_seconds_total")).toBe(1.5);
    expect(valueOf(metrics, "process_resident_memory_bytes")).toBe(90);
    expect(valueOf(metrics, "process_open_fds")).toBe(9);
  });
});

describe("calls and events", () => {
  test("calls to the runtime are counted by method and code, and timed", () => {
    const metrics = fresh();
    metrics.observeCall({ method: "ListImages", code: "OK", tookMs: 4 });
    // A series that began with 1 would have no increase for Prometheus, and many events are reported only once.
    expect(valueOf(metrics, 'crigc_events_total{reason="GhostImage"}')).toBe(0);
    metrics.observeEvent("GhostImage");
    expect(valueOf(metrics, 'crigc_cri_calls_total{method="ListImages",code="OK"}')).toBe(1);
    expect(
      valueOf(metrics, 'crigc_cri_call_duration_seconds_bucket{method="ListImages",le="0.005"}'),
    ).toBe(1);
    expect(valueOf(metrics, 'crigc_events_total{reason="GhostImage"}')).toBe(1);
  });
});

describe("the text", () => {
  test("label values are escaped and have no control characters", () => {
    const registry = new MetricRegistry();
    registry.set("crigc_images", 1);
    registry.replace("crigc_runtime_info", [[['a"b\\c\nd\u001b', "1"], 1]]);
    expect(registry.expose()).toContain('crigc_runtime_info{name="a\\"b\\\\c d",version="1"} 1\n');
  });

  test("each metric has one HELP and one TYPE line before its samples", () => {
    const registry = new MetricRegistry();
    registry.add("crigc_events_total", 1, ["b"]);
    registry.add("crigc_events_total", 2, ["a"]);
    expect(registry.expose()).toBe(
      '# HELP crigc_events_total Warning events, by reason.\n# TYPE crigc_events_total counter\ncrigc_events_total{reason="a"} 2\ncrigc_events_total{reason="b"} 1\n',
    );
  });

  test("a metric has a bounded number of series, and no count is lost", () => {
    const registry = new MetricRegistry();
    for (let i = 0; i < 5000; i += 1)
      registry.add("crigc_removal_failures_total", 1, ["image", `cause ${i}`]);
    const lines = registry
      .expose()
      .split("\n")
      .filter((line) => line.startsWith("crigc"));
    expect(lines.length).toBeLessThanOrEqual(201);
    expect(lines).toContain('crigc_removal_failures_total{kind="other",cause="other"} 4800');
  });

  test("a counter never decreases", () => {
    const registry = new MetricRegistry();
    registry.add("crigc_log_removed_bytes_total", 5n);
    registry.add("crigc_log_removed_bytes_total", -3n);
    expect(valueOf(registry, "crigc_log_removed_bytes_total")).toBe(5);
  });
});

describe("the table of metrics", () => {
  const rows = Object.entries<MetricDefinition>(METRICS);

  test("every metric is named after its program and unit", () => {
    for (const [name, { type }] of rows) {
      expect(name).toMatch(/^(crigc|process)_[a-z_]+$/);
      expect(name.endsWith("_total")).toBe(type === "counter");
      if (type === "histogram") expect(name).toEndWith("_seconds");
    }
  });

  test("every metric has a sentence of help", () => {
    for (const [, { help }] of rows) expect(help).toMatch(/^[A-Z0-9].*\.$/);
  });

  test("no metric is declared that nothing feeds", () => {
    const metrics = fresh();
    const items = [
      removedImage(1),
      removedImage(2, { result: { kind: "failed", message: "x", code: "failed" } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
    ];
    const blocked = imagePlan({ blocks: [{ kind: "pods-unknown", message: "x" }] });
    metrics.observePass(
      pass({ images: imageOutcome({ items }), plan: { images: blocked, containers: null } }),
    );
    metrics.observeCall({ method: "ListImages", code: "OK", tookMs: 4 });
    metrics.observeEvent("GhostImage");
    metrics.setNode(node());
    metrics.setProcess({ cpuSeconds: 1, residentBytes: 1, openFiles: 1 });
    const text = metrics.expose();
    for (const [name] of rows) expect(text).toContain(`# TYPE ${name} `);
  });
});

test("two equal label values after cleaning are one series, because a duplicate series invalidates the whole response", () => {
  const registry = new MetricRegistry();
  registry.set("crigc_runtime_info", 1, ["containerd", "1.7"]);
  registry.set("crigc_runtime_info", 1, ["container\u001bd", "1.7\u0000"]);
  const series = registry.expose().match(/^crigc_runtime_info.*$/gm);
  expect(series).toEqual(['crigc_runtime_info{name="containerd",version="1.7"} 1']);
});
