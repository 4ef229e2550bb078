import { describe, expect, test } from "bun:test";

import { type PodUid, podUid, sandboxId } from "../../../src/model/ids.ts";
import type { PodRecord } from "../../../src/model/ledger.ts";
import type { PodReading } from "../../../src/model/snapshot.ts";
import { hours, minutes, seconds, watched } from "../../../src/model/time.ts";
import {
  listedOwners,
  livingKubernetesPods,
  livingPods,
} from "../../../src/policy/container/ownership.ts";
import type { PodView } from "../../../src/policy/container/pod-source.ts";
import { judgePods, type PodJudgement, rememberPods } from "../../../src/policy/container/pods.ts";
import {
  aPodRecord,
  dead,
  memoryLimits,
  noLogs,
  passes,
  reading,
  sandboxOf,
  viewOf,
} from "../../support/build/pods.ts";
import { aContainer, NOW } from "../../support/build/values.ts";

const A = podUid("uid-a");
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

describe.each(["kubelet-dir", "kubelet-api"] as const)("by %s, a pod", (source) => {
  const present = viewOf(lists, reading(source, "uid-a", "uid-b"));
  const absent = viewOf(lists, reading(source, "uid-a"));

  test("that is absent in two passes in a row counts as deleted", () => {
    expect(after(absent, absent).shouldRemoveContent(B)).toBe("pod-gone");
    expect(after(absent, absent).hasEnded(B)).toBe(true);
  });

  test("that is absent for ten seconds counts as deleted, however many passes saw it so", () => {
    const gone = (count: number) => {
      const { records, last } = passes(Array<PodView>(count).fill(absent), seconds(2.5));
      return judgePods(records, last).shouldRemoveContent(B);
    };
    expect([2, 4, 5].map(gone)).toEqual([null, null, "pod-gone"]);
  });

  test("that is absent once does not count as deleted", () => {
    expect(after(present, absent).shouldRemoveContent(B)).toBeNull();
    expect(after(present, absent).mayBeDeleted(B)).toBe(true);
  });

  test("that comes back in between does not count as deleted", () => {
    expect(after(absent, present, absent).shouldRemoveContent(B)).toBeNull();
  });

  test("does not count as deleted if the source failed in between", () => {
    expect(after(absent, viewOf(lists, failed), absent).shouldRemoveContent(B)).toBeNull();
  });

  test("that is listed does not count as deleted", () => {
    expect(after(present, present, present).shouldRemoveContent(B)).toBeNull();
  });

  test("with a ready sandbox is alive, whatever the source lists", () => {
    const view = viewOf({ sandboxes: [living, sandboxOf("b")] }, reading(source, "uid-a"));
    expect(after(view, view, view).shouldRemoveContent(B)).toBeNull();
    expect(after(view, view, view).hasEnded(B)).toBe(false);
  });

  test("that was alive unlisted counts as deleted only two passes after it ends", () => {
    const view = viewOf({ sandboxes: [living, sandboxOf("b")] }, reading(source, "uid-a"));
    expect(after(view, view, absent).shouldRemoveContent(B)).toBeNull();
    expect(after(view, view, absent, absent).shouldRemoveContent(B)).toBe("pod-gone");
  });

  test("with a running container is alive, whatever the source lists", () => {
    const running = dead("b", "c", { state: "running" });
    const view = viewOf({ ...lists, containers: [running] }, reading(source, "uid-a"));
    expect(after(view, view, view).shouldRemoveContent(B)).toBeNull();
  });

  test("that starts after it was found deleted is alive, by lists fresher than the source", () => {
    const later = { ...absent, watched: watched(absent.watched + seconds(10)) };
    const records = rememberPods(rememberPods(new Map(), absent), later);
    expect(judgePods(records, later).shouldRemoveContent(B)).toBe("pod-gone");
    const fresh = { ...later, sandboxes: [living, sandboxOf("b")] };
    expect(judgePods(records, fresh).shouldRemoveContent(B)).toBeNull();
    // Too new to speak against the source, which goes on to be believed.
    const young = { ...later, sandboxes: [living, sandboxOf("b", { createdAt: NOW })] };
    const judgement = judgePods(records, young);
    expect(judgement.state.kind).toBe("ready");
    expect(judgement.shouldRemoveContent(B)).toBeNull();
    expect(judgement.hasEnded(B)).toBe(false);
    expect(judgement.mayBeDeleted(B)).toBe(false);
  });

  test("absent once may be deleted only if the source is ready and still does not list it", () => {
    const records = rememberPods(new Map(), absent);
    const maybe = (view: PodView) => judgePods(records, view).mayBeDeleted(B);
    expect([absent, present, viewOf(lists, failed)].map(maybe)).toEqual([true, false, false]);
  });

  test("that is dead but was listed until now may not be deleted yet", () => {
    const records = rememberPods(new Map(), present);
    expect(records.get(B)).toMatchObject({
      absentSinceWatched: null,
      deadSinceWatched: hours(100),
    });
    expect(judgePods(records, absent).mayBeDeleted(B)).toBe(false);
  });

  test("known only from its log directory counts as deleted when it is absent twice", () => {
    const logs = { ...noLogs, podLogs: [{ entry: "default_b_uid-b", uid: B }] };
    const view = viewOf({ sandboxes: [living], logs }, reading(source, "uid-a"));
    expect(after(view).shouldRemoveContent(B)).toBeNull();
    expect(after(view, view).shouldRemoveContent(B)).toBe("pod-gone");
  });
});

describe("by kubelet-api, a pod", () => {
  const listed = (change: object): PodReading => ({
    kind: "ready",
    source: "kubelet-api",
    pods: [
      { uid: A, origin: "api", finished: false, evicted: false, images: [] },
      { uid: B, origin: "api", finished: false, evicted: false, images: [], ...change },
    ],
  });

  test("that finished is terminated at once, and not deleted", () => {
    const judgement = after(viewOf(lists, listed({ finished: true })));
    expect(judgement.hasEnded(B)).toBe(true);
    expect(judgement.shouldRemoveContent(B)).toBeNull();
  });

  test("that finished is not terminated while a container of it is running", () => {
    const running = dead("b", "c", { state: "running" });
    const view = viewOf({ ...lists, containers: [running] }, listed({ finished: true }));
    expect(after(view).hasEnded(B)).toBe(false);
  });

  test("that was evicted loses its content although it is listed", () => {
    const judgement = after(viewOf(lists, listed({ finished: true, evicted: true })));
    expect(judgement.shouldRemoveContent(B)).toBe("pod-evicted");
  });
});

describe("a source is not ready", () => {
  const stateOf = (view: PodView) => judgePods(new Map(), view).state;

  test("when it failed, and says why", () => {
    expect(stateOf(viewOf(lists, failed))).toEqual({
      kind: "not-ready",
      source: "kubelet-dir",
      why: "the disk is on fire",
    });
  });

  test.each([
    ["empty", []],
    ["another node's", ["uid-x", "uid-y"]],
  ])("when its directory is %s while pods are alive, and no pod counts as deleted", (_, uids) => {
    const view = viewOf(lists, reading("kubelet-dir", ...uids));
    const judgement = after(view, view, view);
    expect(judgement.state).toMatchObject({ kind: "not-ready" });
    expect(judgement.shouldRemoveContent(B)).toBeNull();
    expect(judgement.hasEnded(B)).toBe(false);
  });

  test("when no pod is alive, and it lists none of the pods that left something", () => {
    expect(stateOf(viewOf({ sandboxes: [stopped] }, reading("kubelet-dir"))).kind).toBe(
      "not-ready",
    );
    expect(stateOf(viewOf({ sandboxes: [stopped] }, reading("kubelet-dir", "uid-x"))).kind).toBe(
      "not-ready",
    );
  });

  test("no longer when it lists one of them", () => {
    const stoppedOnly = { sandboxes: [stopped, sandboxOf("a", { state: "not-ready" })] };
    expect(stateOf(viewOf(stoppedOnly, reading("kubelet-dir", "uid-a"))).kind).toBe("ready");
  });

  test("except on a node without any trace of pods", () => {
    expect(stateOf(viewOf({}, reading("kubelet-dir"))).kind).toBe("ready");
  });

  test("whatever foreign pods exist", () => {
    const foreign = sandboxOf("f", { podUid: podUid("") });
    expect(stateOf(viewOf({ sandboxes: [foreign] }, reading("kubelet-dir"))).kind).toBe("ready");
  });
});

test("without a source no pod ever counts as deleted", () => {
  const view = viewOf(lists, { kind: "none", why: "a test" });
  const judgement = after(view, view, view, { ...view, watched: watched(hours(10_000)) });
  expect(judgement.state).toEqual({ kind: "none", why: "a test" });
  expect(judgement.shouldRemoveContent(B)).toBeNull();
  expect(judgement.hasEnded(B)).toBe(false);
});

describe("by the runtime alone, a pod", () => {
  const at = (span: bigint, change: Partial<PodView> = {}): PodView => ({
    ...viewOf(lists, reading("cri"), { watched: watched(hours(100) + span) }),
    ...change,
  });

  test("that is dead in two passes is terminated, and in one it is not", () => {
    expect(after(at(0n)).hasEnded(B)).toBe(false);
    expect(after(at(0n), at(minutes(1))).hasEnded(B)).toBe(true);
    expect(after(at(0n), at(minutes(1))).shouldRemoveContent(B)).toBeNull();
  });

  test("counts as deleted when observed dead for --dead-pod-ttl, and not a minute earlier", () => {
    expect(after(at(0n), at(hours(24) - minutes(1))).shouldRemoveContent(B)).toBeNull();
    expect(after(at(0n), at(hours(24))).shouldRemoveContent(B)).toBe("pod-gone");
  });

  test("counts from zero when it was alive in between", () => {
    const alive = { sandboxes: [living, sandboxOf("b")] };
    const judgement = after(at(0n), at(hours(12), alive), at(hours(25)), at(hours(26)));
    expect(judgement.shouldRemoveContent(B)).toBeNull();
  });

  test("does not count as deleted by the runtime's timestamps", () => {
    const ancient = {
      sandboxes: [living, { ...stopped, createdAt: stopped.createdAt - hours(100_000) }],
    };
    const view = at(0n, ancient as Partial<PodView>);
    expect(
      after(view, { ...view, watched: watched(hours(100) + minutes(1)) }).shouldRemoveContent(B),
    ).toBeNull();
  });

  test("does not count as deleted after a weekend without power, which is not observed time", () => {
    // The watched clock counts such a gap for twice the detection period at most.
    expect(after(at(0n), at(minutes(10)), at(minutes(11))).shouldRemoveContent(B)).toBeNull();
  });

  test("known only from its log directory counts as deleted after the same time", () => {
    const logs = { ...noLogs, podLogs: [{ entry: "default_b_uid-b", uid: B }] };
    const only = { sandboxes: [living], logs };
    expect(after(at(0n, only), at(hours(24) - 1n, only)).shouldRemoveContent(B)).toBeNull();
    expect(after(at(0n, only), at(hours(24), only)).shouldRemoveContent(B)).toBe("pod-gone");
  });

  test("does not count as deleted in the pass that first sees it, even with a TTL of 0", () => {
    const view = at(0n, { limits: { ...memoryLimits, deadPodTtl: minutes(0) } });
    expect(after(view).shouldRemoveContent(B)).toBeNull();
    expect(after(view, view).shouldRemoveContent(B)).toBe("pod-gone");
  });
});

describe("the live pod is the one", () => {
  const none = podUid("");
  const own = podUid("sandbox:s");
  const [X, M] = [podUid("uid-x"), podUid("uid-m")];
  const ready = (label: PodUid, metadataUid: PodUid) =>
    sandboxOf("s", { id: sandboxId("s"), podUid: label, metadataUid });
  const running = (label: PodUid) =>
    dead("s", "c", { sandboxId: sandboxId("s"), podUid: label, state: "running" });
  const rows: readonly [string, Parameters<typeof livingPods>, readonly PodUid[]][] = [
    ["of its label", [{ sandboxes: [ready(B, none)], containers: [] }, "none"], [B]],
    ["of its metadata", [{ sandboxes: [ready(none, M)], containers: [] }, "none"], [M]],
    ["of both", [{ sandboxes: [ready(B, M)], containers: [] }, "none"], [B, M]],
    ["of both for the kubelet", [{ sandboxes: [ready(B, M)], containers: [] }, "kubelet"], [M, B]],
    ["that its ID names", [{ sandboxes: [ready(none, none)], containers: [] }, "none"], [own]],
    [
      "that the ID of a container's sandbox names",
      [{ sandboxes: [], containers: [running(none)] }, "none"],
      [own],
    ],
    [
      "of a container's label and of its sandbox",
      [
        { sandboxes: [{ ...ready(B, none), state: "not-ready" }], containers: [running(X)] },
        "none",
      ],
      [B, X],
    ],
  ];
  test.each(rows)("%s", (_, [listed, compat], uids) => {
    expect(livingPods(listed, compat)).toEqual(new Set(uids));
  });

  test("that Kubernetes labelled, and for no other", () => {
    const listed = {
      sandboxes: [ready(none, M), ready(B, M)],
      containers: [running(X), running(none)],
    };
    expect(livingKubernetesPods(listed)).toEqual(new Set([B, X]));
  });
});

test("owners are those of sandboxes and of containers whose sandbox is not listed, foreign ones last", () => {
  const unlisted = { sandboxId: sandboxId("?") };
  const listed = {
    sandboxes: [sandboxOf("a", { podUid: podUid("") }), sandboxOf("b")],
    containers: [aContainer("c", { ...unlisted, podUid: podUid("uid-c") })],
  };
  expect(listedOwners(listed, "none").map(({ uid, foreign }) => [String(uid), foreign])).toEqual([
    ["uid-b", false],
    ["uid-c", false],
    ["uid-a", true],
  ]);
});

describe.each(["kubelet-dir", "kubelet-api", "cri"] as const)(
  "by %s, a pod that came after the last recorded pass",
  (source) => {
    test("is neither deleted nor terminated, nor may it be deleted", () => {
      const judgement = judgePods(new Map(), viewOf(lists, reading(source, "uid-a")));
      expect(judgement.state.kind).toBe("ready");
      expect({
        content: judgement.shouldRemoveContent(B),
        ended: judgement.hasEnded(B),
        foreign: judgement.foreignDead(B),
        maybe: judgement.mayBeDeleted(B),
      }).toEqual({ content: null, ended: false, foreign: false, maybe: false });
    });
  },
);

test("by the runtime alone, a dead pod may be deleted, and a live one may not", () => {
  const judgement = after(viewOf(lists, reading("cri")));
  expect([A, B].map((uid) => judgement.mayBeDeleted(uid))).toEqual([false, true]);
});

describe("the ledger", () => {
  test("has a record for each pod of the runtime or the log directory, and no other", () => {
    const logs = { ...noLogs, podLogs: [{ entry: "default_c_uid-c", uid: podUid("uid-c") }] };
    const previous = new Map([
      [podUid("uid-old"), aPodRecord({ absentSinceWatched: watched(1n) })],
    ]);
    const next = rememberPods(
      previous,
      viewOf({ ...lists, logs }, reading("kubelet-dir", "uid-a", "uid-z")),
    );
    expect([...next.keys()].map(String).toSorted()).toEqual(["uid-a", "uid-b", "uid-c"]);
  });

  test("starts again for a pod known only from the log directory, if that could not be read in between", () => {
    const logs = { ...noLogs, podLogs: [{ entry: "default_c_uid-c", uid: podUid("uid-c") }] };
    const source = reading("kubelet-dir", "uid-a");
    const read = viewOf({ sandboxes: [living], logs }, source);
    const unread = viewOf({ sandboxes: [living], logs: { kind: "failed", message: "no" } }, source);
    expect(after(read, unread, read).shouldRemoveContent(podUid("uid-c"))).toBeNull();
    expect(after(read, unread, read, read).shouldRemoveContent(podUid("uid-c"))).toBe("pod-gone");
  });

  const pending = new Map([[podUid("uid-p"), aPodRecord({ origin: "pending" })]]);
  const api = (...uids: readonly string[]) => reading("kubelet-api", "uid-a", ...uids);
  const keys = (records: ReadonlyMap<PodUid, PodRecord>) => [...records.keys()].map(String);

  test("of a pod that never ran is so only while the kubelet's own list is read", () => {
    const only = { sandboxes: [living] };
    expect(keys(rememberPods(pending, viewOf(only, api())))).toEqual(["uid-a", "uid-p"]);
    for (const pods of [reading("kubelet-dir", "uid-a"), { kind: "none", why: "a test" } as const])
      expect(keys(rememberPods(pending, viewOf(only, pods)))).toEqual(["uid-a"]);
  });

  test("of a pod that only a list of static pods names, or that was not about to run, is nothing", () => {
    const seen = { finished: false, evicted: false, images: [] } as const;
    const pods: PodReading = {
      kind: "ready",
      source: "kubelet-api",
      pods: [
        { ...seen, uid: A, origin: "api" },
        { ...seen, uid: podUid("uid-s"), origin: "static" },
      ],
    };
    const previous = new Map([[podUid("uid-old"), aPodRecord({})]]);
    expect(keys(rememberPods(previous, viewOf({ sandboxes: [living] }, pods)))).toEqual(["uid-a"]);
  });

  test("of a pod that was about to run says that it ran as soon as something of it is here", () => {
    const uid = podUid("uid-p");
    const here = { sandboxes: [living, sandboxOf("p", { state: "not-ready" })] };
    expect(rememberPods(pending, viewOf(here, api())).get(uid)?.origin).toBe("api");
    expect(rememberPods(pending, viewOf({ sandboxes: [living] }, api())).get(uid)?.origin).toBe(
      "pending",
    );
  });

  test("counts no absence by the runtime alone, which does not know of absence", () => {
    const records = rememberPods(new Map(), viewOf(lists, reading("cri")));
    expect(records.get(B)).toMatchObject({
      absentSinceWatched: null,
      deadSinceWatched: hours(100),
    });
  });

  test("does not grow with each pass", () => {
    const view = viewOf(lists, reading("kubelet-dir", "uid-a"));
    let records = rememberPods(new Map(), view);
    for (let pass = 0; pass < 10; pass += 1) records = rememberPods(records, view);
    expect(records).toEqual(rememberPods(new Map(), view));
  });
});

describe("a foreign sandbox", () => {
  const foreign = sandboxOf("f", {
    podUid: podUid(""),
    metadataUid: podUid("uid-f"),
    state: "not-ready",
  });
  const F = podUid("uid-f");

  test("counts as dead when it was dead in two passes, whatever the source", () => {
    const view = viewOf({ sandboxes: [living, foreign] }, reading("kubelet-dir", "uid-a"));
    expect(after(view).foreignDead(F)).toBe(false);
    expect(after(view, view).foreignDead(F)).toBe(true);
  });

  test("is alive while a container of it is running, whatever its labels", () => {
    const running = aContainer("c", { sandboxId: foreign.id, podUid: podUid("") });
    const view = viewOf({ sandboxes: [living, foreign], containers: [running] }, reading("cri"));
    expect(after(view, view).foreignDead(F)).toBe(false);
  });
});

test.each([
  ["since when it is dead", B, { deadSinceWatched: null }],
  ["who named it", A, { origin: null }],
  ["since when it is absent", B, { absentSinceWatched: null }],
] as const)("a record of a pod in which only %s is wrong is written anew", (_, uid, wrong) => {
  const view = viewOf(lists, reading("kubelet-api", "uid-a"));
  let records: ReadonlyMap<PodUid, PodRecord> = new Map();
  for (let pass = 0; pass < 3; pass += 1) records = rememberPods(records, view);
  const record = records.get(uid);
  if (record === undefined) throw new Error("no record");
  expect(record).not.toMatchObject(wrong);
  const before = new Map([...records, [uid, { ...record, ...wrong }]]);
  expect(rememberPods(before, view).get(uid)).not.toEqual(before.get(uid));
});
