/** Builders for pods, dead containers, sandboxes and log directories, and one call that decides on them. */

import { containerId, type PodUid, podUid, sandboxId } from "../../../src/model/ids.ts";
import type { PodRecord } from "../../../src/model/ledger.ts";
import type { ContainerPlan } from "../../../src/model/plan.ts";
import type {
  Container,
  DanglingLogLink,
  LogFacts,
  PodReading,
  Sandbox,
} from "../../../src/model/snapshot.ts";
import {
  type Duration,
  hours,
  type Instant,
  instant,
  seconds,
  totalUptime,
} from "../../../src/model/time.ts";
import type { ContainerInput } from "../../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../../src/policy/container/containers.ts";
import {
  type Listed,
  type PodJudgement,
  type PodView,
  rememberPods,
} from "../../../src/policy/container/pods.ts";
import { aContainer, aSandbox, containerLimits, ledgerLimits, NOW } from "./values.ts";

/** Ends `secondsAgo` before now; the same instant is its creation, so that order by either is the same. */
export const ago = (secondsAgo: number): Instant =>
  instant(NOW - BigInt(secondsAgo) * 1_000_000_000n);

/** 64 hex digits that begin with the word's bytes. */
export const hexId = (word: string): string =>
  Buffer.from(word).toString("hex").padEnd(64, "0").slice(0, 64);

/** An exited container `NAME` of pod `POD`, attempt by attempt older. */
export function dead(pod: string, name: string, change: Partial<Container> = {}): Container {
  return aContainer(name, {
    id: containerId(hexId(`${pod}/${name}/${change.createdAt ?? 0n}`)),
    sandboxId: sandboxId(`sandbox-${pod}`),
    podUid: podUid(`uid-${pod}`),
    podName: `pod-${pod}`,
    state: "exited",
    createdAt: ago(3600),
    ...change,
  });
}

export const sandboxOf = (pod: string, change: Partial<Sandbox> = {}): Sandbox =>
  aSandbox(pod, change);

/** A judgement that says of the named pods what is given, and of all others that they are known. */
export function judged(change: {
  readonly gone?: readonly string[];
  readonly terminated?: readonly string[];
  readonly foreignDead?: readonly string[];
  readonly notReady?: string;
  readonly none?: boolean;
}): PodJudgement {
  const among = (uids: readonly string[] | undefined, uid: PodUid): boolean =>
    (uids ?? []).includes(uid);
  const isDeleted = (uid: PodUid): boolean => among(change.gone, uid);
  return {
    state: stateOf(change),
    isDeleted,
    hasEnded: (uid) => isDeleted(uid) || among(change.terminated, uid),
    foreignDead: (uid) => among(change.foreignDead, uid),
    mayBeDeleted: () => false,
  };
}

function stateOf(change: {
  readonly notReady?: string;
  readonly none?: boolean;
}): PodJudgement["state"] {
  if (change.notReady !== undefined) {
    return { kind: "not-ready", source: "kubelet-dir", why: change.notReady };
  }
  return change.none === true
    ? { kind: "none", why: "a test" }
    : { kind: "ready", source: "kubelet-dir" };
}

export type Node = Partial<ContainerInput["snapshot"]>;

/** Ends are those of creation, unless they are given. */
export function inputOf(node: Node, change: Partial<ContainerInput> = {}): ContainerInput {
  const containers = node.containers ?? [];
  return {
    snapshot: {
      containers,
      sandboxes: node.sandboxes ?? [],
      logs: node.logs ?? null,
    },
    isFresh: false,
    pods: judged({}),
    limits: containerLimits,
    purpose: "periodic",
    now: NOW,
    blocks: [],
    ...change,
  };
}

export const planOf = (node: Node, change: Partial<ContainerInput> = {}): ContainerPlan =>
  decideContainers(inputOf(node, change));

/** The same decision on lists that are newer than the plan. */
export const againOn = (
  lists: Listed,
  input: ContainerInput,
  decide = decideContainers,
): ContainerPlan => decide({ ...input, snapshot: { ...input.snapshot, ...lists }, isFresh: true });

/** IDs of the containers that go, in order. */
export const goingContainers = (plan: ContainerPlan): readonly string[] =>
  plan.containers.filter((one) => one.decision.kind === "remove").map((one) => one.container.id);

export const goingSandboxes = (plan: ContainerPlan): readonly string[] =>
  plan.sandboxes.filter((one) => one.decision.kind === "remove").map((one) => one.sandbox.id);

export const goingLogs = (plan: ContainerPlan): readonly string[] =>
  plan.podLogs.filter((one) => one.decision.kind === "remove").map((one) => one.directory.entry);

/** Why a container, by ID, is kept or removed. */
export function reasonOf(plan: ContainerPlan, id: string): string {
  const planned = plan.containers.find((one) => one.container.id === id);
  if (planned === undefined) throw new Error(`the plan does not name ${id}`);
  return planned.decision.reason.kind;
}

export const noLogs: LogFacts = {
  kind: "read",
  podLogsDirectory: "/var/log/pods",
  podLogs: [],
  strays: [],
  danglingLinks: [],
};

/** A link to the log of `c` in pod a. */
export const danglingLink = (change: Partial<DanglingLogLink> = {}): DanglingLogLink => ({
  entry: "pod-a_default_c.log",
  podUid: podUid("uid-a"),
  name: "c",
  attempt: 0,
  ...change,
});

/** Logs with a directory for each of these pods: `default_POD_uid-POD`. */
export const logsOf = (...pods: readonly string[]): LogFacts => ({
  ...noLogs,
  podLogs: pods.map((pod) => ({ entry: `default_${pod}_uid-${pod}`, uid: podUid(`uid-${pod}`) })),
});

export function viewOf(
  node: Partial<Pick<PodView, "containers" | "sandboxes" | "logs">>,
  pods: PodReading,
  change: Partial<Pick<PodView, "totalUptime" | "limits">> = {},
): PodView {
  return {
    containers: [],
    sandboxes: [],
    logs: null,
    ...node,
    pods,
    totalUptime: totalUptime(hours(100)),
    limits: ledgerLimits,
    ...change,
  };
}

export const reading = (source: "kubelet-dir" | "cri", ...uids: readonly string[]): PodReading => ({
  kind: "ready",
  source,
  pods: uids.map(podUid),
});

export const aPodRecord = (change: Partial<PodRecord> = {}): PodRecord => ({
  absentSinceUptime: null,
  deadSinceUptime: null,
  ...change,
});

/** Passes at least so far apart, each remembered. */
export function passes(
  views: readonly PodView[],
  apart: Duration = seconds(10),
): { readonly records: ReadonlyMap<PodUid, PodRecord>; readonly last: PodView } {
  let records: ReadonlyMap<PodUid, PodRecord> = new Map();
  let last: PodView | null = null;
  for (const view of views) {
    const endWaits: bigint = last === null ? 0n : last.totalUptime + apart;
    last = {
      ...view,
      totalUptime: totalUptime(view.totalUptime > endWaits ? view.totalUptime : endWaits),
    };
    records = rememberPods(records, last);
  }
  if (last === null) throw new Error("no pass");
  return { records, last };
}
