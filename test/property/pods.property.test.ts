// Whatever happens to the kubelet, its API server, the machine, its clock and our ledger: nothing of a pod that exists is removed as a deleted pod's.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { hours, minutes, seconds } from "../../src/model/time.ts";
import { KubeletNode } from "./kubelet-node.ts";

type Outcome = Promise<readonly string[]> | void;
type Step = (node: KubeletNode) => Outcome;

const at = fc.nat(5);
/** A step of a node's life, with the name by which a failing life shows it. */
const act = <Value>(
  name: string,
  values: fc.Arbitrary<Value>,
  does: (it: KubeletNode, value: Value) => Outcome,
) =>
  values.map((value): readonly [string, Step] => [
    `${name} ${String(value)}`,
    (it) => does(it, value),
  ]);
const once = fc.constant("");
const flag = fc.boolean();
const spans = fc.constantFrom(seconds(1), minutes(1), minutes(10), hours(30));
const step = fc.oneof(
  { weight: 3, arbitrary: act("add", flag, (it, isStatic) => it.add(isStatic)) },
  { weight: 3, arbitrary: act("start", at, (it, which) => it.start(which)) },
  act("complete", at, (it, which) => it.complete(which)),
  { weight: 2, arbitrary: act("delete", at, (it, which) => it.delete(which)) },
  act("api", flag, (it, up) => it.apiServer(up)),
  act("kubelet", flag, (it, up) => it.kubelet(up)),
  act("restart", once, (it) => (it.kubelet(false), it.kubelet(true))),
  act("restart alone", once, (it) => (it.apiServer(false), it.kubelet(false), it.kubelet(true))),
  act("reboot", once, (it) => it.reboot()),
  act("lose ledger", once, (it) => it.loseLedger()),
  act("wait", spans, (it, span) => it.wait(span)),
  act("turn", fc.constantFrom(hours(-100), hours(100)), (it, span) => it.turnClock(span)),
  { weight: 6, arbitrary: act("pass", once, (it) => it.pass()) },
  act("all-unused", once, (it) => it.pass("all-unused")),
);

describe("by kubelet-dir", () => {
  const life = fc.array(step, { maxLength: 40 });
  const run = async (node: KubeletNode, steps: readonly (readonly [string, Step])[]) => {
    for (const isStatic of [true, false, false]) node.add(isStatic);
    for (const pod of [0, 1]) node.start(pod);
    for (const [, does] of steps) expect((await does(node)) ?? []).toEqual([]);
  };

  test(
    "nothing of an existing pod is removed as a deleted pod's, nor an image in a spec that the kubelet listed",
    () =>
      fc.assert(
        fc.asyncProperty(life, (steps) => run(new KubeletNode(), steps)),
        { numRuns: 600 },
      ),
    60_000,
  );

  test(
    "everything that deleted pods left is removed once the kubelet has reached its API server and a pod is alive",
    () =>
      fc.assert(
        fc.asyncProperty(life, async (steps) => {
          const node = new KubeletNode();
          await run(node, steps);
          // What a wrong clock dated ahead counts as young until it is right.
          node.turnClock(hours(10_000));
          node.kubelet(true);
          node.apiServer(true);
          node.add(false);
          for (let pod = 0; pod < 40; pod += 1) node.start(pod);
          for (let pass = 0; pass < 12; pass += 1) {
            node.wait(minutes(1));
            await node.pass();
          }
          expect(node.hasLivingPod()).toBe(true);
          expect(node.leftovers()).toEqual([]);
        }),
        { numRuns: 100 },
      ),
    60_000,
  );
});
