import { describe, expect, test } from "bun:test";

import { sandboxId } from "../../../src/model/ids.ts";
import type { Container, Sandbox } from "../../../src/model/snapshot.ts";
import { decideContainersAgain } from "../../../src/policy/container/containers.ts";
import {
  ago,
  dead,
  goingSandboxes,
  inputOf,
  judged,
  planOf,
  sandboxOf,
} from "../../support/build/pods.ts";
import { containerLimits } from "../../support/build/values.ts";

/** A stopped sandbox of pod a. */
const stopped = (name: string, change: Partial<Sandbox> = {}): Sandbox => ({
  ...sandboxOf("a", { state: "not-ready", ...change }),
  id: sandboxId(name),
});
const old = stopped("old", { createdAt: ago(20) });
const newer = stopped("newer", { createdAt: ago(10) });
const exitedIn = (sandbox: Sandbox) => dead("a", "c", { sandboxId: sandbox.id });
const gone = judged({ gone: ["uid-a"] });
const reasonsOf = (sandboxes: readonly Sandbox[], change = {}): readonly string[] =>
  planOf({ sandboxes }, change).sandboxes.map((each) => each.decision.reason.kind);

describe("of a live pod", () => {
  test("an older sandbox that is ready is kept", () => {
    const ready = { ...old, state: "ready" } as const;
    expect(goingSandboxes(planOf({ sandboxes: [newer, ready] }))).toEqual([]);
  });

  test.each(["none", "kubelet"] as const)(
    "with compat %s, an older sandbox with a container is kept, unless the pass removes that container",
    (compat) => {
      const containers = [exitedIn(old)];
      const going = (perContainer: number, ...more: readonly Container[]) =>
        goingSandboxes(
          planOf(
            { sandboxes: [newer, old], containers: [...containers, ...more] },
            { limits: { ...containerLimits, compat, maximumPerPodContainer: perContainer } },
          ),
        );
      expect(going(1)).toEqual([]);
      const running = dead("a", "c", { sandboxId: newer.id, state: "running" });
      expect(going(0, running)).toEqual(["old"]);
    },
  );

  test("the newest sandbox of the same instant is chosen by attempt", () => {
    const first = stopped("b-first", { attempt: 0 });
    const second = stopped("a-second", { attempt: 1 });
    expect(goingSandboxes(planOf({ sandboxes: [second, first] }))).toEqual(["b-first"]);
  });
});

describe("of a deleted pod", () => {
  test("a sandbox whose container could not be removed is kept", () => {
    const container = exitedIn(old);
    const input = inputOf({ sandboxes: [old], containers: [container] }, { pods: gone });
    expect(goingSandboxes(planOf(input.snapshot, input))).toEqual(["old"]);
    const again = decideContainersAgain(input, {
      sandboxes: [old],
      containers: [container],
      pods: gone,
    });
    expect(again.sandboxes[0]?.decision.reason).toEqual({
      kind: "has-containers",
      containers: [container.id],
    });
  });
});

test("reclaim removes sandboxes of terminated pods, including the newest", () => {
  const pods = judged({ terminated: ["uid-a"] });
  expect(reasonsOf([newer], { pods, purpose: "pressure" })).toEqual(["pod-terminated"]);
  expect(reasonsOf([newer], { pods, purpose: "periodic" })).toEqual(["newest-of-pod"]);
});
