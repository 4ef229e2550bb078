// Whatever happens to the kubelet, its API server, the machine, its clock and our ledger: nothing of a pod that exists is removed as a deleted pod's.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { hours, minutes, seconds } from "../../src/model/time.ts";
import { KubeletNode, type Source } from "./kubelet-node.ts";

type Step = (node: KubeletNode) => readonly string[] | void;

const at = fc.nat(5);
const step: fc.Arbitrary<readonly [string, Step]> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .boolean()
      .map((isStatic) => [`add ${isStatic}`, (it: KubeletNode) => it.add(isStatic)] as const),
  },
  {
    weight: 3,
    arbitrary: at.map((which) => [`start ${which}`, (it: KubeletNode) => it.start(which)] as const),
  },
  at.map((which) => [`complete ${which}`, (it: KubeletNode) => it.complete(which)] as const),
  {
    weight: 2,
    arbitrary: at.map(
      (which) => [`delete ${which}`, (it: KubeletNode) => it.delete(which)] as const,
    ),
  },
  fc.boolean().map((up) => [`api ${up}`, (it: KubeletNode) => it.apiServer(up)] as const),
  fc.boolean().map((up) => [`kubelet ${up}`, (it: KubeletNode) => it.kubelet(up)] as const),
  fc.constant(["restart", (it: KubeletNode) => (it.kubelet(false), it.kubelet(true))] as const),
  fc.constant([
    "restart alone",
    (it: KubeletNode) => (it.apiServer(false), it.kubelet(false), it.kubelet(true)),
  ] as const),
  fc
    .tuple(fc.boolean(), fc.boolean())
    .map(
      ([left, withStatic]) =>
        [
          `directory ${left} ${withStatic}`,
          (it: KubeletNode) => it.leaveDirectory(left, withStatic),
        ] as const,
    ),
  fc.constant(["reboot", (it: KubeletNode) => it.reboot()] as const),
  fc.constantFrom<Source>("kubelet-api", "kubelet-dir").map(
    (source) =>
      [
        `source ${source}`,
        (it: KubeletNode) => {
          it.source = source;
        },
      ] as const,
  ),
  fc.constant(["lose ledger", (it: KubeletNode) => it.loseLedger()] as const),
  fc
    .constantFrom(seconds(1), minutes(1), minutes(10), hours(30))
    .map((span) => [`wait ${span}`, (it: KubeletNode) => it.wait(span)] as const),
  fc
    .constantFrom(hours(-100), hours(100))
    .map((span) => [`turn ${span}`, (it: KubeletNode) => it.turnClock(span)] as const),
  { weight: 6, arbitrary: fc.constant(["pass", (it: KubeletNode) => it.pass()] as const) },
  fc.constant(["all-unused", (it: KubeletNode) => it.pass("all-unused")] as const),
);

describe.each<Source>(["kubelet-api", "kubelet-dir"])("by %s", (source) => {
  const life = fc.array(step, { maxLength: 40 });
  const run = (
    node: KubeletNode,
    steps: readonly (readonly [string, Step])[],
  ): readonly string[] => {
    for (const isStatic of [true, false, false]) node.add(isStatic);
    for (const pod of [0, 1]) node.start(pod);
    return steps.flatMap(([, act]) => act(node) ?? []);
  };

  test("nothing of an existing pod is removed as a deleted pod's, nor an image in its spec", () => {
    fc.assert(
      fc.property(life, (steps) => {
        expect(run(new KubeletNode(source), steps)).toEqual([]);
      }),
      { numRuns: 600 },
    );
  });

  test("everything that deleted pods left is removed once the kubelet has reached its API server and a pod is alive", () => {
    fc.assert(
      fc.property(life, (steps) => {
        const node = new KubeletNode(source);
        run(node, steps);
        // What a wrong clock dated ahead counts as young until it is right.
        node.turnClock(hours(10_000));
        node.leaveDirectory(false, false);
        node.kubelet(true);
        node.apiServer(true);
        node.add(false);
        for (let pod = 0; pod < 40; pod += 1) node.start(pod);
        for (let pass = 0; pass < 12; pass += 1) {
          node.wait(minutes(1));
          node.pass();
        }
        expect(node.hasLivingPod()).toBe(true);
        expect(node.leftovers()).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});
