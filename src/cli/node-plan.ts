/** The plan of this node, for plan, images, explain and dry runs; and disk usage of its images. */

import type { Config } from "../config/config.ts";
import { unmeasuredIn } from "../gc/observe.ts";
import { asIfOldEnough, prepare, type Prepared } from "../gc/prepare.ts";
import type { ImagePlan, Plan, Purpose } from "../model/plan.ts";
import { imageUsage, inUseOf } from "../policy/disk.ts";
import type { Parts } from "../policy/facts.ts";
import { layersOf } from "../policy/layers.ts";
import type { ImageUsageReport } from "../report/disk-usage.ts";
import { humanDuration } from "../report/words.ts";
import type { CommandContext } from "./command.ts";

export const IMAGES_ONLY: Parts = { containers: "none", images: true };

/** By default plans everything, as a periodic pass does. */
export interface PlanRequest {
  readonly purpose?: Purpose;
  readonly parts?: Parts;
  /** Instead of the context's. */
  readonly config?: Config;
  /** Without a ledger, plans as if every image were old enough, and says so. */
  readonly isFirstLook?: boolean;
  /** Whether to read the layers of all images, for commands that show them. */
  readonly allLayers?: boolean;
}

/** Rejects if the runtime, a list or a stat fails. Opens no writer. */
export async function planNode(
  context: CommandContext,
  {
    purpose = { kind: "periodic" },
    parts = { containers: "all", images: true },
    config = context.config,
    allLayers = false,
    isFirstLook = false,
  }: PlanRequest = {},
): Promise<Prepared> {
  using node = await context.open.node(config);
  const seen = await prepare(
    node.engine,
    {
      purpose,
      parts,
      allLayers,
      pressureTargets: null,
      paused: new Map(),
      // The observation counts as that of a pass would, but nothing is stored.
      remembers: false,
    },
    context.signal,
  );
  const unmeasured = unmeasuredIn(seen.snapshot);
  if (unmeasured !== null) context.note(unmeasured.message);
  if (!isFirstLook || node.engine.memory.current().observedAt !== null) return seen;
  const { minimumAge } = config.limits.images;
  context.note(
    `no ledger yet, so every image is judged as if it were old enough; crigc gc would keep all of them for their first ${humanDuration(minimumAge)}`,
  );
  return asIfOldEnough(node.engine, seen);
}

/** Disk usage of images by their layers, for `crigc df` and the HTML report. */
export function imageUsageReport(
  { plan, snapshot, ledger }: Prepared,
  images: Pick<ImagePlan, "candidates" | "kept"> = imagesOf(plan),
): ImageUsageReport {
  const layers = layersOf(snapshot.images, ledger);
  const stores = snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
  const inUseBytes = stores.reduce((sum, one) => sum + inUseOf(one), 0n);
  const usage = (of: typeof images) => imageUsage({ plan: of, layers, inUseBytes });
  return {
    images: usage(images),
    allImagesBytes: usage(imagesOf(plan)).total.uniqueBytes,
    imagesWithoutLayers: snapshot.images.filter(({ id }) => !layers.has(id)).length,
  };
}

export const imagesOf = ({ images }: Plan): Pick<ImagePlan, "candidates" | "kept"> =>
  images ?? { candidates: [], kept: [] };
