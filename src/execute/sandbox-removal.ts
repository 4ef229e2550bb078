/** Removes one sandbox: looks again, stops it, removes it. */

import { failureCode, messageOf } from "../model/errors.ts";
import type { RemovalResult, SandboxItem } from "../model/outcome.ts";
import type { SandboxRemoveReason } from "../model/reason.ts";
import type { Sandbox } from "../model/snapshot.ts";
import type { ContainerPorts } from "./container-ports.ts";

/** Never rejects. One that cannot be stopped is not removed: what holds it would be torn out from under it. */
export async function removeSandbox(
  sandbox: Sandbox,
  reason: SandboxRemoveReason,
  ports: Pick<ContainerPorts, "runtime" | "writer">,
): Promise<SandboxItem> {
  return { sandbox, reason, result: await remove(sandbox, ports) };
}

async function remove(
  { id }: Sandbox,
  { runtime, writer }: Pick<ContainerPorts, "runtime" | "writer">,
): Promise<RemovalResult> {
  let step = "status";
  try {
    const detail = await runtime.sandboxDetail(id, new AbortController().signal);
    if (detail === null) return { kind: "already-gone" };
    if (detail.state === "ready") return { kind: "skipped", what: "it is ready now" };
    step = "stop";
    await writer.stopSandbox(id);
    step = "remove";
    await writer.removeSandbox(id);
    return { kind: "removed" };
  } catch (thrown) {
    return { kind: "failed", step, message: messageOf(thrown), code: failureCode(thrown) };
  }
}
