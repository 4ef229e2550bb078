import { describe, expect, test } from "bun:test";

import { type PodUid, podUid, sandboxId } from "../../../src/model/ids.ts";
import type { Container, PodReading, Sandbox } from "../../../src/model/snapshot.ts";
import { hours, instant, minutes, totalUptime } from "../../../src/model/time.ts";
import {
  judgePods,
  listedOwners,
  livingPods,
  type PodJudgement,
  type PodView,
  rememberPods,
} from "../../../src/policy/container/pods.ts";
import { dead, passes, reading, sandboxOf, viewOf } from "../../support/build/pods.ts";

const B = podUid("uid-b");
const living = sandboxOf("a");
const stopped = sandboxOf("b", { state: "not-ready" });
/** Pod a lives, pod b left a stopped sandbox. */
const lists = { sandboxes: [living, stopped] };
const failed: PodReading = {
  kind: "failed",
  source: "kubelet-dir",
  message: "the disk is on fire",
};

/** The judgement of the last of these passes. */
function after(...views: readonly PodView[]): PodJudgement {
  const { records, last } = passes(views);
  return judgePods(records, last);
}

describe("by kubelet-dir, a pod", () => {
  const source = "kubelet-dir";
  const present = viewOf(lists, reading(source, "uid-a", "uid-b"));
  const absent = viewOf(lists, reading(source, "uid-a"));
  const broken = viewOf(lists, failed);
  const ready = viewOf({ sandboxes: [living, sandboxOf("b")] }, reading(source, "uid-a"));
  const containers = [dead("b", "c", { state: "running" })];
  const running = viewOf({ ...lists, containers }, reading(source, "uid-a"));

  test.each([
    ["that is absent in two passes in a row counts as deleted", [absent, absent], true],
    ["that is absent once does not", [present, absent], false],
    ["that comes back in between does not", [absent, present, absent], false],
    ["does not if the source failed in between", [absent, broken, absent], false],
    ["with a ready sandbox is alive, whatever the source lists", [ready, ready, ready], false],
    ["with a running container is alive", [running, running, running], false],
  ] as const)("%s", (_, views, deleted) => {
    const judgement = after(...views);
    expect(judgement.isDeleted(B)).toBe(deleted);
    expect(judgement.hasEnded(B)).toBe(deleted);
  });

  test("absent once may be deleted only if the source is ready and still does not list it", () => {
    const records = rememberPods(new Map(), absent);
    const maybe = (view: PodView) => judgePods(records, view).mayBeDeleted(B);
    expect([absent, present, broken].map(maybe)).toEqual([true, false, false]);
  });
});

describe("a source", () => {
  const stateOf = (...[node, pods]: Parameters<typeof viewOf>) =>
    judgePods(new Map(), viewOf(node, pods)).state;

  test("that failed is not ready, and says why", () => {
    const why = "the disk is on fire";
    expect(stateOf(lists, failed)).toEqual({ kind: "not-ready", source: "kubelet-dir", why });
  });

  test("that knows none of the living pods is not ready, and one that knows some is", () => {
    expect(stateOf(lists, reading("kubelet-dir", "uid-b"))).toEqual({
      kind: "not-ready",
      source: "kubelet-dir",
      why: "it lists none of the pods that are alive on this node (1)",
    });
    const sandboxes = [living, sandboxOf("c")];
    expect(stateOf({ sandboxes }, reading("kubelet-dir", "uid-c")).kind).toBe("ready");
    expect(stateOf(lists, reading("kubelet-dir", "uid-a", "uid-b")).kind).toBe("ready");
    const containers = [dead("b", "c", { state: "running" })];
    expect(stateOf({ containers }, reading("kubelet-dir", "uid-x")).kind).toBe("not-ready");
    const ended = [dead("b", "c")];
    expect(stateOf({ containers: ended }, reading("kubelet-dir", "uid-x")).kind).toBe("ready");
  });

  test("is ready without a living pod, and whatever foreign pods exist", () => {
    const sandboxes = [stopped, sandboxOf("a", { state: "not-ready" })];
    expect(stateOf({ sandboxes }, reading("kubelet-dir")).kind).toBe("ready");
    const foreign = { sandboxes: [sandboxOf("f", { podUid: podUid("") })] };
    expect(stateOf(foreign, reading("kubelet-dir")).kind).toBe("ready");
  });
});

test("without a source no pod ever counts as deleted", () => {
  const view = viewOf(lists, { kind: "none", why: "a test" });
  const judgement = after(view, view, view, { ...view, totalUptime: totalUptime(hours(10_000)) });
  expect(judgement.state).toEqual({ kind: "none", why: "a test" });
  expect([judgement.isDeleted(B), judgement.hasEnded(B)]).toEqual([false, false]);
});

describe("by the runtime alone, a pod", () => {
  const ancient = { ...stopped, createdAt: instant(stopped.createdAt - hours(100_000)) };
  const at = (span: bigint, sandbox = stopped): PodView =>
    viewOf({ sandboxes: [living, sandbox] }, reading("cri"), {
      totalUptime: totalUptime(hours(100) + span),
    });

  test.each([
    ["observed dead for --dead-pod-ttl counts as deleted", at(0n), at(hours(24)), true],
    ["does not a minute earlier", at(0n), at(hours(24) - minutes(1)), false],
    ["does not by its timestamps", at(0n, ancient), at(minutes(1), ancient), false],
  ] as const)("%s", (_, first, second, deleted) => {
    const judgement = after(first, second);
    expect(judgement.isDeleted(B)).toBe(deleted);
    // Dead in two passes, so reclaim under pressure may take its containers.
    expect([judgement.hasEnded(B), judgement.mayBeDeleted(B)]).toEqual([true, true]);
  });
});

test("a pod to which something else added a container is listed as its own and as foreign", () => {
  const containers = [dead("b", "c"), dead("b", "added", { podUid: podUid("uid-x") })];
  expect(listedOwners({ sandboxes: [stopped], containers })).toEqual([
    { uid: B, foreign: false },
    { uid: B, foreign: true },
  ]);
});

describe("the live pod is the one", () => {
  const none = podUid("");
  const own = podUid("sandbox:s");
  const [X, M] = [podUid("uid-x"), podUid("uid-m")];
  const ready = (label: PodUid, metadataUid: PodUid) =>
    sandboxOf("s", { id: sandboxId("s"), podUid: label, metadataUid });
  const running = (label: PodUid) =>
    dead("s", "c", { sandboxId: sandboxId("s"), podUid: label, state: "running" });
  const onlyLabelled = { ...ready(B, none), state: "not-ready" } as const;
  test.each<[string, readonly Sandbox[], readonly Container[], readonly PodUid[]]>([
    ["of its label", [ready(B, none)], [], [B, none]],
    ["of its metadata", [ready(none, M)], [], [M]],
    ["of both", [ready(B, M)], [], [B, M]],
    ["that its ID names", [ready(none, none)], [], [own, none]],
    ["that the ID of a container's sandbox names", [], [running(none)], [own, none]],
    ["of a container's label and of its sandbox", [onlyLabelled], [running(X)], [B, none, X]],
  ])("%s", (_, sandboxes, containers, uids) => {
    expect(livingPods({ sandboxes, containers })).toEqual(new Set(uids));
  });
});

describe.each(["kubelet-dir", "cri"] as const)(
  "by %s, a pod that came after the last recorded pass",
  (source) => {
    test("is neither deleted nor terminated, nor may it be deleted", () => {
      const judgement = judgePods(new Map(), viewOf(lists, reading(source, "uid-a")));
      expect(judgement.state.kind).toBe("ready");
      expect({
        content: judgement.isDeleted(B),
        ended: judgement.hasEnded(B),
        foreign: judgement.foreignDead(B),
        maybe: judgement.mayBeDeleted(B),
      }).toEqual({ content: false, ended: false, foreign: false, maybe: false });
    });
  },
);

describe("the ledger", () => {
  test("counts no absence by the runtime alone, which does not know of absence", () => {
    const records = rememberPods(new Map(), viewOf(lists, reading("cri")));
    expect(records.get(B)).toMatchObject({
      absentSinceUptime: null,
      deadSinceUptime: hours(100),
    });
  });
});
