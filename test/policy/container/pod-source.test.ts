import { describe, expect, test } from "bun:test";

import { type PodUid, podUid } from "../../../src/model/ids.ts";
import type { PodRecord } from "../../../src/model/ledger.ts";
import type { PodReading, PodRecordSeen } from "../../../src/model/snapshot.ts";
import { hours, instant, minutes, seconds, watched } from "../../../src/model/time.ts";
import { podSourceForImages, type PodView } from "../../../src/policy/container/pod-source.ts";
import { judgePods, rememberPods } from "../../../src/policy/container/pods.ts";
import {
  aPodRecord,
  dead,
  logsOf,
  passes,
  reading,
  sandboxOf,
  viewOf,
} from "../../support/build/pods.ts";
import { NOW } from "../../support/build/values.ts";

const HASH = "0123456789abcdef0123456789abcdef";

/** One pod as a reading of `kubelet-api` has it. */
const seen = (uid: string, origin: PodRecordSeen["origin"]): PodRecordSeen => ({
  uid: podUid(uid),
  origin,
  finished: false,
  evicted: false,
  images: [],
});
const list = (...pods: readonly PodRecordSeen[]): PodReading => ({
  kind: "ready",
  source: "kubelet-api",
  pods,
});

const staticPod = sandboxOf("s", { podUid: podUid(HASH), metadataUid: podUid(HASH) });
const completed = sandboxOf("c", { state: "not-ready" });
const stateOf = (view: PodView, records: ReadonlyMap<PodUid, PodRecord> = new Map()) =>
  judgePods(records, view).state;

/** Passes one after the other, each remembered. */
function after(...views: readonly PodView[]) {
  const { records, last } = passes(views);
  return { records, last, judgement: judgePods(records, last) };
}

describe("a kubelet that restarted while its API server was down", () => {
  const heard = list(seen(HASH, "static"), seen("uid-c", "api"));
  const unheard = list(seen(HASH, "static"), seen("uid-c", "directory"));
  const node = { sandboxes: [staticPod, completed], containers: [dead("c", "job")] };

  test("is not ready even if the ledger was lost", () => {
    expect(stateOf(viewOf(node, unheard)).kind).toBe("not-ready");
  });

  test.each([
    [["e", "d", "c", "b", "a"], "5 of the 6", "uid-a, uid-b, uid-c and 2 more"],
    [["c", "b", "a"], "3 of the 4", "uid-a, uid-b, uid-c"],
    [["b"], "1 of the 2", "uid-b"],
  ])(
    "names up to three of the live pods %p that its list lacks, and counts the others",
    (pods, many, names) => {
      const living = { sandboxes: [...pods, "x"].map((name) => sandboxOf(name)) };
      const lacking = list(seen("uid-x", "api"), seen("uid-b", "directory"));
      expect(stateOf(viewOf(living, lacking))).toMatchObject({
        kind: "not-ready",
        why: `it lacks ${many} pods that are alive on this node (${names})`,
      });
    },
  );

  test("is ready once it has reached the API server, and a pod deleted meanwhile counts as deleted two passes later", () => {
    const again = viewOf(
      { ...node, sandboxes: [...node.sandboxes, sandboxOf("n")] },
      list(seen(HASH, "static"), seen("uid-n", "api")),
    );
    const views = [viewOf(node, heard), viewOf(node, unheard), again];
    expect(after(...views).judgement.shouldRemoveContent(podUid("uid-c"))).toBeNull();
    expect(after(...views, again).judgement.shouldRemoveContent(podUid("uid-c"))).toBe("pod-gone");
  });
});

describe("a new pod", () => {
  const at = (age: bigint) => sandboxOf("b", { createdAt: instant(NOW - age) });
  const source = reading("kubelet-api", "uid-a");
  const withNew = (age: bigint) => viewOf({ sandboxes: [sandboxOf("a"), at(age)] }, source);
  const running = (age: bigint) => {
    const createdAt = instant(NOW - age);
    const containers = [dead("b", "c", { state: "running", createdAt })];
    return viewOf({ sandboxes: [sandboxOf("a")], containers }, source);
  };

  test("may be newer than the kubelet's answer for a minute, and no longer", () => {
    for (const view of [withNew, running]) {
      expect(stateOf(view(seconds(59))).kind).toBe("ready");
      expect(stateOf(view(seconds(60))).kind).toBe("not-ready");
    }
  });

  test("does not excuse a source that lists none of the live pods", () => {
    expect(stateOf(viewOf({ sandboxes: [at(seconds(1))] }, source))).toMatchObject({
      kind: "not-ready",
      why: expect.stringContaining("lists none of the pods that are alive on this node (1)"),
    });
  });

  test("from the far future does not count as new", () => {
    const states = [seconds(-59), minutes(-1), hours(-1)].map((age) => stateOf(withNew(age)).kind);
    expect(states).toEqual(["ready", "not-ready", "not-ready"]);
  });
});

describe("a node whose last pod of the API server was deleted", () => {
  const node = { sandboxes: [staticPod, completed] };
  const before = viewOf(node, list(seen(HASH, "static"), seen("uid-c", "api")));
  const alone = list(seen(HASH, "static"));
  const cleared = viewOf({ sandboxes: [staticPod] }, alone);
  const at = (view: PodView, span: bigint): PodView => ({
    ...view,
    watched: watched(view.watched + span),
  });

  const pending = viewOf(
    { sandboxes: [staticPod] },
    list(seen(HASH, "static"), seen("uid-p", "api")),
  );

  test("has a ready source a day after a pod that never ran disappeared from the list", () => {
    const views = [pending, at(cleared, minutes(1))];
    expect(after(...views, at(cleared, hours(24))).judgement.state.kind).toBe("not-ready");
    const { records, judgement } = after(...views, at(cleared, hours(24) + minutes(1)));
    expect(judgement.state.kind).toBe("ready");
    expect(records.has(podUid("uid-p"))).toBe(false);
    expect(rememberPods(records, at(cleared, hours(25))).has(podUid("uid-p"))).toBe(false);
  });

  test("does not count the time in which the kubelet did not answer", () => {
    const silent = viewOf(
      { sandboxes: [staticPod] },
      { kind: "failed", source: "kubelet-api", message: "connection refused" },
    );
    const views = [pending, silent, at(silent, hours(30)), at(cleared, hours(31))];
    expect(after(...views).judgement.state.kind).toBe("not-ready");
    expect(after(...views, at(cleared, hours(55))).judgement.state.kind).toBe("ready");
  });

  test("allows image removal after a day although nothing runs yet and a sandbox cannot be removed", () => {
    const waiting = viewOf({ sandboxes: [completed] }, list(seen("uid-p", "api")));
    const forImages = (...views: readonly PodView[]) => {
      const { records, last } = after(...views);
      return podSourceForImages(last, records)?.kind;
    };
    expect(forImages(waiting, at(waiting, hours(24) - 1n))).toBe("not-ready");
    expect(forImages(waiting, at(waiting, hours(24)))).toBe("ready");
    expect(after(waiting, at(waiting, hours(24))).judgement.state.kind).toBe("not-ready");
    const unlisted = viewOf(
      { sandboxes: [completed] },
      list(seen("uid-p", "api"), seen("uid-c", "directory")),
    );
    expect(forImages(unlisted, at(unlisted, hours(48)))).toBe("not-ready");
  });

  test("is not blocked by logs that a deleted pod left", () => {
    const view = viewOf({ sandboxes: [staticPod], logs: logsOf("c") }, alone);
    expect(after(before, view, view).judgement.shouldRemoveContent(podUid("uid-c"))).toBe(
      "pod-gone",
    );
  });
});

describe("a static pod", () => {
  test("with a UID in its manifest is recorded as static", () => {
    const own = sandboxOf("own", { state: "not-ready" });
    const other = sandboxOf("o", { podUid: podUid(HASH) });
    const view = viewOf({ sandboxes: [own, other] }, list(seen(HASH, "static")));
    expect(stateOf(view).kind).toBe("not-ready");
    const records = new Map([[podUid("uid-own"), aPodRecord({ origin: "static" })]]);
    expect(stateOf(view, records).kind).toBe("ready");
    const listed = viewOf(
      { sandboxes: [own, other] },
      list(seen(HASH, "static"), seen("uid-own", "static")),
    );
    expect(stateOf(listed).kind).toBe("ready");
    expect(rememberPods(new Map(), listed).get(podUid("uid-own"))?.origin).toBe("static");
  });

  test("that the kubelet only lists is known by its UID", () => {
    const other = sandboxOf("o", { podUid: podUid("ff".repeat(16)), state: "not-ready" });
    const pods = list(seen(HASH, "static"), seen("ff".repeat(16), "listed"));
    expect(stateOf(viewOf({ sandboxes: [staticPod, other] }, pods)).kind).toBe("ready");
  });

  test.each([`${HASH}0`, `0${HASH}`])("has a UID of 32 hex digits: %s is another's", (uid) => {
    const other = sandboxOf("o", { podUid: podUid(uid), state: "not-ready" });
    const view = viewOf({ sandboxes: [staticPod, other] }, list(seen(HASH, "static")));
    expect(stateOf(view).kind).toBe("not-ready");
  });
});

describe("kubelet-dir on a root directory that the kubelet has left", () => {
  const intruder = dead("x", "c", { state: "running", sandboxId: completed.id });
  test.each([
    [
      "is not ready although it has a static pod",
      [staticPod, sandboxOf("a"), completed],
      [HASH],
      "not-ready",
    ],
    ["is not ready if only static pods live", [staticPod, completed], [HASH], "not-ready"],
    ["is ready where it knows another pod", [staticPod, sandboxOf("a")], [HASH, "uid-a"], "ready"],
  ] as const)("%s", (_, sandboxes, uids, kind) => {
    expect(stateOf(viewOf({ sandboxes }, reading("kubelet-dir", ...uids))).kind).toBe(kind);
  });

  test("is right about what left something here where it knows a pod that lives, in whose sandbox ever", () => {
    const node = { sandboxes: [completed], containers: [intruder] };
    expect(stateOf(viewOf(node, reading("kubelet-dir", "uid-x"))).kind).toBe("ready");
  });

  test("does not block images", () => {
    const view = viewOf({ sandboxes: [completed] }, reading("kubelet-dir"));
    expect(podSourceForImages(view, new Map())).toBeNull();
  });
});
