/** Whether the source of pods may be believed now: one that knows nothing of what evidently lives here is another node's. */
import { assertNever } from "../model/assert.ts";
import type { PodUid } from "../model/ids.ts";
import type { Compat, MemoryLimits } from "../model/limits.ts";
import type { PodSourceState } from "../model/plan.ts";
import { logFactsOf, type LogReading, type PodReading } from "../model/snapshot.ts";
import type { Watched } from "../model/time.ts";
import { type Listed, livingKubernetesPods, ownership } from "./ownership.ts";

/** What pods are judged from. A `Snapshot` gives all but the clock and the limits. */
export interface PodView extends Listed {
  readonly pods: PodReading;
  readonly logs: LogReading | null;
  readonly watched: Watched;
  readonly limits: MemoryLimits;
}

export function podSourceState(view: PodView): PodSourceState {
  const reading = view.pods;
  switch (reading.kind) {
    case "none":
      return { kind: "none", why: reading.why };
    case "failed":
      return { kind: "not-ready", source: reading.source, why: reading.message };
    case "ready": {
      const why = reading.source === "cri" ? null : doubt(view, listedUids(reading));
      return why === null
        ? { kind: "ready", source: reading.source }
        : { kind: "not-ready", source: reading.source, why };
    }
    default:
      return assertNever(reading);
  }
}

export const listedUids = (reading: PodReading): ReadonlySet<PodUid> =>
  new Set(reading.kind === "ready" ? reading.pods.map((pod) => pod.uid) : []);

/**
 * An empty root directory and another node's look alike: they know no pod of this node. Where nothing lives that could
 * prove the source right, one dead pod or log directory that it knows will do; where it knows none of those either, its
 * word alone is not enough to remove them.
 */
function doubt(view: PodView, listed: ReadonlySet<PodUid>): string | null {
  const living = livingKubernetesPods(view);
  if (living.size > 0) {
    if (intersects(living, listed)) return null;
    return `it knows none of the ${living.size} pods that are evidently living on this node`;
  }
  const known = knownPods(view, view.limits.compat);
  if (known.size === 0 || intersects(known, listed)) return null;
  return `no pod lives on this node, and it knows none of the ${known.size} that left containers or logs here`;
}

/** Pods of Kubernetes of which the runtime or the log directory knows. */
function knownPods(view: PodView, compat: Compat): ReadonlySet<PodUid> {
  const owners = ownership(view, compat);
  const all = [
    ...view.sandboxes.map((sandbox) => owners.ofSandbox(sandbox)),
    ...view.containers.map((container) => owners.ofContainer(container)),
  ];
  return new Set([
    ...all.filter((owner) => !owner.foreign).map((owner) => owner.uid),
    ...(logFactsOf(view.logs)?.podLogs ?? []).map((directory) => directory.uid),
  ]);
}

function intersects(some: ReadonlySet<PodUid>, others: ReadonlySet<PodUid>): boolean {
  return [...some].some((uid) => others.has(uid));
}
