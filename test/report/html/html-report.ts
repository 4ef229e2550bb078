// A week of a busy node, as the HTML report takes it.

import type { Removal } from "../../../src/model/history.ts";
import { type ChainId, chainId, imageId, passId } from "../../../src/model/ids.ts";
import type { ImagePlan } from "../../../src/model/plan.ts";
import { hours, type Instant, instant, minutes, plus } from "../../../src/model/time.ts";
import { imageUsage } from "../../../src/policy/disk-usage.ts";
import { Layers } from "../../../src/policy/layers.ts";
import type { HtmlReport } from "../../../src/report/html/page.ts";
import {
  candidate,
  containerPlan,
  filesystem,
  GIB,
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
const BASE = "registry.internal.example.com:5000/platform/services";

const times = <Item>(count: number, make: (index: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Every fifth one is of a container, and every thirteenth fails. */
const removals = times(115, (serial): Removal => {
  const failed = serial % 13 === 12;
  const row = removalRow({
    at: plus(FROM, minutes(serial * 80)),
    names: [`${BASE}/checkout-${serial % 7}:1.${serial}.0`],
    reason: serial % 11 === 0 ? "age" : "space",
    result: failed ? "failed" : "removed",
    message: failed ? "UNAVAILABLE: the runtime is shutting down" : null,
    measuredBytes: failed ? null : BigInt(300 + ((serial * 53) % 500)) * MIB,
    estimateBytes: GIB,
  });
  return serial % 5 === 4
    ? {
        ...row,
        kind: "container",
        names: [`shop/checkout-${serial}/worker`],
        reason: "over-per-container-limit",
        reportedBytes: null,
        measuredBytes: null,
        estimateBytes: null,
      }
    : row;
});

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

export function weekReport(differences: Partial<HtmlReport> = {}): HtmlReport {
  const images = imagePlan({
    candidates: times(12, (index) =>
      candidate(index + 1, {
        expected: index < 4,
        image: image(index + 1, { repoTags: [`${BASE}/checkout-${index}:1.${index}.0-rc.1`] }),
      }),
    ),
    kept: times(22, (index) => kept(50 + index, reasons[index % reasons.length]!)),
  });
  return {
    node: "worker-17.example.com",
    version: "0.1.0",
    generatedAt: NOW,
    period: { from: FROM, to: NOW },
    history: {
      passes: times(23, (serial) =>
        passRow({
          startedAt: plus(FROM, hours(7 * serial + 5)),
          error: serial === 3 ? "cannot list images" : null,
        }),
      ),
      removals,
      events: [
        {
          reason: "FreeDiskSpaceFailed",
          message: "The image filesystem of 50.0 GiB is 91% full",
          at: instant(NOW - hours(30)),
          passId: passId("p"),
        },
      ],
      returned: [],
    },
    runtime,
    plan: { images, containers: containerPlan() },
    usage: usageOf(images),
    planError: null,
    ...differences,
  };
}

/** What the images of a plan take: every fifth image has no layers, and the others lie on one of four bases. */
export function usageOf(plan: ImagePlan): NonNullable<HtmlReport["usage"]> {
  const all = [...plan.candidates, ...plan.kept].map((it) => it.image);
  const layered = all.filter((_, index) => index % 5 !== 4);
  const chains = layered.flatMap(({ id }, index): [ChainId, ChainId | null][] => [
    [chainId(`base-${index % 4}`), null],
    [chainId(`own-${id}`), chainId(`base-${index % 4}`)],
  ]);
  const layers = new Layers(
    layered.map(({ id, sizeBytes }) => ({ id, sizeBytes, chain: chainId(`own-${id}`) })),
    new Map(chains),
  );
  const inUseBytes = 1n << 60n;
  return {
    images: imageUsage({ plan, layers, inUseBytes }),
    allImagesBytes: 0n,
    imagesWithoutLayers: all.length - layered.length,
  };
}

/** Of a node with 800 images and a long history. */
export function largeReport(): HtmlReport {
  const { history, plan } = weekReport();
  const images = plan?.images ?? imagePlan();
  const repeated = <Item>(items: readonly Item[], count: number): readonly Item[] =>
    times(count, (index) => items[index % items.length]!);
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
  const images = imagePlan({
    blocks: [{ kind: "on-hold", until: null, reason: evil }],
    candidates: [candidate(1, { image: image(1, { id: imageId(evil), repoTags: [evil] }) })],
    kept: [kept(2, { kind: "keep-rule", pattern: evil, source: evil, name: evil })],
    usage: [usage({ filesystem: filesystem({ mountpoint: evil }) })],
  });
  const words = { reason: evil, message: evil, kind: evil as never, signal: evil as never };
  return weekReport({
    usage: usageOf(images),
    node: evil,
    planError: evil,
    history: {
      passes: [],
      removals: removals.map((row) => ({ ...row, ...words, names: [evil] })),
      events: [{ reason: "GhostImage", message: evil, at: NOW, passId: null }],
      returned: [],
    },
    plan: { containers: containerPlan({ podSource: { kind: "none", why: evil } }), images },
  });
}
