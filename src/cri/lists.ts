/** Complete lists of what is on the node: streamed if the runtime can, else in one response, else in parts. */
import { RuntimeError } from "../model/errors.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import { containerIn, imageIn, sandboxIn } from "./decode.ts";
import { entryMemory, itemsOf } from "./entries.ts";
import type { ContainerList, ImageList, SandboxList } from "./messages.ts";
import { latestOfEach, orTooLarge, splitContainers, splitSandboxes } from "./split.ts";
import { listStreams } from "./streams.ts";

/** An error discards what was read so far: a list is complete or an error. */
export interface Lists {
  /** An image may be listed twice, as in the runtime's list. */
  images(signal: AbortSignal): Promise<readonly Image[]>;
  /** Each container once: a duplicate would push others over the limits. */
  containers(signal: AbortSignal): Promise<readonly Container[]>;
  sandboxes(signal: AbortSignal): Promise<readonly Sandbox[]>;
}

export function makeLists(runtime: Channel, image: Channel): Lists {
  const ofRuntime = listStreams(runtime);
  const ofImages = listStreams(image);
  const containersInOne = oneOrParts<Container>();
  const sandboxesInOne = oneOrParts<Sandbox>();
  const knownImages = entryMemory<ImageList, Image>(imageIn);
  const knownContainers = entryMemory<ContainerList, Container>(containerIn, latestOfEach);
  const knownSandboxes = entryMemory<SandboxList, Sandbox>(sandboxIn, latestOfEach);
  const sandboxes: Lists["sandboxes"] = async (signal) =>
    knownSandboxes.list(async (itemOf) => {
      const reading = { itemOf, signal };
      return (
        (await ofRuntime.list("StreamPodSandboxes", reading)) ??
        sandboxesInOne(async (inParts) =>
          inParts
            ? splitSandboxes({ runtime, ...reading })
            : itemsOf(runtime, ["ListPodSandbox", {}], reading),
        )
      );
    });
  return {
    sandboxes,
    images: async (signal) =>
      knownImages.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await ofImages.list("StreamImages", reading)) ??
          itemsOf(image, ["ListImages", {}], reading)
        );
      }),
    containers: async (signal) =>
      knownContainers.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await ofRuntime.list("StreamContainers", reading)) ??
          containersInOne(async (inParts) =>
            inParts
              ? splitContainers({ runtime, ...reading }, async () => sandboxes(signal))
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
