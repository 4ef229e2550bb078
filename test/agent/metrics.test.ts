// Metrics: what passes, calls and the node's state give, and the text that Prometheus reads.

import { expect, test } from "bun:test";

import {
  type MetricDefinition,
  MetricRegistry,
  METRICS,
  Metrics,
  type NodeFigures,
  passOutcome,
} from "../../src/agent/metrics.ts";
import { failureCode, RuntimeError } from "../../src/model/errors.ts";
import { failedStep, type Pass } from "../../src/model/pass.ts";
import { minutes } from "../../src/model/time.ts";
import {
  containerOutcome,
  containerPlan,
  imageOutcome,
  imagePlan,
  measured,
  NOW,
  pass,
  removedImage,
  sandbox,
  status,
} from "../report/build.ts";

const node = (change: Partial<NodeFigures> = {}): NodeFigures => ({
  ...status(),
  filesystems: [{ filesystem: measured(), thresholds: null }],
  thresholds: { highPercent: 85, lowPercent: 80 },
  commit: "abc",
  ...change,
});

/** The metrics after these passes. */
function after(...passes: readonly Pass[]): Metrics {
  const metrics = new Metrics();
  for (const one of passes) metrics.observePass(one);
  return metrics;
}

/** `null`: no such series. */
function valueIn(text: string, series: string): number | null {
  const line = text.split("\n").find((it) => it.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}

function expectSeries(text: string, expected: Readonly<Record<string, number | null>>): void {
  const found = Object.keys(expected).map((series) => [series, valueIn(text, series)] as const);
  expect(Object.fromEntries(found)).toEqual(expected);
}

const images = (end: Parameters<typeof imageOutcome>[0]): Pass =>
  pass({ images: imageOutcome(end), containers: null });

test("the metrics of a node after a pass are as in the snapshot", () => {
  const metrics = after(pass());
  const lines = metrics.expose(node()).split("\n");
  expect(lines.filter((line) => !line.startsWith("# "))).toMatchSnapshot();
});

test("metrics count failed removals by cause, and as removed neither these nor skipped ones and ghosts", () => {
  const late = new RuntimeError("deadline", "StopPodSandbox did not answer in time");
  const items = [
    removedImage(1, { result: { kind: "failed", message: "x", code: failureCode(late) } }),
    removedImage(2, { result: { kind: "ghost" } }),
    removedImage(3, { result: { kind: "skipped", reason: { kind: "in-use", users: [] } } }),
  ];
  const stuck = {
    sandbox: sandbox(1),
    reason: { kind: "pod-gone" },
    result: failedStep("stop", late),
  } as const;
  const ended = pass({
    images: imageOutcome({ items }),
    containers: containerOutcome({ containers: [], sandboxes: [stuck], logs: [] }),
  });
  expectSeries(after(ended).expose(node()), {
    'crigc_removal_failures_total{kind="image",cause="deadline"}': 1,
    'crigc_removal_failures_total{kind="sandbox",cause="deadline"}': 1,
    'crigc_removed_total{kind="image",trigger="space",reason="space"}': null,
  });
});

test("a failed pass keeps the time of the last success, and counts failures in a row", () => {
  const failed = pass({
    error: "x",
    images: null,
    containers: null,
    plan: { images: null, containers: null },
  });
  expectSeries(after(failed, failed).expose(node()), {
    'crigc_pass_consecutive_failures{kind="gc"}': 2,
    'crigc_pass_last_success_timestamp_seconds{kind="gc"}': null,
  });
  const stopped = pass({ images: imageOutcome({ end: "stopped" }) });
  expectSeries(after(failed, stopped).expose(node()), {
    'crigc_pass_consecutive_failures{kind="gc"}': 1,
  });
  const text = after(failed, pass(), failed).expose(node());
  expectSeries(text, {
    'crigc_pass_consecutive_failures{kind="gc"}': 1,
    'crigc_pass_last_success_timestamp_seconds{kind="gc"}': 1_768_478_402.1,
  });
});

test("a block has a series while it lasts, and so has what a pass waits for now", () => {
  const plan = imagePlan({ blocks: [{ kind: "usage-unknown", unknown: [] }], candidates: [] });
  const blocked = pass({ plan: { images: plan, containers: null } });
  const ofUnknown = 'crigc_image_removal_blocked{block="usage-unknown"}';
  const ofWait = 'crigc_image_removal_blocked{block="boot-grace"}';
  const metrics = after(blocked);
  const waiting = { kind: "boot-grace", left: minutes(1) } as unknown as NodeFigures["waiting"];
  const series = { [ofUnknown]: 1, [ofWait]: 1 };
  expectSeries(metrics.expose(node({ waiting })), series);
  metrics.observePass(pass());
  const none = { [ofUnknown]: null, [ofWait]: null };
  expectSeries(metrics.expose(node()), none);
});

const outcomes: readonly (readonly [ReturnType<typeof passOutcome>, Pass])[] = [
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
  ["short", images({ end: "estimated" })],
  ["idle", images({ end: "nothing-to-do", items: [] })],
  ["done", pass({ images: imageOutcome({ end: "nothing-to-do", items: [] }) })],
];

test.each(outcomes)("the outcome of a pass is %s", (outcome, it) => {
  expect(passOutcome(it)).toBe(outcome);
});

const [loop] = status().loops;
const loops = [
  { ...loop!, name: "image-gc" as const, periodMs: 7_200_000 },
  { ...loop!, name: "container-gc" as const, periodMs: 60_000, enabled: false },
  { ...loop!, name: "image-cache" as const, periodMs: 30_000 },
];
const disk = (name: string, role: string, mountpoint = "/var/lib/containerd") =>
  `crigc_filesystem_${name}{mountpoint="${mountpoint}",role="${role}"}`;
const other = { filesystem: measured({ mountpoint: "/other" }), thresholds: null };
const states: readonly (readonly [string, Partial<NodeFigures>, Record<string, number | null>])[] =
  [
    [
      "a filesystem that no longer exists has no series",
      { filesystems: [other] },
      {
        [disk("inodes", "nodefs")]: null,
        [disk("capacity_bytes", "nodefs", "/other")]: Number(measured().capacityBytes),
      },
    ],
    [
      "a filesystem that could not be measured has no figures",
      {
        filesystems: [
          {
            filesystem: measured({ mountpoint: "/other", unmeasured: "it does not answer" }),
            thresholds: null,
          },
        ],
      },
      Object.fromEntries(
        ["capacity_bytes", "available_bytes", "inodes", "inodes_free"].map((name) => [
          disk(name, "imagefs", "/other"),
          null,
        ]),
      ),
    ],
    [
      "only enabled kinds of pass have a period",
      { loops },
      {
        'crigc_pass_period_seconds{kind="image-gc"}': 7200,
        'crigc_pass_period_seconds{kind="container-gc"}': null,
        'crigc_pass_period_seconds{kind="image-cache"}': null,
      },
    ],
    [
      "a hold is 1",
      { hold: { kind: "held", until: NOW, since: null, reason: "" } },
      { crigc_hold: 1 },
    ],
  ];

test.each(states)("%s", (_, change, expected) => {
  const metrics = new Metrics();
  metrics.expose(node());
  expectSeries(metrics.expose(node(change)), expected);
});

test("events are counted from 0", () => {
  const metrics = new Metrics();
  // A series that began with 1 would have no increase for Prometheus, and many events are reported only once.
  expectSeries(metrics.expose(node()), { 'crigc_events_total{reason="GhostImage"}': 0 });
  metrics.observeEvent("GhostImage");
  expectSeries(metrics.expose(node()), {
    'crigc_events_total{reason="GhostImage"}': 1,
  });
});

test("label values are escaped and have no control characters", () => {
  const registry = new MetricRegistry();
  registry.replace("crigc_build_info", [[['a"b\\c\nd\u001b', "1"], 1]]);
  expect(registry.text()).toContain('crigc_build_info{version="a\\"b\\\\c d",commit="1"} 1\n');
});

test("label values that are equal after cleaning are one series, because a duplicate invalidates the response", () => {
  const registry = new MetricRegistry();
  registry.set("crigc_build_info", 1, ["containerd", "1.7"]);
  registry.set("crigc_build_info", 1, ["container\u001bd", "1.7\u0000"]);
  const series = registry.text().match(/^crigc_build_info.*$/gm);
  expect(series).toEqual(['crigc_build_info{version="containerd",commit="1.7"} 1']);
});

test("a counter never decreases", () => {
  const registry = new MetricRegistry();
  registry.add("crigc_image_freed_measured_bytes_total", 5n);
  registry.add("crigc_image_freed_measured_bytes_total", -3n);
  expectSeries(registry.text(), { crigc_image_freed_measured_bytes_total: 5 });
});

const rows = Object.entries<MetricDefinition>(METRICS);

test("every metric is named after its program, unit and type, and has a sentence of help", () => {
  for (const [name, { type, help }] of rows) {
    expect(name).toMatch(/^crigc_[a-z_]+$/);
    const byName = name.endsWith("_total") ? "counter" : "gauge";
    expect([name, type]).toEqual([name, byName]);
    expect(help).toMatch(/^[A-Z0-9].*\.$/);
  }
});

test("every declared metric is fed", () => {
  const items = [
    removedImage(1),
    removedImage(2, { result: { kind: "failed", message: "x", code: "failed" } }),
    removedImage(3, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
  ];
  const plan = imagePlan({ blocks: [{ kind: "usage-unknown", unknown: [] }] });
  const metrics = after(
    pass({ images: imageOutcome({ items }), plan: { images: plan, containers: null } }),
  );
  const text = metrics.expose(node());
  for (const [name] of rows) expect(text).toContain(`# TYPE ${name} `);
});
