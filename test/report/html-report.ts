// A week of a node, as the HTML report takes it: plain, long and hostile.

import type { Removal } from "../../src/model/history.ts";
import { imageId } from "../../src/model/ids.ts";
import type { ImageShare } from "../../src/model/reports.ts";
import { hours, minutes, plus } from "../../src/model/time.ts";
import type { HtmlReport } from "../../src/report/html.ts";
import {
  candidate,
  containerPlan,
  filesystem,
  GIB,
  image,
  imagePlan,
  kept,
  NOW,
  passRow,
  removalRow,
  runtime,
  usage,
} from "./build.ts";

const FROM = plus(NOW, hours(-7 * 24));

const share = (name: string | null): ImageShare => ({
  name,
  images: 2,
  removable: 1,
  reportedBytes: 2n * GIB,
  uniqueBytes: GIB,
  sharedBytes: GIB,
  lastUsedAt: null,
});

/** `count`: of removals, and of kept images. */
export function weekReport(differences: Partial<HtmlReport> = {}, count = 20): HtmlReport {
  const removals = Array.from({ length: count }, (_, serial): Removal => {
    const names = [`registry.internal.example.com:5000/platform/checkout-${serial}:1.${serial}.0`];
    return serial % 5 === 4
      ? removalRow({ names, measuredBytes: null, result: "failed", message: "UNAVAILABLE" })
      : removalRow({ names, at: plus(FROM, minutes(serial * 8)), estimateBytes: GIB });
  });
  const keeps = Array.from({ length: count }, (_, index) => kept(50 + index, { kind: "pinned" }));
  return {
    node: "worker-17.example.com",
    version: "0.1.0",
    period: { from: FROM, to: NOW },
    history: {
      passes: [
        passRow(),
        passRow({ startedAt: plus(FROM, hours(9)), error: "cannot list images" }),
      ],
      removals,
      events: [{ reason: "FreeDiskSpaceFailed", message: "91% full", at: NOW, passId: null }],
      returned: [],
    },
    runtime,
    plan: { images: imagePlan({ kept: keeps }), containers: containerPlan() },
    usage: {
      images: { total: share(null), byState: [], byRepository: [share("shop/web"), share(null)] },
      allImagesBytes: 0n,
      imagesWithoutLayers: 0,
    },
    ...differences,
  };
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
  const { history, usage: found } = weekReport();
  return weekReport({
    usage: { ...found, images: { ...found.images, byRepository: [share(evil)] } },
    node: evil,
    history: {
      ...history,
      removals: history.removals.map((row) => ({ ...row, ...words, names: [evil] })),
      events: [{ reason: "GhostImage", message: evil, at: NOW, passId: null }],
    },
    plan: { containers: containerPlan({ podSource: { kind: "none", why: evil } }), images },
  });
}
