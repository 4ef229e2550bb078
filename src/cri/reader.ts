/** The calls that read: everything observation needs, and nothing that could change the runtime. */

import type { WritableLayers } from "../model/disk-usage.ts";
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import type { ImageId, SandboxId } from "../model/ids.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { ImageOrigin, RuntimeInfo } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import {
  decodeDetail,
  decodeFilesystem,
  decodeImage,
  decodeSandboxDetail,
  decodeVersion,
  decodeWritableLayers,
} from "./decode.ts";
import { imageOrigin } from "./image-layers.ts";
import { makeLists } from "./lists.ts";
import { imageOfSandbox, logDirectoryOfSandbox, sandboxImagesOf } from "./verbose.ts";

/** Two channels to two endpoints, or twice the same. */
export interface Channels {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly endpoint: string;
  readonly imageEndpoint: string;
}

export function makeReader(channels: Channels): RuntimeReader {
  const { runtime, image } = channels;
  const lists = makeLists(runtime, image);
  return {
    info: async (signal) => runtimeInfo(channels, signal),
    listImages: async (signal) => lists.images(signal),
    listContainers: async (signal) => lists.containers(signal),
    listSandboxes: async (signal) => lists.sandboxes(signal),
    containerDetail: async (id, signal) =>
      unlessNotFound(
        runtime.call(
          "ContainerStatus",
          { container_id: id },
          { about: id, signal, decode: ({ status }) => decodeDetail(id, status) },
        ),
      ),
    ...sandboxReader(runtime),
    imageStatus: async (reference, signal) =>
      unlessNotFound(
        image.call(
          "ImageStatus",
          { image: { image: reference } },
          {
            about: reference,
            signal,
            decode: (it) => (it.image === null ? null : decodeImage(it.image)),
          },
        ),
      ),
    writableLayers: async (signal) => writableLayers(runtime, signal),
    imageOrigin: async (id, signal) => originOf(image, id, signal),
    reportedFilesystems: async (signal) =>
      image.call(
        "ImageFsInfo",
        {},
        {
          signal,
          decode: (it) => ({
            images: it.image_filesystems.map(decodeFilesystem),
            containers: it.container_filesystems.map(decodeFilesystem),
          }),
        },
      ),
  };
}

function sandboxReader(
  runtime: Channel,
): Pick<RuntimeReader, "sandboxImage" | "sandboxLogDirectory" | "sandboxDetail"> {
  const status = (id: SandboxId, verbose: boolean) => ({ pod_sandbox_id: id, verbose });
  return {
    sandboxImage: async (id, signal) =>
      unlessNotFound(
        runtime.call("PodSandboxStatus", status(id, true), {
          about: id,
          signal,
          decode: ({ info }) => imageOfSandbox(info),
        }),
      ),
    sandboxLogDirectory: async (id, signal) =>
      unlessNotFound(
        runtime.call("PodSandboxStatus", status(id, true), {
          about: id,
          signal,
          decode: ({ info }) => logDirectoryOfSandbox(info),
        }),
      ),
    sandboxDetail: async (id, signal) =>
      unlessNotFound(
        runtime.call("PodSandboxStatus", status(id, false), {
          about: id,
          signal,
          decode: (answer) => decodeSandboxDetail(id, answer.status),
        }),
      ),
  };
}

async function runtimeInfo(channels: Channels, signal: AbortSignal): Promise<RuntimeInfo> {
  const { runtime, endpoint, imageEndpoint } = channels;
  const [version, sandboxImages] = await Promise.all([
    runtime.call("Version", {}, { signal, decode: decodeVersion }),
    runtime.call(
      "Status",
      { verbose: true },
      { signal, decode: ({ info }) => sandboxImagesOf(info) },
    ),
  ]);
  return { endpoint, imageEndpoint, ...version, sandboxImages };
}

const writableLayers = async (
  runtime: Channel,
  signal: AbortSignal,
): Promise<WritableLayers | null> =>
  unless(
    "unimplemented",
    runtime.call(
      "ListContainerStats",
      {},
      { signal, decode: ({ stats }) => decodeWritableLayers(stats) },
    ),
  );

const originOf = async (
  image: Channel,
  id: ImageId,
  signal: AbortSignal,
): Promise<ImageOrigin | null> =>
  unlessNotFound(
    image.call(
      "ImageStatus",
      { image: { image: id }, verbose: true },
      {
        about: id,
        signal,
        // An image found by another ID, such as a prefix, says nothing about this one.
        decode: (it) => (it.image?.id === id ? imageOrigin(it.info) : null),
      },
    ),
  );

const unlessNotFound = async <Result>(asked: Promise<Result>): Promise<Result | null> =>
  unless("not-found", asked);

/** `null` if the call fails with this kind. */
async function unless<Result>(
  kind: RuntimeErrorKind,
  asked: Promise<Result>,
): Promise<Result | null> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === kind) return null;
    throw thrown;
  }
}
