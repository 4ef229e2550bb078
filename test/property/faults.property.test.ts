// Whatever fails, hangs or lies in the middle of a pass: what should stay is never passed to a removal.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { runPass } from "../../src/gc/pass.ts";
import type { PassKind } from "../../src/model/pass.ts";
import type { ImageTarget, Purpose } from "../../src/model/plan.ts";
import { GIB, spaceTarget } from "../support/build/values.ts";
import { passRequest } from "../support/fake-engine.ts";
import { faultyNode, live, type Lived } from "./faulty-node.ts";

const target: ImageTarget = {
  ...spaceTarget(15n * GIB, 10n * GIB),
  trigger: { kind: "pressure", signal: "imagefs.available" },
};

const PASSES: readonly { readonly kind: PassKind; readonly purpose: Purpose }[] = [
  { kind: "gc", purpose: { kind: "periodic" } },
  { kind: "gc", purpose: { kind: "all-unused" } },
  { kind: "pressure", purpose: { kind: "pressure", signals: ["imagefs.available"] } },
];

const pass = (lived: Lived, request: (typeof PASSES)[number]) =>
  runPass(
    lived.engine,
    passRequest(lived, {
      ...request,
      ...(request.kind === "pressure" ? { retarget: async () => [target] } : {}),
    }),
    lived.signal,
  );

test("images in use, pinned, kept, too young or of unknown use, and live containers, are kept under faults, and every requested removal is recorded", async () => {
  let images = 0;
  let containers = 0;
  let logs = 0;
  let failed = 0;
  await fc.assert(
    fc.asyncProperty(faultyNode, fc.constantFrom(...PASSES), async (node, request) => {
      const lived = live(node, request.kind === "pressure");
      const { pass: ended } = await pass(lived, request);
      expect(lived.violations).toEqual([]);
      const asked = lived.writes.filter((write) => write.startsWith("RemoveImage"));
      const items = (ended.images?.items ?? []).filter(({ result }) => result.kind !== "skipped");
      expect(items.map(({ candidate }) => `RemoveImage ${candidate.image.id}`)).toEqual(asked);
      const requested = lived.writes.filter((write) => write.startsWith("RemoveContainer"));
      // One that somebody else removes is recorded as that.
      const results = (ended.containers?.containers ?? []).map(({ planned, result }) => ({
        call: `RemoveContainer ${planned.container.id}`,
        isOurs: result.kind === "removed" || (result.kind === "failed" && result.step === "remove"),
      }));
      const recorded = results.map(({ call }) => call);
      expect(requested.filter((call) => !recorded.includes(call))).toEqual([]);
      const ours = results.filter(({ isOurs }) => isOurs).map(({ call }) => call);
      expect(ours.filter((call) => !requested.includes(call))).toEqual([]);
      images += asked.length;
      logs += lived.writes.filter((write) => write.startsWith("RemovePodLogs")).length;
      containers += requested.length;
      if (ended.error !== null || ended.images?.error != null) failed += 1;
    }),
    { numRuns: 4_000 },
  );
  // Else the property would hold of a pass that removes nothing, or of faults that do nothing.
  expect(images).toBeGreaterThan(800);
  expect(containers).toBeGreaterThan(300);
  expect(logs).toBeGreaterThan(50);
  expect(failed).toBeGreaterThan(200);
}, 110_000);
