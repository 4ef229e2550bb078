/** A ready sandbox that is young and has no container yet is a pod on its way: its images are not in any list so far. */
import type { Container, Sandbox } from "../model/snapshot.ts";
import { minutes, type Instant } from "../model/time.ts";

/** A sandbox older than this without a container is waited for no longer, and no pass waits longer in all. */
export const STARTING_WAIT = minutes(2);

/** Sandboxes for which image removal waits. One that claims to come from the future is young; the limit of the wait still holds. */
export function startingSandboxes(
  facts: { readonly sandboxes: readonly Sandbox[]; readonly containers: readonly Container[] },
  now: Instant,
): readonly Sandbox[] {
  const inhabited = new Set(facts.containers.map((container) => container.sandboxId));
  return facts.sandboxes.filter(
    (sandbox) =>
      sandbox.state === "ready" && now - sandbox.createdAt < STARTING_WAIT && !inhabited.has(sandbox.id),
  );
}
