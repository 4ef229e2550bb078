// One plan for the whole node: its halves, and what a part or a selection leaves of them.
import { describe, expect, test } from "bun:test";

import { podUid } from "../../src/model/ids.ts";
import type { ContainerPlan, Criterion, Purpose } from "../../src/model/plan.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { totalUptime } from "../../src/model/time.ts";
import type { Facts, Parts } from "../../src/policy/facts.ts";
import { defaultPolicy } from "../../src/policy/policy.ts";
import { ago, aPodRecord, dead, noLogs, reading, sandboxOf } from "../support/build/pods.ts";
import { anImage, aRecord } from "../support/build/values.ts";
import { inputOf } from "./judging.ts";

const { decide } = defaultPolicy;
const app = anImage("app");
/** Pod b is deleted: a container, a sandbox and logs of it are left. */
const left = {
  containers: [dead("b", "c", { imageId: app.id })],
  sandboxes: [sandboxOf("a"), sandboxOf("b", { state: "not-ready" })],
};
const snapshot: Partial<Snapshot> = {
  ...left,
  logs: {
    ...noLogs,
    podLogs: [{ entry: "shop_b_uid-b", uid: podUid("uid-b") }],
    danglingLinks: [{ entry: "x", podUid: podUid("x"), name: "c", attempt: 0 }],
  },
  pods: reading("kubelet-dir", "uid-a"),
};
const LONG_GONE = { absentSinceUptime: totalUptime(0n), deadSinceUptime: totalUptime(0n) };
const everything: Parts = { containers: "all", images: true };

function inputFor(parts: Partial<Parts>, purpose: Purpose = { kind: "all-unused" }): Facts {
  const pods = new Map([[podUid("uid-b"), aPodRecord(LONG_GONE)]]);
  const facts = inputOf({ images: [app], snapshot, ledger: { pods } });
  return { ...facts, purpose, parts: { ...everything, ...parts } };
}

/** How many containers, sandboxes and log directories go. */
const going = (plan: ContainerPlan | null): readonly number[] =>
  [plan?.containers, plan?.sandboxes, plan?.podLogs].map(
    (list) => (list ?? []).filter(({ decision }) => decision.kind === "remove").length,
  );

describe("a plan for", () => {
  test("images only counts a dead container as a user of its image", () => {
    const plan = decide(inputFor({ containers: "none" }));
    expect(plan.containers).toBeNull();
    expect(plan.images?.kept).toMatchObject([{ reason: { kind: "in-use" } }]);
  });

  test("containers only has no image plan", () => {
    const plan = decide(inputFor({ images: false }));
    expect(plan.images).toBeNull();
    expect(going(plan.containers)).toEqual([1, 1, 1]);
  });

  test("logs removes only log directories, and the container keeps its image", () => {
    const plan = decide(inputFor({ containers: "logs" }));
    expect(plan.containers).toMatchObject({ containers: [], sandboxes: [] });
    expect(going(plan.containers)).toEqual([0, 0, 1]);
    expect(plan.images?.kept).toMatchObject([{ reason: { kind: "in-use" } }]);
  });

  test.each<[string, Criterion, readonly number[]]>([
    ["a namespace", { kind: "namespace", name: "default" }, [1, 1, 0]],
    ["another one", { kind: "namespace", name: "shop" }, [0, 0, 1]],
    ["a name that only begins alike", { kind: "namespace", name: "sho" }, [0, 0, 0]],
    ["no namespace", { kind: "untagged" }, [0, 0, 0]],
  ])(
    "a selection of %s limits containers, sandboxes and logs, and has no links",
    (_, it, numbers) => {
      const { containers } = decide(inputFor({}, { kind: "all-unused", only: [it] }));
      expect(going(containers)).toEqual(numbers);
      expect(containers?.links).toEqual([]);
      // What goes is planned first.
      const [first, last] = containers?.sandboxes.map(({ decision }) => decision) ?? [];
      expect(last?.reason.kind).toBe("ready");
      if (numbers[1] === 0)
        expect(first).toEqual({
          kind: "keep",
          reason: { kind: "not-selected" },
          tried: expect.arrayContaining(["pod-gone", "not-selected"]),
        });
    },
  );
});

describe("what is removed before images", () => {
  const web = anImage("web");
  /** Of the living pod a, the newest of its name: it stays. */
  const kept = dead("a", "c", { imageId: web.id });
  const both = inputFor({});
  const node = { ...both.snapshot, images: [app, web], containers: [...left.containers, kept] };
  const ledger = {
    ...both.ledger,
    images: new Map([app, web].map(({ id }) => [id, aRecord()])),
  };

  test("is only what is planned: a kept container keeps its image", () => {
    const plan = decide({ ...both, snapshot: node, ledger });
    expect(going(plan.containers)).toEqual([1, 1, 1]);
    expect(plan.images?.candidates.map(({ image }) => image.id)).toEqual([app.id]);
    expect(plan.images?.kept).toMatchObject([{ image: web, reason: { kind: "in-use" } }]);
  });
});

test("a container removed between the list and its status does not count for its name", () => {
  const input = inputFor({});
  const older = dead("a", "c", { createdAt: ago(20) });
  const newer = dead("a", "c", { createdAt: ago(10) });
  const reasons = (gone: boolean) =>
    decide({
      ...input,
      snapshot: {
        ...input.snapshot,
        containers: [older, newer],
        imageVolumes: gone ? new Map([[newer.id, { kind: "gone" }]]) : new Map(),
      },
    }).containers?.containers.map(({ container, decision }) => [container, decision.reason.kind]);
  expect(reasons(false)).toEqual([
    [older, "over-per-container-limit"],
    [newer, "newest-of-name"],
  ]);
  expect(reasons(true)).toEqual([[older, "newest-of-name"]]);
});
