/** `--compat kubelet`: the kubelet's own decisions, to be read beside its sources. */
import type { ImageId } from "../../model/ids.ts";
import type { Duration } from "../../model/time.ts";
import { decideBy, type Policy } from "../policy.ts";
import { remember } from "../remember.ts";
import { decideContainers, podsOf } from "./container-gc.ts";
import { judgePressure } from "./eviction-manager.ts";
import { ImageManager, stopRule } from "./image-manager.ts";

/** `beganAt`: the uptime at which an agent's loops began; `null`: a single command. */
export function kubeletPolicy(
  beganAt: Duration | null,
  images = new ImageManager(beganAt),
): Policy {
  return {
    remember: (seen) => {
      // Container GC lists no images.
      if (seen.parts.images) images.detect(seen.snapshot);
      return remember(seen, podsOf(seen.snapshot));
    },
    ...decideBy({
      decideContainers,
      decideImages: (facts, before) => images.decide(facts, before),
    }),
    recheckImages: (facts) => images.recheck(facts),
    imageRemoved: (id: ImageId) => images.removed(id),
    judgePressure,
    stopRule,
    containersFirst: true,
    knowsLayers: false,
  };
}
