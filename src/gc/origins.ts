/** Details of images that lists lack: layers and build date, read once per image ID. */

import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Image, ImageOrigin } from "../model/snapshot.ts";
import { mapBounded } from "./concurrency.ts";

const CONCURRENCY = 16;
/** After this many failures the rest waits for the next look: each call may have taken its whole deadline. */
const FAILURES_MAX = 16;

export interface OriginsRead {
  readonly origins: ReadonlyMap<ImageId, ImageOrigin>;
  /** Images whose status could not be read. */
  readonly failed: readonly ImageId[];
}

/** Asks for unknown images, in order. If a call fails, that image stays unknown until the next look. */
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
