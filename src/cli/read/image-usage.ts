/** Disk usage of images by their layers, for `crigc df` and the HTML report. */

import type { Prepared } from "../../loop/pass/prepare.ts";
import { imageUsage } from "../../policy/layer/disk-usage.ts";
import { nodeGain } from "../../policy/layer/gain.ts";
import { forestOf } from "../../policy/layer/origins.ts";
import { usageTree } from "../../policy/layer/usage-tree.ts";
import type { ImageUsageReport } from "../../report/table/disk-usage.ts";

export function imageUsageReport({ plan, snapshot, ledger }: Prepared): ImageUsageReport {
  const images = plan.images ?? { candidates: [], kept: [] };
  const forest = forestOf(snapshot.images, ledger);
  const gain = nodeGain(ledger, snapshot.runtime);
  return {
    images: imageUsage({ plan: images, snapshot, forest }),
    families: usageTree({ plan: images, forest }),
    imagesWithoutLayers: snapshot.images.filter(({ id }) => !forest.has(id)).length,
    measuredPerEstimated: gain === null ? null : Number(gain) / 1000,
  };
}
