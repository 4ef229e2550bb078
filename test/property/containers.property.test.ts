// What holds of every plan for dead containers, on random nodes.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { removeContainers } from "../../src/gc/remove-containers.ts";
import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { Container, ContainerState, Sandbox } from "../../src/model/snapshot.ts";
import { type Instant, instant, seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../src/policy/container/containers.ts";
import { inputOf, judged, noLogs } from "../support/build/pods.ts";
import { aContainer, aSandbox, containerLimits, NOW } from "../support/build/values.ts";
import { FakeNode } from "../support/fake-node.ts";

const PODS = ["p0", "p1", "p2", "p3"] as const;
const instantBack: fc.Arbitrary<Instant> = fc.nat(50).map((back) => instant(NOW - seconds(back)));

const aNode = fc
  .record({
    sandboxes: fc.array(
      fc.record({
        pod: fc.constantFrom(...PODS),
        labelled: fc.boolean(),
        ready: fc.boolean(),
        createdAt: instantBack,
      }),
      { maxLength: 6 },
    ),
    containers: fc.array(
      fc.record({
        sandbox: fc.nat(7),
        pod: fc.constantFrom(...PODS),
        labelled: fc.integer({ min: 0, max: 9 }),
        name: fc.constantFrom("app", "init"),
        state: fc.constantFrom<ContainerState>(
          "created",
          "running",
          "exited",
          "exited",
          "exited",
          "unknown",
        ),
        createdAt: instantBack,
        ended: fc.option(instantBack),
      }),
      { maxLength: 16 },
    ),
  })
  .map(({ sandboxes, containers }) => {
    const listed = sandboxes.map(({ pod, labelled, ready, createdAt }, index): Sandbox => ({
      ...aSandbox(`${index}`, { createdAt, state: ready ? "ready" : "not-ready" }),
      podUid: podUid(labelled ? pod : ""),
      metadataUid: podUid(pod),
    }));
    const inside = containers.map((one, index): Container => {
      const sandbox = listed[one.sandbox];
      return aContainer(one.name, {
        id: containerId(`c${index}`),
        sandboxId: sandbox?.id ?? sandboxId(`gone${one.sandbox}`),
        podUid: one.labelled === 0 ? podUid("") : (sandbox?.podUid ?? podUid(one.pod)),
        state: one.state,
        createdAt: one.createdAt,
      });
    });
    const ends = containers.flatMap(({ ended }, index) =>
      ended === null ? [] : [[containerId(`c${index}`), ended] as const],
    );
    return { sandboxes: listed, containers: inside, containerEnds: new Map(ends) };
  });

const somePods = fc.uniqueArray(fc.constantFrom(...PODS));
const aJudgement = fc.record({ gone: somePods, terminated: somePods, foreignDead: somePods });
const aLimit = fc.integer({ min: -1, max: 4 });

const anInput: fc.Arbitrary<ContainerInput> = fc
  .record({
    node: aNode,
    pods: aJudgement,
    perContainer: aLimit,
    total: aLimit,
    minimumAge: fc.constantFrom(0, 10),
    collectForeign: fc.boolean(),
    purpose: fc.constantFrom("periodic" as const, "all-unused" as const, "pressure" as const),
  })
  .map(({ node, pods, perContainer, total, minimumAge, collectForeign, purpose }) =>
    inputOf(node, {
      pods: judged(pods),
      purpose,
      limits: {
        ...containerLimits,
        minimumAge: seconds(minimumAge),
        maximumPerPodContainer: perContainer,
        maximumContainers: total,
        collectForeign,
      },
    }),
  );

const goingOf = (input: ContainerInput): readonly Container[] =>
  decideContainers(input)
    .containers.filter((one) => one.decision.kind === "remove")
    .map((one) => one.container);

describe("every plan", () => {
  test("keeps running containers, and created or unknown ones of pods that are not deleted", () => {
    fc.assert(
      fc.property(anInput, (input) => {
        for (const { state, podUid: uid } of goingOf(input)) {
          expect(state).not.toBe("running");
          const gone = input.pods.shouldRemoveContent(uid) !== null || input.limits.collectForeign;
          if (!gone) expect(state).toBe("exited");
        }
      }),
    );
  });

  test("keeps the newest dead container of a name that is not running in a pod that has not ended", () => {
    fc.assert(
      fc.property(anInput, (input) => {
        const { containers, sandboxes } = input.snapshot;
        const going = new Set(goingOf(input).map(({ id }) => id));
        const sandboxOf = new Map(sandboxes.map((one) => [one.id, one]));
        const labelled = containers.filter((one) => {
          const sandbox = sandboxOf.get(one.sandboxId);
          return one.podUid !== "" && (sandbox === undefined || sandbox.podUid === one.podUid);
        });
        for (const unit of Map.groupBy(labelled, (one) => `${one.podUid}/${one.name}`).values()) {
          const uid = unit[0]?.podUid ?? podUid("");
          if (input.pods.hasEnded(uid) || unit.some(({ state }) => state === "running")) continue;
          const exited = unit.filter(({ state }) => state === "exited");
          if (exited.length > 0) expect(exited.some(({ id }) => !going.has(id))).toBe(true);
        }
      }),
    );
  });

  test("removes nothing while the source is not ready or removal is blocked", () => {
    fc.assert(
      fc.property(anInput, fc.boolean(), (input, blocked) => {
        const stopped: ContainerInput = blocked
          ? { ...input, blocks: [{ kind: "on-hold", until: null, reason: "" }] }
          : {
              ...input,
              pods: { ...input.pods, state: { kind: "not-ready", source: "x", why: "" } },
            };
        const logs = {
          ...noLogs,
          podLogs: PODS.map((pod) => ({ entry: `n_n_${pod}`, uid: podUid(pod) })),
        };
        const plan = decideContainers({ ...stopped, snapshot: { ...stopped.snapshot, logs } });
        const decisions = [...plan.containers, ...plan.sandboxes, ...plan.podLogs];
        expect(decisions.every((each) => each.decision.kind === "keep")).toBe(true);
      }),
    );
  });

  test("keeps foreign containers without --collect-foreign", () => {
    fc.assert(
      fc.property(anInput, (input) => {
        const limits = { ...input.limits, collectForeign: false };
        const plan = decideContainers({ ...input, limits });
        const going = plan.sandboxes.filter((one) => one.decision.kind === "remove");
        expect(going.every((one) => one.sandbox.podUid !== "")).toBe(true);
        expect(goingOf({ ...input, limits }).every((one) => one.podUid !== "")).toBe(true);
      }),
    );
  });

  test("keeps a sandbox that is ready or has a kept container", () => {
    fc.assert(
      fc.property(anInput, (input) => {
        const plan = decideContainers(input);
        const left = plan.containers.filter((one) => one.decision.kind === "keep");
        const held = new Set(left.map((one) => one.container.sandboxId));
        for (const { sandbox, decision } of plan.sandboxes) {
          if (sandbox.state === "ready" || held.has(sandbox.id)) expect(decision.kind).toBe("keep");
        }
      }),
    );
  });

  test("does not depend on the order of the lists", () => {
    fc.assert(
      fc.property(anInput, fc.infiniteStream(fc.nat()), (input, keys) => {
        const shuffled = <T>(list: readonly T[]): readonly T[] =>
          list
            .map((item) => ({ item, key: keys.next().value ?? 0 }))
            .toSorted((one, other) => one.key - other.key)
            .map(({ item }) => item);
        const { containers, sandboxes } = input.snapshot;
        const other = {
          ...input.snapshot,
          containers: shuffled(containers),
          sandboxes: shuffled(sandboxes),
        };
        expect(decideContainers({ ...input, snapshot: other })).toEqual(decideContainers(input));
      }),
    );
  });
});

test("the execution of a plan leaves nothing to do for a new plan", async () => {
  await fc.assert(
    fc.asyncProperty(anInput, async (input) => {
      const node = new FakeNode(input.snapshot);
      await removeContainers(node.execution({}, input));
      const containers = [...node.containers.values()];
      const sandboxes = [...node.sandboxes.values()];
      const plan = decideContainers({
        ...input,
        snapshot: { ...input.snapshot, containers, sandboxes },
      });
      const all = [...plan.containers, ...plan.sandboxes];
      expect(all.filter(({ decision }) => decision.kind === "remove")).toEqual([]);
    }),
  );
});
