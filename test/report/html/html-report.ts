// A week of a busy node, as the HTML report takes it: made from a seed, the same each time.

import type { DiskSample, PassRow, Removal } from "../../../src/model/history.ts";
import { type ChainId, chainId, imageId, passId } from "../../../src/model/ids.ts";
import type { ImagePlan } from "../../../src/model/plan.ts";
import { hours, type Instant, instant, minutes, plus } from "../../../src/model/time.ts";
import { imageUsage, usageTree } from "../../../src/policy/layer/disk-usage.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import type { HtmlReport } from "../../../src/report/html/page.ts";
import {
  candidate,
  containerPlan,
  filesystem,
  forecast,
  GIB,
  hex,
  image,
  imagePlan,
  kept,
  MIB,
  NOW,
  passRow,
  removalRow,
  runtime,
  usage,
} from "../build.ts";

const FROM: Instant = plus(NOW, hours(-7 * 24));
const CAPACITY = 50n * GIB;
const BASE = "registry.internal.example.com:5000/platform/services";

/** The disk fills by a percent in half an hour, and is brought back from 88 to 80 percent, or to 74 at first. */
const samplesOf = (step: number): readonly DiskSample[] => {
  const at = plus(FROM, minutes(step * 30));
  const percent = step < 8 ? 74 + step : 80 + (step % 9);
  const freedBytes = percent === 80 ? 4n * GIB : 0n;
  const limits = { highPercent: 85, lowPercent: 80 };
  const logs = { device: "8:2", path: "/var/log", mountpoint: "/var/log" };
  // The agent was away for eight hours.
  if (step >= 150 && step <= 166) return [];
  return [
    sample(at, percent, { freedBytes, ...limits }),
    sample(at, 30, { ...logs, roles: ["nodefs"] }),
  ];
};

/** Of a disk of 50 GiB, at `percent`. */
export const sample = (
  at: Instant,
  percent: number,
  differences: Partial<DiskSample> = {},
): DiskSample => ({
  at,
  device: "8:1",
  path: "/var/lib/containerd",
  mountpoint: "/var/lib/containerd",
  roles: ["nodefs", "imagefs"],
  capacityBytes: CAPACITY,
  availableBytes: (CAPACITY * BigInt(Math.round(10_000 - percent * 100))) / 10_000n,
  inodes: 0n,
  inodesFree: 0n,
  freedBytes: null,
  highPercent: null,
  lowPercent: null,
  ...differences,
});

/** Every fifth one is of a container, and every thirteenth fails. */
function removal(serial: number): Removal {
  const failed = serial % 13 === 12;
  const row = removalRow({
    at: plus(FROM, minutes(serial * 80)),
    passId: passId(`pass-${Math.floor(serial / 5)}`),
    subject: `sha256:${hex(serial + 1)}`,
    names: [`${BASE}/checkout-${serial % 7}:1.${serial}.0`],
    reason: serial % 11 === 0 ? "age" : "space",
    result: failed ? "failed" : "removed",
    message: failed ? "UNAVAILABLE: the runtime is shutting down" : null,
    measuredBytes: failed ? null : BigInt(300 + ((serial * 53) % 500)) * MIB,
    freesBytes: GIB,
  });
  if (serial % 5 !== 4) return row;
  const unmeasured = { reportedBytes: null, measuredBytes: null, freesBytes: null };
  const reason = "over-per-container-limit";
  return {
    ...row,
    kind: "container",
    names: [`shop/checkout-${serial}/worker`],
    reason,
    ...unmeasured,
  };
}

const pass = (serial: number): PassRow =>
  passRow({
    id: passId(`pass-${serial}`),
    startedAt: plus(FROM, hours(7 * serial + 5)),
    error: serial === 3 ? "cannot list images" : null,
    removed: 5,
  });

export function weekReport(differences: Partial<HtmlReport> = {}): HtmlReport {
  const removals = Array.from({ length: 115 }, (_, serial) => removal(serial));
  const reasons = [
    { kind: "in-use", users: [] },
    { kind: "pinned" },
    { kind: "too-young", age: minutes(1), minimumAge: minutes(2) },
    {
      kind: "keep-rule",
      pattern: `${BASE}/**`,
      source: "/etc/crigc/keep.d/base.list:3",
      name: `${BASE}/auth:2`,
    },
  ] as const;
  const images = imagePlan({
    usage: [usage()],
    candidates: Array.from({ length: 12 }, (_, index) =>
      candidate(index + 1, {
        expected: index < 4,
        image: image(index + 1, { repoTags: [`${BASE}/checkout-${index}:1.${index}.0-rc.1`] }),
      }),
    ),
    kept: Array.from({ length: 22 }, (_, index) =>
      kept(50 + index, reasons[index % reasons.length]!),
    ),
  });
  return {
    node: "worker-17.example.com",
    version: "0.1.0",
    generatedAt: NOW,
    period: { from: FROM, to: NOW },
    history: {
      passes: Array.from({ length: 23 }, (_, serial) => pass(serial)),
      removals,
      events: [
        {
          reason: "FreeDiskSpaceFailed",
          message: "The image filesystem of 50.0 GiB is 91% full",
          at: instant(NOW - hours(30)),
          passId: passId("p"),
        },
      ],
      regrets: [],
    },
    samples: Array.from({ length: 7 * 48 }, (_, step) => samplesOf(step)).flat(),
    forecasts: new Map([["8:1", forecast]]),
    runtime,
    plan: { images, containers: containerPlan() },
    usage: usageOf(images),
    planError: null,
    ...differences,
  };
}

/** What the images of a plan take: every fifth image has no layers, and the others lie on one of four bases. */
export function usageOf(plan: ImagePlan): NonNullable<HtmlReport["usage"]> {
  const all = [...plan.candidates, ...plan.kept].map(({ image: one }) => one);
  const layered = all.flatMap(({ id, sizeBytes }, index) =>
    index % 5 === 4 ? [] : [{ id, sizeBytes, base: chainId(`base-${index % 4}`) }],
  );
  const forest = new LayerForest(
    layered.map(({ id, sizeBytes }) => ({ id, sizeBytes, chain: chainId(`own-${id}`) })),
    new Map<ChainId, ChainId | null>([
      ...layered.map(({ base }): [ChainId, null] => [base, null]),
      ...layered.map(({ id, base }): [ChainId, ChainId] => [chainId(`own-${id}`), base]),
    ]),
  );
  const inUseBytes = 1n << 60n;
  return {
    images: imageUsage({ plan, forest, inUseBytes, snapshot: { containers: [], sandboxes: [] } }),
    families: usageTree({ plan, forest, inUseBytes }),
    imagesWithoutLayers: all.length - layered.length,
    measuredPerEstimated: 2.04,
  };
}

/** Of a node with 800 images and a long history. */
export function largeReport(): HtmlReport {
  const { history, plan } = weekReport();
  const images = plan?.images ?? imagePlan();
  const repeated = <Item>(items: readonly Item[], count: number): readonly Item[] =>
    Array.from({ length: count }, (_, index) => items[index % items.length]!);
  return weekReport({
    history: {
      ...history,
      passes: repeated(history.passes, 500),
      removals: repeated(history.removals, 5000),
      events: repeated(history.events, 200),
    },
    plan: {
      containers: containerPlan(),
      images: {
        ...images,
        kept: repeated(images.kept, 500),
        candidates: repeated(images.candidates, 300),
      },
    },
  });
}

/** Everything that the runtime or a file can say, as hostile as it gets. */
export function hostileReport(): HtmlReport {
  const evil = `<script>document.title="owned"</script>"><img src=x onerror=alert(1)>'\u202e\u001b[31m`;
  const base = weekReport();
  const images = imagePlan({
    blocks: [{ kind: "on-hold", until: null, reason: evil }],
    candidates: [candidate(1, { image: image(1, { id: imageId(evil), repoTags: [evil] }) })],
    kept: [kept(2, { kind: "keep-rule", pattern: evil, source: evil, name: evil })],
    usage: [usage({ filesystem: filesystem({ mountpoint: evil }) })],
  });
  return weekReport({
    usage: usageOf(images),
    node: evil,
    planError: evil,
    history: {
      passes: [],
      removals: base.history.removals.map((row) => ({
        ...row,
        names: [evil],
        reason: evil,
        message: evil,
        kind: evil as never,
        signal: evil as never,
      })),
      events: [{ reason: "GhostImage", message: evil, at: NOW, passId: null }],
      regrets: [],
    },
    samples: base.samples.map((it) => ({
      ...it,
      mountpoint: evil,
      roles: [evil as never],
    })),
    plan: {
      containers: containerPlan({ podSource: { kind: "none", why: evil } }),
      images,
    },
  });
}
