/** Streaming lists, and which services lack them. */
import { RuntimeError } from "../model/errors.ts";
import type { Channel } from "./channel.ts";
import { itemsOf, type Reading } from "./entries.ts";
import type { ListMethod, StreamMethod } from "./messages.ts";

type ListStream = ListMethod & StreamMethod;

export interface ListStreams {
  /** `null` if the service has no streaming lists, which is asked once. */
  list<M extends ListStream, Item>(
    method: M,
    reading: Reading<M, Item>,
  ): Promise<readonly Item[] | null>;
}

/** One per service: the image service may have what the runtime service lacks. */
export function listStreams(channel: Channel): ListStreams {
  let areThere = true;
  return {
    list: async (method, reading) => {
      if (!areThere) return null;
      const stream = await streamed(channel, method, reading);
      if (stream === null) areThere = false;
      return stream;
    },
  };
}

async function streamed<M extends ListStream, Item>(
  channel: Channel,
  method: M,
  { itemOf, signal }: Reading<M, Item>,
): Promise<readonly Item[] | null> {
  let count = 0;
  const counted: Reading<M, Item> = {
    signal,
    itemOf: (entry) => {
      count += 1;
      return itemOf(entry);
    },
  };
  try {
    return await itemsOf(channel, [method, {}], counted);
  } catch (thrown) {
    // The refusal comes with the first read, not with the call; after an entry it is a fault like any other.
    const refused = thrown instanceof RuntimeError && thrown.kind === "unimplemented";
    if (refused && count === 0) return null;
    throw thrown;
  }
}
