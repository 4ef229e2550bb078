// What holds of every plan for dead containers, on random nodes.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { removeContainers } from "../../src/gc/remove-containers.ts";
import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ContainerPlan } from "../../src/model/plan.ts";
import type { Container, ContainerState, Sandbox } from "../../src/model/snapshot.ts";
import { type Instant, instant, seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../src/policy/container/containers.ts";
import { inputOf, judged, noLogs } from "../support/build/pods.ts";
import { aContainer, aSandbox, containerLimits, NOW } from "../support/build/values.ts";
import { containerExecution, fakeEngine } from "../support/fake-engine.ts";
import { inSomeOrder } from "./image-node.ts";

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
    return { sandboxes: listed, containers: inside };
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

/** Holds of the plan for every node. */
const always = (check: (input: ContainerInput, plan: ContainerPlan) => void) => (): void =>
  fc.assert(fc.property(anInput, (input) => check(input, decideContainers(input))));
const decided =
  (kind: "keep" | "remove") =>
  <One extends { readonly decision: { readonly kind: string } }>(all: readonly One[]) =>
    all.filter(({ decision }) => decision.kind === kind);
const [going, kept] = [decided("remove"), decided("keep")];

describe("every plan", () => {
  test(
    "keeps running containers, and created or unknown ones of pods that are not deleted",
    always(({ pods, limits }, { containers }) => {
      for (const { container } of going(containers)) {
        const { state, podUid: uid } = container;
        expect(state).not.toBe("running");
        const gone = pods.isDeleted(uid) || limits.collectForeign;
        if (!gone) expect(state).toBe("exited");
      }
    }),
  );

  test(
    "keeps the newest dead container of a name that is not running in a pod that has not ended",
    always(({ snapshot, pods }, plan) => {
      const left = new Set(kept(plan.containers).map(({ container }) => container.id));
      const sandboxOf = new Map(snapshot.sandboxes.map((one) => [one.id, one]));
      const labelled = snapshot.containers.filter((one) => {
        const sandbox = sandboxOf.get(one.sandboxId);
        return one.podUid !== "" && (sandbox === undefined || sandbox.podUid === one.podUid);
      });
      for (const unit of Map.groupBy(labelled, (one) => `${one.podUid}/${one.name}`).values()) {
        const uid = unit[0]?.podUid ?? podUid("");
        if (pods.hasEnded(uid) || unit.some(({ state }) => state === "running")) continue;
        const exited = unit.filter(({ state }) => state === "exited");
        if (exited.length > 0) expect(exited.some(({ id }) => left.has(id))).toBe(true);
      }
    }),
  );

  test.each<[string, Partial<ContainerInput>]>([
    ["the source is not ready", { pods: judged({ gone: PODS, notReady: "a test" }) }],
    ["removal is on hold", { blocks: [{ kind: "on-hold", until: null, reason: "" }] }],
  ])("removes nothing while %s", (_, change) => {
    const podLogs = PODS.map((pod) => ({ entry: `n_n_${pod}`, uid: podUid(pod) }));
    const logs = { ...noLogs, podLogs };
    always((input) => {
      const snapshot = { ...input.snapshot, logs };
      const plan = decideContainers({ ...input, ...change, snapshot });
      expect([going(plan.containers), going(plan.sandboxes), going(plan.podLogs)].flat()).toEqual(
        [],
      );
    })();
  });

  test(
    "keeps foreign containers without --collect-foreign",
    always((input) => {
      const limits = { ...input.limits, collectForeign: false };
      const { containers, sandboxes } = decideContainers({ ...input, limits });
      const uids = [
        ...going(containers).map(({ container }) => container.podUid),
        ...going(sandboxes).map(({ sandbox }) => sandbox.podUid),
      ];
      expect(uids.filter((uid) => uid === "")).toEqual([]);
    }),
  );

  test(
    "keeps a sandbox that is ready or has a kept container",
    always((_, plan) => {
      const held = new Set(kept(plan.containers).map(({ container }) => container.sandboxId));
      const removed = going(plan.sandboxes).map(({ sandbox }) => sandbox);
      expect(removed.filter(({ id, state }) => state === "ready" || held.has(id))).toEqual([]);
    }),
  );

  test("does not depend on the order of the lists", () => {
    const inAnyOrder = anInput.chain((input) =>
      fc.record({
        input: fc.constant(input),
        containers: inSomeOrder(input.snapshot.containers),
        sandboxes: inSomeOrder(input.snapshot.sandboxes),
      }),
    );
    fc.assert(
      fc.property(inAnyOrder, ({ input, ...lists }) => {
        const snapshot = { ...input.snapshot, ...lists };
        expect(decideContainers({ ...input, snapshot })).toEqual(decideContainers(input));
      }),
    );
  });
});

test("the execution of a plan leaves nothing to do for a new plan", async () => {
  await fc.assert(
    fc.asyncProperty(anInput, async (input) => {
      const { containers, sandboxes } = input.snapshot;
      const fake = fakeEngine({ containers: [...containers], sandboxes: [...sandboxes] });
      await removeContainers(containerExecution(fake, {}, input));
      const snapshot = { ...input.snapshot, ...fake.world };
      const plan = decideContainers({ ...input, snapshot });
      expect([going(plan.containers), going(plan.sandboxes)].flat()).toEqual([]);
    }),
  );
});
