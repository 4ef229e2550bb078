/** A container runtime, as two separate parts: one reads it, one changes it. */
import { RuntimeError, type RuntimeErrorKind } from "../model/errors.ts";
import type { CallRecord, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { type Duration, toMs } from "../model/time.ts";
import {
  decodeDetail,
  decodeFilesystems,
  decodeImage,
  decodeSandboxDetail,
  decodeVersion,
  decodeWritableLayers,
  imageConfig,
  sandboxImagesOf,
} from "./decode.ts";
import { makeLists, type Sources } from "./lists.ts";
import { type AnswerTo, methods } from "./messages.ts";
import { type Channel, openChannel } from "./transport.ts";

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
  const channelTo = (to: string): Channel =>
    openChannel({ endpoint: to, requestTimeoutMs: toMs(requestTimeout), onCall });
  const runtime = channelTo(endpoint);
  const image = imageEndpoint === endpoint ? runtime : channelTo(imageEndpoint);
  return {
    reader: makeReader({ runtime, image, onNewEntry }),
    writer: makeWriter(runtime, image),
    close: () => {
      runtime.close();
      image.close();
    },
  };
}

/** The calls that read: everything observation needs, and nothing that could change the runtime. */
export function makeReader(sources: Sources): RuntimeReader {
  const { runtime, image } = sources;
  return {
    info: (signal) => runtimeInfo(sources, signal),
    ...makeLists(sources),
    containerDetail: (id, signal) => {
      const decode = (it: AnswerTo<"ContainerStatus">) => decodeDetail(id, it);
      const options = { about: id, signal, decode };
      return ifFound(runtime.call(methods.ContainerStatus, { container_id: id }, options));
    },
    sandboxDetail: (id, signal) => {
      const decode = (it: AnswerTo<"PodSandboxStatus">) => decodeSandboxDetail(id, it);
      const options = { about: id, signal, decode };
      return ifFound(runtime.call(methods.PodSandboxStatus, { pod_sandbox_id: id }, options));
    },
    imageStatus: (reference, signal) => {
      const decode = (it: ImageStatus) => (it.image === null ? null : decodeImage(it.image));
      const request = { image: { image: reference }, verbose: false };
      return ifFound(
        image.call(methods.ImageStatus, request, { about: reference, signal, decode }),
      );
    },
    imageConfig: (id, signal) => {
      // An image found by another ID, such as a prefix, says nothing about this one.
      const decode = (it: ImageStatus) => (it.image?.id === id ? imageConfig(it.info) : null);
      const request = { image: { image: id }, verbose: true };
      return ifFound(image.call(methods.ImageStatus, request, { about: id, signal, decode }));
    },
    writableLayers: (signal) => {
      const call = runtime.call(
        methods.ListContainerStats,
        {},
        { signal, decode: decodeWritableLayers },
      );
      return nullIf("unimplemented", call);
    },
    reportedFilesystems: (signal) =>
      image.call(methods.ImageFsInfo, {}, { signal, decode: decodeFilesystems }),
  };
}

type ImageStatus = AnswerTo<"ImageStatus">;

async function runtimeInfo({ runtime, image }: Sources, signal: AbortSignal): Promise<RuntimeInfo> {
  const decode = ({ info }: AnswerTo<"Status">) => sandboxImagesOf(info);
  const [version, sandboxImages] = await Promise.all([
    runtime.call(methods.Version, {}, { signal, decode: decodeVersion }),
    runtime.call(methods.Status, { verbose: true }, { signal, decode }),
  ]);
  const { endpoint } = runtime;
  return { endpoint, imageEndpoint: image.endpoint, ...version, sandboxImages };
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

const ifFound = <Result>(asked: Promise<Result>): Promise<Result | null> =>
  nullIf("not-found", asked);

/** The calls that change the node. Removing what no longer exists succeeds, as CRI requires. */
function makeWriter(runtime: Channel, image: Channel): RuntimeWriter {
  const decode = (): void => undefined;
  const done = async (asked: Promise<void>): Promise<void> => void (await ifFound(asked));
  return {
    removeImage: (id) =>
      done(image.call(methods.RemoveImage, { image: { image: id } }, { about: id, decode })),
    stopContainer: (id, timeout, signal) => {
      const options = { about: id, extraMs: timeout * 1000, signal, decode };
      return done(runtime.call(methods.StopContainer, { container_id: id, timeout }, options));
    },
    removeContainer: (id) =>
      done(runtime.call(methods.RemoveContainer, { container_id: id }, { about: id, decode })),
    stopSandbox: (id, signal) => {
      const options = { about: id, signal, decode };
      return done(runtime.call(methods.StopPodSandbox, { pod_sandbox_id: id }, options));
    },
    removeSandbox: (id) =>
      done(runtime.call(methods.RemovePodSandbox, { pod_sandbox_id: id }, { about: id, decode })),
    execSync: (id, { words, timeoutSeconds }, signal) =>
      runtime.call(
        methods.ExecSync,
        { container_id: id, cmd: words, timeout: timeoutSeconds },
        { about: id, extraMs: timeoutSeconds * 1000, signal, decode: (it) => it.exit_code },
      ),
  };
}
