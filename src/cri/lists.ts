/** Complete lists of what is on the node: streamed where the runtime can, else in one answer, else in parts. */
import { RuntimeError } from "../model/errors.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import { decodeContainer, decodeImage, decodeSandbox } from "./decode.ts";
import { latestOfEach, orTooLarge, splitContainers, splitSandboxes } from "./split.ts";
import { listStreams } from "./streams.ts";

/** Any error discards what was read so far: a list is whole or it is an error. */
export interface Lists {
  /** An image may be listed twice, as the runtime has it. */
  images(signal: AbortSignal): Promise<readonly Image[]>;
  /** Each once: one that counted twice would push others over the limits. */
  containers(signal: AbortSignal): Promise<readonly Container[]>;
  sandboxes(signal: AbortSignal): Promise<readonly Sandbox[]>;
}

export function makeLists(runtime: Channel, image: Channel): Lists {
  const ofRuntime = listStreams(runtime);
  const ofImages = listStreams(image);
  const containersInOne = oneOrParts<Container>();
  const sandboxesInOne = oneOrParts<Sandbox>();
  return {
    images: async (signal) =>
      (await ofImages.list("StreamImages", signal, (it) => it.images.map(decodeImage))) ??
      image.call("ListImages", {}, { signal, decode: (it) => it.images.map(decodeImage) }),
    containers: async (signal) =>
      latestOfEach(
        (await ofRuntime.list("StreamContainers", signal, (it) =>
          it.containers.map(decodeContainer),
        )) ??
          (await containersInOne(async (inParts) =>
            inParts
              ? splitContainers(runtime, signal)
              : runtime.call(
                  "ListContainers",
                  {},
                  { signal, decode: (it) => it.containers.map(decodeContainer) },
                ),
          )),
      ),
    sandboxes: async (signal) =>
      latestOfEach(
        (await ofRuntime.list("StreamPodSandboxes", signal, (it) =>
          it.pod_sandboxes.map(decodeSandbox),
        )) ??
          (await sandboxesInOne(async (inParts) =>
            inParts
              ? splitSandboxes(runtime, signal)
              : runtime.call(
                  "ListPodSandbox",
                  {},
                  { signal, decode: (it) => it.items.map(decodeSandbox) },
                ),
          )),
      ),
  };
}

type Ask<Item> = (inParts: boolean) => Promise<readonly Item[]>;

/**
 * Goes on asking for parts once the whole was too large, until half of what was there is gone: a runtime builds the
 * whole answer before it finds that it may not send it.
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
