/** Reads the layers of new images between passes, so that no removal waits for them. */

import { readOrigins } from "../gc/details.ts";
import type { Engine } from "../gc/ports.ts";
import type { ImageId } from "../model/ids.ts";
import { rememberOrigins } from "../policy/layer/origins.ts";

export class LayerReader {
  /** Images whose status could not be read last time. */
  #failed: ReadonlySet<ImageId> = new Set();

  /** Asks once per image, and again at the next look if the call fails. The kubelet does not know layers. */
  async read({ limits, memory, observe }: Engine, signal: AbortSignal): Promise<null> {
    if (limits().images.compat === "kubelet") return null;
    const known = memory.current();
    // Images that failed before come last, so that they do not delay others.
    const isLate = (id: ImageId): number => Number(this.#failed.has(id));
    const images = [...known.images.keys()]
      .toSorted((one, other) => isLate(one) - isLate(other))
      .map((id) => ({ id }));
    const { origins, failed } = await readOrigins(
      observe.runtime,
      { images, known: known.origins },
      signal,
    );
    const now = memory.current();
    const listed = [...now.images.keys()].map((id) => ({ id }));
    if (origins.size > 0) memory.replace({ ...now, ...rememberOrigins(now, listed, origins) });
    this.#failed = new Set(
      [...this.#failed, ...failed].filter((id) => now.images.has(id) && !origins.has(id)),
    );
    return null;
  }
}
