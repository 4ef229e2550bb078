/** Reads the layers of new images beside the passes, so that no removal waits for them, and says once of which there are none. */

import type { ImageId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import { readOrigins } from "../../observe/origins.ts";
import { rememberOrigins } from "../../policy/layer/origins.ts";
import { counted } from "../../report/bytes.ts";
import type { Engine } from "../ports.ts";

/** Images that one line names. */
const NAMED_MAX = 3;

export class LayerReading {
  /** Images without layers that were spoken of. */
  readonly #said = new Set<ImageId>();
  /** Images whose status could not be read the last time. */
  #failed: ReadonlySet<ImageId> = new Set();

  /** Asks once for an image, and again at the next look where the call fails. The kubelet does not know of layers. */
  async read({ limits, memory, observe, journal }: Engine, signal: AbortSignal): Promise<null> {
    if (limits().images.compat === "kubelet") return null;
    const known = memory.current();
    // Those that failed before do not keep others waiting.
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
    for (const id of news) this.#said.add(id);
    return null;
  }
}

function unreported(news: readonly ImageId[], { images }: Ledger): string {
  const names = news
    .slice(0, NAMED_MAX)
    .map((id) => images.get(id)?.names.split("\n")[0] || id)
    .join(", ");
  const more = news.length > NAMED_MAX ? ` and ${news.length - NAMED_MAX} more` : "";
  return `the runtime does not report the layers of ${counted(news.length, "image")} (${names}${more}): each counts as if it shared nothing`;
}
