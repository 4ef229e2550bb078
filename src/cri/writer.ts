/** The calls that change the node. Removing what no longer exists succeeds, as CRI requires. */

import { RuntimeError } from "../model/errors.ts";
import type { RuntimeWriter } from "../model/ports.ts";
import type { Channel } from "./channel.ts";

const done = (): undefined => undefined;

export function makeWriter(runtime: Channel, image: Channel): RuntimeWriter {
  return {
    removeImage: async (id) =>
      orGone(image.call("RemoveImage", { image: { image: id } }, { about: id, decode: done })),
    stopContainer: async (id, graceSeconds, signal) =>
      orGone(
        runtime.call(
          "StopContainer",
          { container_id: id, timeout: graceSeconds },
          { about: id, extraMs: graceSeconds * 1000, signal, decode: done },
        ),
      ),
    removeContainer: async (id) =>
      orGone(runtime.call("RemoveContainer", { container_id: id }, { about: id, decode: done })),
    stopSandbox: async (id, signal) =>
      orGone(
        runtime.call("StopPodSandbox", { pod_sandbox_id: id }, { about: id, signal, decode: done }),
      ),
    removeSandbox: async (id) =>
      orGone(runtime.call("RemovePodSandbox", { pod_sandbox_id: id }, { about: id, decode: done })),
    execSync: async (id, { words, timeoutSeconds }, signal) =>
      runtime.call(
        "ExecSync",
        { container_id: id, cmd: words, timeout: timeoutSeconds },
        { about: id, extraMs: timeoutSeconds * 1000, signal, decode: (it) => it.exit_code },
      ),
  };
}

async function orGone(asked: Promise<undefined>): Promise<void> {
  try {
    await asked;
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError && thrown.kind === "not-found")) throw thrown;
  }
}
