/** Which log directories go: those of pods that are gone. What is not a pod's is only named. */

import type { PodUid } from "../model/ids.ts";
import { podUidOfOldLogDirectory } from "../model/log-names.ts";
import type { Decision, PlannedPodLogs } from "../model/plan.ts";
import type { LogKeepReason, LogRemoveReason } from "../model/reason.ts";
import { logFactsOf, type PodLogDirectory } from "../model/snapshot.ts";
import type { ContainerInput } from "./container-input.ts";
import { ownership } from "./ownership.ts";

export function planPodLogs(input: ContainerInput): readonly PlannedPodLogs[] {
  const pods = listedPods(input);
  return [...oldDirectories(input), ...(logFactsOf(input.snapshot.logs)?.podLogs ?? [])].map(
    (directory) => ({
      directory,
      decision: decide(directory.uid, pods, input),
    }),
  );
}

/** Entries of the log directory that no decision concerns. */
export function strayEntries(input: ContainerInput): readonly string[] {
  const judged = new Set(oldDirectories(input).map(({ entry }) => entry));
  return (logFactsOf(input.snapshot.logs)?.strays ?? []).filter((entry) => !judged.has(entry));
}

/**
 * The kubelet takes a name without underscores for a UID, as its old versions named directories. It does so with
 * `lost+found` too; here a name goes only where the pod of that UID was known before it was gone.
 */
function oldDirectories(input: ContainerInput): readonly PodLogDirectory[] {
  if (input.limits.compat !== "kubelet") return [];
  return (logFactsOf(input.snapshot.logs)?.strays ?? []).flatMap((entry) => {
    const uid = podUidOfOldLogDirectory(entry);
    return uid === null ? [] : [{ entry, uid }];
  });
}

interface ListedPods {
  readonly all: ReadonlySet<PodUid>;
  readonly foreign: ReadonlySet<PodUid>;
}

function listedPods({ snapshot, limits }: ContainerInput): ListedPods {
  const owners = ownership(snapshot, limits.compat);
  const all = [
    ...snapshot.sandboxes.map((sandbox) => owners.ofSandbox(sandbox)),
    ...snapshot.containers.map((container) => owners.ofContainer(container)),
  ];
  const foreign = all.filter((owner) => owner.foreign);
  return {
    all: new Set(all.map(({ uid }) => uid)),
    foreign: new Set(foreign.map(({ uid }) => uid)),
  };
}

function decide(
  uid: PodUid,
  listed: ListedPods,
  { pods }: ContainerInput,
): Decision<LogKeepReason, LogRemoveReason> {
  if (pods.state.kind === "not-ready") {
    const reason = { kind: "source-not-ready", message: pods.state.why } as const;
    return { kind: "keep", reason, tried: ["source-not-ready"] };
  }
  // No source knows a pod that Kubernetes did not make: not to be listed says nothing of it.
  const gone = listed.foreign.has(uid) ? null : pods.shouldRemoveContent(uid);
  if (gone !== null)
    return { kind: "remove", reason: { kind: gone }, tried: ["source-not-ready", gone] };
  const mayBeDeleted =
    pods.mayBeDeleted(uid) || (pods.state.kind === "none" && !listed.all.has(uid));
  const kind = mayBeDeleted ? "pod-not-gone-yet" : "pod-known";
  return { kind: "keep", reason: { kind }, tried: ["source-not-ready", "pod-gone", kind] };
}
