// Which containers are being created, from when each counts, and which of them hold up the removal of images.

import { describe, expect, test } from "bun:test";

import { creationId, podUid, sandboxId } from "../../../src/model/ids.ts";
import type { ContainerMark, Ledger } from "../../../src/model/ledger.ts";
import type { Container, PodReading, Sandbox } from "../../../src/model/snapshot.ts";
import {
  type Duration,
  duration,
  instant,
  minutes,
  seconds,
  toMs,
  watched,
} from "../../../src/model/time.ts";
import type { CreationPatience } from "../../../src/policy/facts.ts";
import {
  creationBlock,
  creationsOf,
  FULL_PATIENCE,
  ListedTimes,
  rememberAwaited,
  rememberCreations,
} from "../../../src/policy/image/creations.ts";
import { aContainer, aLedger, aSandbox, NOW } from "../../support/build/values.ts";

const ago = (span: Duration) => instant(NOW - span);
const ahead = (span: Duration) => instant(NOW + span);

const pod = aSandbox("pod", { createdAt: ago(minutes(10)) });
const aMark = (change: Partial<ContainerMark> = {}): ContainerMark => ({
  podUid: pod.podUid,
  name: "web",
  at: ago(seconds(1)),
  ...change,
});
const listed = (change: Partial<Container> = {}): Container =>
  aContainer("web", { name: "web", sandboxId: pod.id, createdAt: ago(seconds(5)), ...change });

interface Look {
  readonly sandboxes?: readonly Sandbox[];
  readonly containers?: readonly Container[];
  readonly marks?: readonly ContainerMark[];
  readonly unreadable?: boolean;
  readonly pods?: PodReading;
  readonly patience?: CreationPatience;
  /** Since the first look. */
  readonly after?: Duration;
}

/** A node that is looked at again and again, with the ledger in between. */
class Node {
  ledger: Ledger = aLedger({ observedAt: NOW });

  /** Milliseconds for which images are held up; 0: they are not. */
  look({ sandboxes = [pod], containers = [], marks = [], ...look }: Look): number {
    const after = look.after ?? seconds(0);
    const start = aLedger();
    const uptime = duration(start.uptime + after);
    const clocks = { wall: instant(NOW + after), uptime, bootId: start.bootId };
    const times = new ListedTimes({ sandboxes, containers }, clocks.wall);
    const isUnreadable = look.unreadable === true;
    const reading = {
      marks: isUnreadable ? [] : marks,
      unreadable: new Set(isUnreadable ? times.pods() : []),
    };
    const creations = creationsOf(times, reading, clocks);
    const seen = { sandboxes, containers, now: clocks.wall, creations };
    const now = watched(start.watched + after);
    this.ledger = {
      ...this.ledger,
      creations: rememberCreations(this.ledger, seen, now),
      uptime,
      watched: now,
      observedAt: clocks.wall,
      sandboxImages: new Map(sandboxes.map(({ id }) => [id, ""])),
    };
    const [block] = creationBlock({
      snapshot: { creations },
      ledger: this.ledger,
      creationPatience: look.patience ?? FULL_PATIENCE,
    });
    return block?.kind === "pod-starting" ? toMs(block.remaining) : 0;
  }
}

const IN_FULL = 150_000;

describe("a marked container of a ready sandbox", () => {
  const marks = [aMark()];
  const beside = (change: Partial<Container> = {}): Look => ({
    marks,
    containers: [listed(change)],
  });
  const unlabelled = { ...pod, podUid: podUid(""), metadataUid: pod.podUid };
  test.each<[string, Look, number]>([
    ["is being created until it is listed", { marks }, IN_FULL],
    ["is not being created once it is listed", beside({ createdAt: ago(seconds(0.5)) }), 0],
    ["is being created again beside an older instance", beside(), IN_FULL],
    [
      "is being created beside one that is listed with a time in the future",
      beside({ createdAt: ahead(minutes(60)) }),
      IN_FULL,
    ],
    [
      "is not being created if one listed is as old as its mark",
      beside({ createdAt: aMark().at }),
      0,
    ],
    [
      "is being created with a mark as late as the clock's grain",
      { marks: [aMark({ at: ahead(seconds(0.01)) })] },
      IN_FULL,
    ],
    ["does not count with a mark in the future", { marks: [aMark({ at: ahead(minutes(1)) })] }, 0],
    ["does not count during teardown", { marks, sandboxes: [{ ...pod, state: "not-ready" }] }, 0],
    [
      "is known by the sandbox's own UID where it has no label",
      { marks, sandboxes: [unlabelled] },
      IN_FULL,
    ],
  ])("%s", (_, look, heldMs) => {
    expect(new Node().look(look)).toBe(heldMs);
  });
});

describe("where the kubelet's pods cannot be read", () => {
  const look = { unreadable: true };

  test("a new sandbox without a container counts for 10 s, a known one does not", () => {
    const node = new Node();
    const fresh = aSandbox("fresh", { createdAt: NOW });
    expect(node.look(look)).toBe(10_000);
    const sandboxes = [pod, fresh];
    expect(node.look({ ...look, after: seconds(60), sandboxes })).toBe(10_000);
    expect(node.look({ ...look, after: seconds(69), sandboxes })).toBe(1_000);
    expect(node.look({ ...look, after: seconds(70), sandboxes })).toBe(0);
  });

  test("a sandbox counts neither with a container, nor once that is gone, nor if it is not ready", () => {
    const node = new Node();
    expect(node.look({ ...look, containers: [listed()] })).toBe(0);
    expect(node.look({ ...look, after: seconds(1) })).toBe(0);
    expect(new Node().look({ ...look, sandboxes: [{ ...pod, state: "not-ready" }] })).toBe(0);
  });
});

test("of two ready sandboxes of a pod the newer one counts, in any order", () => {
  const newer = aSandbox("newer", { podUid: pod.podUid, createdAt: ago(seconds(30)) });
  const marks = [aMark({ at: ago(minutes(1)) })];
  for (const sandboxes of [
    [pod, newer],
    [newer, pod],
  ])
    expect(new Node().look({ marks, sandboxes })).toBe(0);
});

test("of two creations the one with more time left decides how long images wait", () => {
  const node = new Node();
  node.look({ marks: [aMark()] });
  const marks = [aMark({ name: "late", at: ahead(seconds(9)) }), aMark()];
  expect(node.look({ after: seconds(10), marks })).toBe(IN_FULL);
});

test("an observation that reads no marks ends the record of a container that it lists", () => {
  const node = new Node();
  node.look({ marks: [aMark({ at: NOW })] });
  const seen = { sandboxes: [pod], now: ahead(seconds(2)), creations: null };
  const at = node.ledger.watched;
  const still = rememberCreations(node.ledger, { ...seen, containers: [] }, at);
  expect(still).toEqual(node.ledger.creations);
  const containers = [listed({ createdAt: ahead(seconds(1)) })];
  expect(rememberCreations(node.ledger, { ...seen, containers }, at).size).toBe(0);
});

test("waiting for what is not recorded changes no ledger", () => {
  const { ledger } = new Node();
  expect(rememberAwaited(ledger, [creationId({ sandboxId: pod.id, name: "web" })])).toBe(ledger);
});

test("under pressure a pass waits for a creation only if no other pass has", () => {
  const node = new Node();
  const id = creationId({ sandboxId: pod.id, name: "web" });
  const held = (own: CreationPatience["own"]): number =>
    node.look({ marks: [aMark()], patience: { isOver: false, own } });
  expect(held(new Set())).toBe(IN_FULL);
  node.ledger = rememberAwaited(node.ledger, [
    id,
    creationId({ sandboxId: sandboxId("x"), name: "" }),
  ]);
  expect([held(new Set([id])), held(new Set()), held(null)]).toEqual([IN_FULL, 0, IN_FULL]);
});

test("a new sandbox without a container is recorded, although nothing else is being created", () => {
  const seen = { sandboxes: [pod], containers: [], now: NOW, creations: null };
  const { size } = rememberCreations(aLedger({ sandboxImages: new Map() }), seen, watched(0n));
  expect(size).toBe(1);
});
