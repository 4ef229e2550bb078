/** Complete lists of what is on the node: streamed if the runtime can, else in one response, else in parts. */
import { RuntimeError } from "../model/errors.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import { containerIn, imageIn, sandboxIn } from "./decode.ts";
import { entryMemory, itemsOf, type Reading } from "./entries.ts";
import type {
  ContainerList,
  ImageList,
  ListMethod,
  SandboxList,
  StreamMethod,
} from "./messages.ts";
import { latestOfEach, orTooLarge, splitContainers, splitSandboxes } from "./split.ts";

type Lists = Pick<RuntimeReader, "listImages" | "listContainers" | "listSandboxes">;

interface Sources {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly onNewEntry?: (() => void) | undefined;
}

/** An error discards what was read so far: a list is complete or an error. */
export function makeLists({ runtime, image, onNewEntry = () => undefined }: Sources): Lists {
  const streamed = listStreams(runtime);
  const streamedImages = listStreams(image);
  const containersInOne = oneOrParts<Container>();
  const sandboxesInOne = oneOrParts<Sandbox>();
  const knownImages = entryMemory<ImageList, Image>(imageIn, { onNewEntry });
  const knownContainers = entryMemory<ContainerList, Container>(containerIn, {
    onNewEntry,
    counting: latestOfEach,
  });
  const knownSandboxes = entryMemory<SandboxList, Sandbox>(sandboxIn, {
    onNewEntry,
    counting: latestOfEach,
  });
  const listSandboxes: Lists["listSandboxes"] = async (signal) =>
    knownSandboxes.list(async (itemOf) => {
      const reading = { itemOf, signal };
      return (
        (await streamed("StreamPodSandboxes", reading)) ??
        sandboxesInOne(async (inParts) =>
          inParts
            ? splitSandboxes({ runtime, ...reading })
            : itemsOf(runtime, ["ListPodSandbox", {}], reading),
        )
      );
    });
  return {
    listSandboxes,
    /** An image may be listed twice, as in the runtime's list. */
    listImages: async (signal) =>
      knownImages.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await streamedImages("StreamImages", reading)) ??
          itemsOf(image, ["ListImages", {}], reading)
        );
      }),
    /** Each container once: a duplicate would push others over the limits. */
    listContainers: async (signal) =>
      knownContainers.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await streamed("StreamContainers", reading)) ??
          containersInOne(async (inParts) =>
            inParts
              ? splitContainers({ runtime, ...reading }, async () => listSandboxes(signal))
              : itemsOf(runtime, ["ListContainers", {}], reading),
          )
        );
      }),
  };
}

type Ask<Item> = (inParts: boolean) => Promise<readonly Item[]>;

/**
 * Once the whole was too large, continues to ask for parts until half of the items are gone: a runtime builds the whole
 * response before it finds that it is too large to send.
 */
function oneOrParts<Item>(): (ask: Ask<Item>) => Promise<readonly Item[]> {
  let countWhenTooLarge: number | null = null;
  return async (ask) => {
    if (countWhenTooLarge === null) {
      const whole = await orTooLarge(ask(false));
      if (!(whole instanceof RuntimeError)) return whole;
    }
    const items = await ask(true);
    countWhenTooLarge ??= items.length;
    if (items.length < countWhenTooLarge / 2) countWhenTooLarge = null;
    return items;
  };
}

/** A streamed list; `null` if the service does not stream, which is found out once per service: they may differ. */
function listStreams(channel: Channel) {
  let areThere = true;
  return async <M extends ListMethod & StreamMethod, Item>(
    method: M,
    { itemOf, signal }: Reading<M, Item>,
  ): Promise<readonly Item[] | null> => {
    if (!areThere) return null;
    let count = 0;
    const counted: Reading<M, Item>["itemOf"] = (of, bytes) => {
      count += 1;
      return itemOf(of, bytes);
    };
    try {
      return await itemsOf(channel, [method, {}], { signal, itemOf: counted });
    } catch (thrown) {
      // The refusal comes with the first read, not with the call; after an entry it is a fault like any other.
      const refused = thrown instanceof RuntimeError && thrown.kind === "unimplemented";
      if (!refused || count > 0) throw thrown;
      areThere = false;
      return null;
    }
  };
}
