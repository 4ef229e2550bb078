/**
 * Reads the layers of new images between passes, so that no removal waits for them, and reports images without layers
 * once.
 */

import { readOrigins } from "../gc/details.ts";
import type { Engine } from "../gc/ports.ts";
import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import { rememberOrigins } from "../policy/layer/origins.ts";
import { counted } from "../report/bytes.ts";

/** Maximum number of images named in one line. */
const NAMED_MAX = 3;

export class LayerReader {
  /** Present images without layers that were reported. */
  #said: ReadonlySet<ImageId> = new Set();
  /** Images whose status could not be read last time. */
  #failed: ReadonlySet<ImageId> = new Set();

  /** Asks once per image, and again at the next look if the call fails. The kubelet does not know layers. */
  async read({ limits, memory, observe, journal }: Engine, signal: AbortSignal): Promise<null> {
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
    const chainless = [...origins].flatMap(([id, { chain }]) => (chain === null ? [id] : []));
    const news = [...chainless, ...failed].filter((id) => !this.#said.has(id));
    if (news.length > 0) journal.say(1, unreported(news, now));
    this.#said = new Set([...this.#said, ...news].filter((id) => now.images.has(id)));
    return null;
  }
}

function unreported(news: readonly ImageId[], { images }: Ledger): string {
  const names = news
    .slice(0, NAMED_MAX)
    .map((id) => images.get(id)?.names.split("\n")[0] || id)
    .join(", ");
  const more = news.length > NAMED_MAX ? ` and ${news.length - NAMED_MAX} more` : "";
  return `the runtime does not report the layers of ${counted(news.length, "image")} (${names}${more}), so crigc assumes that they share none`;
}
