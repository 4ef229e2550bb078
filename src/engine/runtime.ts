/** Connects to the runtime. */

import { realpath, stat } from "node:fs/promises";

import type { Config } from "../config/config.ts";
import type { Runtime } from "../cri/client.ts";
import { RuntimeError } from "../model/errors.ts";
import { collectIfGrown, compileWhenBusy } from "../node/process.ts";

export interface Connected {
  readonly runtime: Runtime;
  /** `unix:///…`, for the lock and for messages. */
  readonly endpoint: string;
}

/** Loaded on demand: commands without calls need not load gRPC, which takes 15 MB. */
const discovery = async () => import("../cri/discover.ts");

/** Throws `RuntimeError` within seconds if nothing answers `runtime.v1`, not after the deadline of a call. */
export async function connect(config: Config): Promise<Connected> {
  const endpoint = await runtimeEndpoint(config);
  const imageEndpoint = config.values.imageServiceEndpoint ?? endpoint;
  if (imageEndpoint !== endpoint) {
    await rejectFile(imageEndpoint, "--image-service-endpoint");
    await (await discovery()).probeImageEndpoint(imageEndpoint);
  }
  const { openRuntime } = await import("../cri/client.ts");
  const busy = compileWhenBusy(() => performance.now());
  const runtime = openRuntime({
    endpoint,
    imageEndpoint,
    requestTimeout: config.values.runtimeRequestTimeout,
    onCall: ({ method }) => {
      busy();
      collectIfGrown(/^(?:List|Stream)/.test(method) ? 1 : CALL_WEIGHT);
    },
    onNewEntry: () => {
      busy(CALLS_OF_ENTRY);
      collectIfGrown(CALL_WEIGHT * CALLS_OF_ENTRY);
    },
  });
  return { runtime, endpoint };
}

/** A call, as a part of a check of the memory; a list that was read leaves tens of megabytes of garbage. */
const CALL_WEIGHT = 1 / 32;
/** Weight of a list entry in the decisions to compile hot code and to collect garbage. */
const CALLS_OF_ENTRY = 0.05;

async function runtimeEndpoint(config: Config): Promise<string> {
  const named = config.values.containerRuntimeEndpoint;
  const { discoverEndpoint, probeEndpoint } = await discovery();
  if (named === null) return (await discoverEndpoint(realpath)).endpoint;
  await rejectFile(named, "--container-runtime-endpoint");
  return (await probeEndpoint(named)).endpoint;
}

/** A file refuses connections as the socket of a stopped runtime does. Throws `RuntimeError` `not-cri`. */
export async function rejectFile(endpoint: string, flag: string): Promise<void> {
  const found = await stat(endpoint.slice("unix://".length)).catch(() => null);
  if (found === null || found.isSocket()) return;
  const what = found.isDirectory() ? "a directory" : "a file";
  throw new RuntimeError("not-cri", `${endpoint} is ${what}, not a socket; set ${flag}`);
}
