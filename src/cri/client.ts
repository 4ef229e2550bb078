/** A container runtime, as two separate parts: one reads it, one changes it. */
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import type { CallRecord, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { type Duration, toMs } from "../model/time.ts";
import {
  decodeDetail,
  decodeFilesystem,
  decodeImage,
  decodeSandboxDetail,
  decodeVersion,
  decodeWritableLayers,
  imageOrigin,
  sandboxImagesOf,
} from "./decode.ts";
import { makeLists } from "./lists.ts";
import type { Answer, Request, UnaryMethod } from "./messages.ts";
import { type CallOptions, type Channel, openChannel } from "./transport.ts";

export interface RuntimeOptions {
  /** `unix:///…`. */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  /** Default timeout of a call. */
  readonly requestTimeout: Duration;
  /** Receives every finished call. */
  readonly onCall?: (call: CallRecord) => void;
  /** Called for each list entry that is decoded: many take time, and leave garbage before their call has ended. */
  readonly onNewEntry?: () => void;
}

export interface Runtime {
  readonly reader: RuntimeReader;
  readonly writer: RuntimeWriter;
  close(): void;
}

/** Connects with the first call, and again when a call finds the connection broken. Never retries a call. */
export function openRuntime(options: RuntimeOptions): Runtime {
  const { endpoint, imageEndpoint, requestTimeout, onNewEntry, onCall = () => undefined } = options;
  const requestTimeoutMs = toMs(requestTimeout);
  const runtime = openChannel({ endpoint, requestTimeoutMs, onCall });
  const image =
    imageEndpoint === endpoint
      ? runtime
      : openChannel({ endpoint: imageEndpoint, requestTimeoutMs, onCall });
  return {
    reader: makeReader({ runtime, image, endpoint, imageEndpoint, onNewEntry }),
    writer: makeWriter(runtime, image),
    close: () => {
      runtime.close();
      if (image !== runtime) image.close();
    },
  };
}

/** Two channels to two endpoints, or twice the same. */
interface Channels {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly endpoint: string;
  readonly imageEndpoint: string;
  readonly onNewEntry?: (() => void) | undefined;
}

/** The calls that read: everything observation needs, and nothing that could change the runtime. */
export function makeReader(channels: Channels): RuntimeReader {
  const { runtime, image, onNewEntry } = channels;
  return {
    info: async (signal) => runtimeInfo(channels, signal),
    ...makeLists({ runtime, image, onNewEntry }),
    containerDetail: async (id, signal) => {
      const decode = ({ status }: Answer<"ContainerStatus">) => decodeDetail(id, status);
      const options = { about: id, signal, decode };
      return nullIf("not-found", runtime.call("ContainerStatus", { container_id: id }, options));
    },
    sandboxDetail: async (id, signal) => {
      const decode = ({ status }: Answer<"PodSandboxStatus">) => decodeSandboxDetail(id, status);
      const options = { about: id, signal, decode };
      return nullIf("not-found", runtime.call("PodSandboxStatus", { pod_sandbox_id: id }, options));
    },
    imageStatus: async (reference, signal) => {
      const decode = (it: ImageStatus) => (it.image === null ? null : decodeImage(it.image));
      const options = { about: reference, signal, decode };
      return nullIf(
        "not-found",
        image.call("ImageStatus", { image: { image: reference }, verbose: false }, options),
      );
    },
    imageOrigin: async (id, signal) => {
      // An image found by another ID, such as a prefix, says nothing about this one.
      const decode = (it: ImageStatus) => (it.image?.id === id ? imageOrigin(it.info) : null);
      const request = { image: { image: id }, verbose: true };
      return nullIf("not-found", image.call("ImageStatus", request, { about: id, signal, decode }));
    },
    writableLayers: async (signal) => {
      const decode = ({ stats }: Answer<"ListContainerStats">) => decodeWritableLayers(stats);
      return nullIf("unimplemented", runtime.call("ListContainerStats", {}, { signal, decode }));
    },
    reportedFilesystems: async (signal) => {
      const decode = (it: Answer<"ImageFsInfo">) => ({
        images: it.image_filesystems.map(decodeFilesystem),
        containers: it.container_filesystems.map(decodeFilesystem),
      });
      return image.call("ImageFsInfo", {}, { signal, decode });
    },
  };
}

type ImageStatus = Answer<"ImageStatus">;

async function runtimeInfo(channels: Channels, signal: AbortSignal): Promise<RuntimeInfo> {
  const { runtime, endpoint, imageEndpoint } = channels;
  const decode = ({ info }: Answer<"Status">) => sandboxImagesOf(info);
  const [version, sandboxImages] = await Promise.all([
    runtime.call("Version", {}, { signal, decode: decodeVersion }),
    runtime.call("Status", { verbose: true }, { signal, decode }),
  ]);
  return { endpoint, imageEndpoint, ...version, sandboxImages };
}

/** `null` if the call fails with this kind. */
async function nullIf<Result>(
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

/** The calls that change the node. Removing what no longer exists succeeds, as CRI requires. */
function makeWriter(runtime: Channel, image: Channel): RuntimeWriter {
  return {
    removeImage: async (id) =>
      change(image, ["RemoveImage", { image: { image: id } }], { about: id }),
    stopContainer: async (id, graceSeconds, signal) =>
      change(runtime, ["StopContainer", { container_id: id, timeout: graceSeconds }], {
        about: id,
        extraMs: graceSeconds * 1000,
        signal,
      }),
    removeContainer: async (id) =>
      change(runtime, ["RemoveContainer", { container_id: id }], { about: id }),
    stopSandbox: async (id, signal) =>
      change(runtime, ["StopPodSandbox", { pod_sandbox_id: id }], { about: id, signal }),
    removeSandbox: async (id) =>
      change(runtime, ["RemovePodSandbox", { pod_sandbox_id: id }], { about: id }),
    execSync: async (id, { words, timeoutSeconds }, signal) =>
      runtime.call(
        "ExecSync",
        { container_id: id, cmd: words, timeout: timeoutSeconds },
        { about: id, extraMs: timeoutSeconds * 1000, signal, decode: (it) => it.exit_code },
      ),
  };
}

async function change<M extends UnaryMethod>(
  channel: Channel,
  [method, request]: readonly [method: M, request: Request<M>],
  options: CallOptions,
): Promise<void> {
  await nullIf("not-found", channel.call(method, request, { ...options, decode: () => undefined }));
}
