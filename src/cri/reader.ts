/** The calls that read: everything observation needs, and nothing that could change the runtime. */

import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import type { SandboxId } from "../model/ids.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import {
  decodeDetail,
  decodeFilesystem,
  decodeImage,
  decodeSandboxDetail,
  decodeVersion,
  decodeWritableLayers,
} from "./decode.ts";
import { makeLists } from "./lists.ts";
import type { Answers } from "./messages.ts";
import { imageOfSandbox, imageOrigin, logDirectoryOfSandbox, sandboxImagesOf } from "./verbose.ts";

/** Two channels to two endpoints, or twice the same. */
export interface Channels {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly endpoint: string;
  readonly imageEndpoint: string;
  readonly onNewEntry?: (() => void) | undefined;
}

export function makeReader(channels: Channels): RuntimeReader {
  const { runtime, image, onNewEntry } = channels;
  const sandbox =
    <Result>(
      { verbose, ...limits }: { readonly verbose: boolean; readonly mostMs?: number },
      decode: (answer: SandboxStatus, id: SandboxId) => Result,
    ) =>
    async (id: SandboxId, signal: AbortSignal): Promise<Result | null> => {
      const options = {
        ...limits,
        about: id,
        signal,
        decode: (it: SandboxStatus) => decode(it, id),
      };
      return unlessNotFound(
        runtime.call("PodSandboxStatus", { pod_sandbox_id: id, verbose }, options),
      );
    };
  return {
    info: async (signal) => runtimeInfo(channels, signal),
    ...makeLists({ runtime, image, onNewEntry }),
    containerDetail: async (id, signal) => {
      const decode = ({ status }: Answers["ContainerStatus"]) => decodeDetail(id, status);
      const options = { about: id, signal, decode };
      return unlessNotFound(runtime.call("ContainerStatus", { container_id: id }, options));
    },
    sandboxImage: sandbox({ verbose: true, mostMs: SANDBOX_IMAGE_MS_MAX }, ({ info }) =>
      imageOfSandbox(info),
    ),
    sandboxLogDirectory: sandbox({ verbose: true }, ({ info }) => logDirectoryOfSandbox(info)),
    sandboxDetail: sandbox({ verbose: false }, ({ status }, id) => decodeSandboxDetail(id, status)),
    imageStatus: async (reference, signal) => {
      const decode = (it: ImageStatus) => (it.image === null ? null : decodeImage(it.image));
      const options = { about: reference, signal, decode };
      return unlessNotFound(image.call("ImageStatus", { image: { image: reference } }, options));
    },
    imageOrigin: async (id, signal) => {
      // An image found by another ID, such as a prefix, says nothing about this one.
      const decode = (it: ImageStatus) => (it.image?.id === id ? imageOrigin(it.info) : null);
      const request = { image: { image: id }, verbose: true };
      return unlessNotFound(image.call("ImageStatus", request, { about: id, signal, decode }));
    },
    writableLayers: async (signal) => {
      const decode = ({ stats }: Answers["ListContainerStats"]) => decodeWritableLayers(stats);
      return unless("unimplemented", runtime.call("ListContainerStats", {}, { signal, decode }));
    },
    reportedFilesystems: async (signal) => {
      const decode = (it: Answers["ImageFsInfo"]) => ({
        images: it.image_filesystems.map(decodeFilesystem),
        containers: it.container_filesystems.map(decodeFilesystem),
      });
      return image.call("ImageFsInfo", {}, { signal, decode });
    },
  };
}

type SandboxStatus = Answers["PodSandboxStatus"];
type ImageStatus = Answers["ImageStatus"];

/** For it a runtime asks the pod's own process, which may hang; a look at the node waits no longer for one of several protections. */
const SANDBOX_IMAGE_MS_MAX = 10_000;

async function runtimeInfo(channels: Channels, signal: AbortSignal): Promise<RuntimeInfo> {
  const { runtime, endpoint, imageEndpoint } = channels;
  const decode = ({ info }: Answers["Status"]) => sandboxImagesOf(info);
  const [version, sandboxImages] = await Promise.all([
    runtime.call("Version", {}, { signal, decode: decodeVersion }),
    runtime.call("Status", { verbose: true }, { signal, decode }),
  ]);
  return { endpoint, imageEndpoint, ...version, sandboxImages, instance: "" };
}

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
