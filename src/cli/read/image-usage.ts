/** Disk usage of images by their layers, for `crigc df` and the HTML report. */

import type { Prepared } from "../../gc/prepare.ts";
import { imageUsage } from "../../policy/layer/disk-usage.ts";
import { gainOf } from "../../policy/layer/gain.ts";
import { forestOf } from "../../policy/layer/origins.ts";
import { usageTree } from "../../policy/layer/usage-tree.ts";
import { inUseOf } from "../../policy/space/futility.ts";
import { imageFilesystems } from "../../policy/space/targets.ts";
import type { ImageUsageReport } from "../../report/table/disk-usage.ts";

export function imageUsageReport({ plan, snapshot, ledger }: Prepared): ImageUsageReport {
  const images = plan.images ?? { candidates: [], kept: [] };
  const forest = forestOf(snapshot.images, ledger);
  const { typical } = gainOf(ledger, snapshot.runtime);
  const stores = imageFilesystems(snapshot, { compat: "none" });
  const inUseBytes = stores.reduce((sum, one) => sum + inUseOf(one), 0n);
  return {
    images: imageUsage({ plan: images, snapshot, forest, inUseBytes }),
    families: usageTree({ plan: images, forest, inUseBytes }),
    imagesWithoutLayers: snapshot.images.filter(({ id }) => !forest.has(id)).length,
    measuredPerEstimated: typical === null ? null : Number(typical) / 1000,
  };
}
