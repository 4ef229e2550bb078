// Every recorded decision of the kubelet on containers and sandboxes, through the code that the executable runs.

import { describe, expect, test } from "bun:test";

import { removeContainers } from "../../src/gc/remove-containers.ts";
import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { Container, ContainerState, Sandbox } from "../../src/model/snapshot.ts";
import { durationFromMs } from "../../src/model/time.ts";
import type { PodJudgement } from "../../src/policy/container/pods.ts";
import { decideContainers } from "../../src/policy/kubelet/container-gc.ts";
import { inputOf } from "../support/build/pods.ts";
import { aContainer, aSandbox, containerLimits } from "../support/build/values.ts";
import { containerExecution, fakeEngine } from "../support/fake-engine.ts";
import { readVectors, timeOf } from "./read-vectors.ts";

describe("container GC under --compat kubelet", () => {
  const vectors = readVectors<ContainerVector>("container-gc");

  test("has vectors", () => expect(vectors).not.toEqual([]));

  for (const vector of vectors) {
    test(`${vector.name} is what the kubelet did`, async () => {
      expect(await effectOf(vector)).toEqual(vector.expect);
    });
  }
});

interface ContainerVector {
  readonly name: string;
  readonly operation: "container-gc" | "delete-all-unused-containers";
  readonly now: string;
  readonly policy: {
    readonly minimumAgeMs: number;
    readonly maxPerPodContainer: number;
    readonly maxContainers: number;
  };
  readonly pods: {
    readonly sourcesReady: boolean;
    readonly contentShouldBeRemoved: readonly string[];
    readonly runtimeShouldBeRemoved: readonly string[];
  };
  readonly sandboxes: readonly {
    readonly id: string;
    readonly podUid: string;
    readonly podName: string;
    readonly podNamespace: string;
    readonly state: "READY" | "NOTREADY";
    readonly createdAt: string;
    readonly stopFails?: boolean;
  }[];
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly attempt: number;
    readonly podUid: string;
    readonly sandboxId: string;
    readonly state: "CREATED" | "RUNNING" | "EXITED" | "UNKNOWN";
    readonly createdAt: string;
    readonly removeFails?: boolean;
  }[];
  readonly expect: ContainerEffect;
}

/** Sorted IDs of what was attempted. */
interface ContainerEffect {
  readonly stopContainers: readonly string[];
  readonly removeContainers: readonly string[];
  readonly stopSandboxes: readonly string[];
  readonly removeSandboxes: readonly string[];
}

/** Decides and executes as `--compat kubelet` does, against a node that records the calls. */
async function effectOf(vector: ContainerVector): Promise<ContainerEffect> {
  const containers = vector.containers.map(containerOf);
  const sandboxes = vector.sandboxes.map(sandboxFrom);
  const fails = new Set([
    ...vector.containers
      .filter((one) => one.removeFails === true)
      .map((one) => `RemoveContainer ${one.id}`),
    ...vector.sandboxes
      .filter((one) => one.stopFails === true)
      .map((one) => `StopPodSandbox ${one.id}`),
  ]);
  const fake = fakeEngine({ containers, sandboxes, fails });
  const input = inputOf(
    { containers, sandboxes },
    {
      pods: judgementOf(vector),
      limits: {
        ...containerLimits,
        minimumAge: durationFromMs(vector.policy.minimumAgeMs),
        maximumPerPodContainer: vector.policy.maxPerPodContainer,
        maximumContainers: vector.policy.maxContainers,
      },
      purpose: vector.operation === "container-gc" ? "periodic" : "all-unused",
      now: timeOf(vector.now),
    },
  );
  await removeContainers(containerExecution(fake, { decide: decideContainers }, input));
  const called = (method: string): readonly string[] =>
    fake.writes
      .map((write) => write.split(" "))
      .flatMap(([name, id]) => (name === method && id !== undefined ? [id] : []))
      .toSorted();
  return {
    stopContainers: called("StopContainer"),
    removeContainers: called("RemoveContainer"),
    stopSandboxes: called("StopPodSandbox"),
    removeSandboxes: called("RemovePodSandbox"),
  };
}

function judgementOf({ pods }: ContainerVector): PodJudgement {
  return {
    state: pods.sourcesReady
      ? { kind: "ready", source: "vector" }
      : { kind: "not-ready", source: "vector", why: "the sources of the vector are not ready" },
    isDeleted: (uid) => pods.contentShouldBeRemoved.includes(uid),
    hasEnded: (uid) => pods.runtimeShouldBeRemoved.includes(uid),
    foreignDead: () => false,
    mayBeDeleted: () => false,
  };
}

const containerOf = (one: ContainerVector["containers"][number]): Container =>
  aContainer(one.name, {
    id: containerId(one.id),
    sandboxId: sandboxId(one.sandboxId),
    attempt: one.attempt,
    podUid: podUid(one.podUid),
    state: one.state.toLowerCase() as ContainerState,
    createdAt: timeOf(one.createdAt),
  });

const sandboxFrom = (one: ContainerVector["sandboxes"][number]): Sandbox =>
  aSandbox(one.podName, {
    id: sandboxId(one.id),
    podUid: podUid(one.podUid),
    metadataUid: podUid(one.podUid),
    namespace: one.podNamespace,
    state: one.state === "READY" ? "ready" : "not-ready",
    createdAt: timeOf(one.createdAt),
  });
