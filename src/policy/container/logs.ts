/** Decides which log directories are deleted: those of deleted pods. Other entries are only reported. */

import type { PodUid } from "../../model/ids.ts";
import { podUidOfOldLogDirectory } from "../../model/log-names.ts";
import type { PlannedPodLogs } from "../../model/plan.ts";
import { logFactsOf, type PodLogDirectory } from "../../model/snapshot.ts";
import type { ContainerInput } from "./container-input.ts";
import { decisionOf, ruleSet, tryRules } from "./container-rules.ts";
import { listedOwners, type Owner } from "./ownership.ts";

export function planPodLogs(input: ContainerInput): readonly PlannedPodLogs[] {
  const { pods, limits } = input;
  const { logs } = ruleSet(limits.compat);
  const listed = listedPods(input);
  const directories = logFactsOf(input.snapshot.logs)?.podLogs ?? [];
  return [...uidDirectories(input), ...directories].map((directory) => {
    const { uid } = directory;
    const owner = listed.get(uid) ?? { uid, foreign: false };
    const { tried, decision } = tryRules(logs, { owner, input });
    const unconfirmed = pods.mayBeDeleted(uid) || (pods.state.kind === "none" && !listed.has(uid));
    const kind = unconfirmed ? "pod-not-gone-yet" : "pod-known";
    return { directory, decision: decision ?? decisionOf({ keep: { kind } }, tried) };
  });
}

/** Entries of the log directory that no decision applies to. */
export function strayEntries(input: ContainerInput): readonly string[] {
  const judged = new Set(uidDirectories(input).map(({ entry }) => entry));
  return (logFactsOf(input.snapshot.logs)?.strays ?? []).filter((entry) => !judged.has(entry));
}

/**
 * The kubelet takes a name without underscores for a UID, as old versions named directories, even `lost+found`. crigc
 * deletes it only if the pod with that UID was known before it was deleted.
 */
function uidDirectories({ limits, snapshot }: ContainerInput): readonly PodLogDirectory[] {
  if (!ruleSet(limits.compat).takesUidDirectories) return [];
  return (logFactsOf(snapshot.logs)?.strays ?? []).flatMap((entry) => {
    const uid = podUidOfOldLogDirectory(entry);
    return uid === null ? [] : [{ entry, uid }];
  });
}

/** Pods of listed sandboxes and containers; one counts as foreign if anything says so. */
function listedPods({ snapshot, limits }: ContainerInput): ReadonlyMap<PodUid, Owner> {
  return new Map(listedOwners(snapshot, limits.compat).map((owner) => [owner.uid, owner]));
}
