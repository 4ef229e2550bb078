/** What a list does not say of images: their layers and build date, read once for an image ID. */

import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Image, ImageOrigin } from "../model/snapshot.ts";
import { mapBounded } from "./concurrency.ts";

/** Calls under way at once. */
const CONCURRENCY = 16;
/** After so many failures the rest waits for the next look: each may have taken as long as a call may. */
const FAILURES_MAX = 16;

export interface OriginsRead {
  readonly origins: ReadonlyMap<ImageId, ImageOrigin>;
  /** Images whose status could not be read. */
  readonly failed: readonly ImageId[];
}

/** Asks for the images that are not known yet, in their order. A call that fails leaves its image unknown until the next look. */
export async function readOrigins(
  runtime: RuntimeReader,
  input: { readonly images: readonly Pick<Image, "id">[]; readonly known: Ledger["origins"] },
  signal: AbortSignal,
): Promise<OriginsRead> {
  const origins = new Map<ImageId, ImageOrigin>();
  const failed: ImageId[] = [];
  const unknown = new Set(input.images.map(({ id }) => id).filter((id) => !input.known.has(id)));
  await mapBounded([...unknown], CONCURRENCY, async (id) => {
    if (failed.length >= FAILURES_MAX) return;
    try {
      const origin = await runtime.imageOrigin(id, signal);
      if (origin !== null) origins.set(id, origin);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      failed.push(id);
    }
  });
  return { origins, failed };
}
