/** Streaming lists, and the memory of which service has none. */
import { RuntimeError } from "../model/errors.ts";
import type { Channel } from "./channel.ts";
import type { ItemsOf } from "./entries.ts";
import type { ListMethod, StreamMethod } from "./messages.ts";

type ListStream = ListMethod & StreamMethod;

export interface ListStreams {
  /** `null` where the service has no streaming lists, which is found out once. */
  list<M extends ListStream, Item>(
    method: M,
    signal: AbortSignal,
    itemsOf: ItemsOf<M, Item>,
  ): Promise<readonly Item[] | null>;
}

/** For one service of one runtime: the image service may have what the runtime service has not. */
export function listStreams(channel: Channel): ListStreams {
  let areThere = true;
  return {
    list: async (method, signal, itemsOf) => {
      if (!areThere) return null;
      const stream = await collected(channel, method, { signal, itemsOf });
      if (stream === null) areThere = false;
      return stream;
    },
  };
}

async function collected<M extends ListStream, Item>(
  channel: Channel,
  method: M,
  { signal, itemsOf }: { signal: AbortSignal; itemsOf: ItemsOf<M, Item> },
): Promise<readonly Item[] | null> {
  const items: Item[] = [];
  let batches = 0;
  try {
    await channel.streamRaw(method, {
      signal,
      onItem: (batch) => {
        batches += 1;
        for (const item of itemsOf(batch)) items.push(item);
      },
    });
    return items;
  } catch (thrown) {
    // The refusal comes with the first read, not with the call; after a batch it is a fault like any other.
    const refused = thrown instanceof RuntimeError && thrown.kind === "unimplemented";
    if (refused && batches === 0) return null;
    throw thrown;
  }
}
