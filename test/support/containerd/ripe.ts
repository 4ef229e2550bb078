// Waits until images are old enough to go, so that a test speaks of the other rules.
import type { ContainerdNode } from "./node.ts";
import { gc, type ImagePlanDocument, planImages, youngAge } from "./reports.ts";
import { until } from "./until.ts";

/** Has the images of now remembered, waits out `youngAge`, and answers with the plan of that moment. */
export async function ripen(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<ImagePlanDocument> {
  await gc(node, "--containers");
  return until("no image is too young", 10_000, async () => {
    const images = await planImages(node, youngAge, ...flags);
    return images.kept.every(({ reason }) => reason.code !== "too-young") && images;
  });
}
