// What the kubelet's records make of an image, from when it is first seen until it is gone.

import { describe, expect, test } from "bun:test";

import type { ImageId } from "../../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../../src/model/ledger.ts";
import type { PullReading } from "../../../src/model/records.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import { hours, instant, minutes, watched } from "../../../src/model/time.ts";
import { PullMemory, pullsUnderWay } from "../../../src/policy/image/pulls.ts";
import { usageOf } from "../../../src/policy/image/usage.ts";
import { forgetImages, remember } from "../../../src/policy/remember.ts";
import {
  aLedger,
  anImage,
  aSnapshot,
  defaultLimits,
  idOf,
  NOW,
} from "../../support/build/values.ts";

const FILE = "sha256-of-app";
const tagged = { repoTags: ["registry.example/app:v1"] };
/** As containerd lists an image that it pulled, and one from an archive. */
const pulled = anImage("app", {
  ...tagged,
  repoDigests: [`registry.example/app@sha256:${"1".repeat(64)}`],
});
const loaded = anImage("app", { ...tagged, repoDigests: [] });

interface Seen {
  readonly image?: Image | null;
  /** Whether the file of the image's record exists. */
  readonly record?: boolean | "unreadable";
  readonly intent?: boolean;
  readonly markedAt?: bigint;
  readonly unread?: boolean;
  readonly runtime?: string;
}

/** A node that is observed every five minutes. */
class Node {
  ledger: Ledger = emptyLedger;
  #passed = 0n;

  sees({ image = loaded, record = false, intent = false, unread = false, ...more }: Seen = {}) {
    this.#passed += minutes(5);
    const listed = image === null ? [] : [image];
    const intents = intent
      ? [{ image: "registry.example/app:v1", markedAt: instant(more.markedAt ?? NOW) }]
      : [];
    const exists = record !== false;
    const reading: PullReading = unread
      ? { kind: "failed", message: "unmounted", intents: null }
      : {
          kind: "read",
          directory: "/k",
          recorded: new Map<ImageId, readonly string[]>(
            exists ? listed.map(({ id }) => [id, [FILE]]) : [],
          ),
          unreadable: record === "unreadable" ? listed.map(({ id }) => id) : [],
          unlisted: exists && image === null ? [FILE] : [],
          intents,
        };
    const base = aSnapshot({ images: listed, pulls: reading });
    const snapshot: Snapshot = {
      ...base,
      clocks: { ...base.clocks, uptime: (base.clocks.uptime + this.#passed) as never },
      runtime: { ...base.runtime, name: more.runtime ?? "containerd" },
    };
    const limits = defaultLimits.memory;
    const { ledger } = this;
    this.ledger = remember({ ledger, snapshot, usage: usageOf(snapshot), limits, pods: new Map() });
    return this.ledger.images.get(loaded.id)?.pull;
  }
}

const withRecord: Seen = { record: true };
const whole: Seen = { record: true, image: pulled };
const onCrio: Seen = { record: true, runtime: "cri-o" };
const absent: Seen = { record: true, image: null };
const pulling: Seen = { ...absent, intent: true };

const nameless = { image: { ...loaded, repoTags: [] } };
const retagged = { record: true, image: { ...loaded, repoTags: ["r.example/app:v2"] } };
const imported = {
  record: true,
  image: { ...loaded, repoDigests: [`import-2026-01-31@${idOf("x")}`] },
};
const unreadable: Seen = { record: "unreadable" };
const pullings = (count: number, seen: Seen): readonly Seen[] => Array(count).fill(seen);

test.each<[string, readonly Seen[], string | null]>([
  ["with a record was pulled", [withRecord], "pulled"],
  ["without a record has none", [{}], "no-record"],
  ["while its name is pulled is not settled", [{ intent: true }], "pulling"],
  ["while records cannot be read is unknown", [{ unread: true }], null],
  ["with a record of 0 bytes is unknown", [unreadable], null],
  ["stays pulled when the kubelet prunes its record", [withRecord, {}], "pulled"],
  ["stays without when the kubelet makes a record for it", [{}, withRecord], "no-record"],
  ["was pulled once its intent became a record", [{ intent: true }, withRecord], "pulled"],
  ["has no record if its intent ended without one", [{ intent: true }, {}], "no-record"],
  ["is not settled for an hour of its pull", pullings(12, { intent: true }), "pulling"],
  ["has no record afterwards, as after a crash", pullings(13, { intent: true }), "no-record"],
  ["is settled once records can be read", [{ unread: true }, withRecord], "pulled"],
  ["is settled once its record is valid", [unreadable, withRecord], "pulled"],
  ["stays settled while records cannot be read", [{}, { unread: true }], "no-record"],
  ["stays pulled without a name, as after a removal without effect", [whole, nameless], "pulled"],
  ["has no record once it has the made-up name of an import", [whole, imported], "no-record"],
  ["stays pulled when its tag changes, without a digest", [withRecord, retagged], "pulled"],
  ["stays pulled on CRI-O without a digest", [{ ...onCrio, image: pulled }, onCrio], "pulled"],
  [
    "while an intent that had ended is there again is not settled",
    [{ image: null, intent: true }, { image: null }, { intent: true }],
    "pulling",
  ],
  ["has no record if its record was seen before", [absent, withRecord], "no-record"],
])("an image that is first seen %s", (_, seen, state) => {
  const node = new Node();
  expect(seen.map((it) => node.sees(it)).at(-1)).toBe(state as never);
});

describe("an image that comes back", () => {
  test.each<[string, readonly Seen[], string]>([
    ["has no record, although one outlived it", [withRecord], "no-record"],
    ["was pulled if containerd knows its digest", [whole], "pulled"],
    ["was pulled on CRI-O if it is listed after an intent", [pulling, onCrio], "pulled"],
    ["was pulled on CRI-O if an intent ended meanwhile", [pulling, absent, onCrio], "pulled"],
    [
      "has no record on CRI-O if a pull failed before",
      [pulling, absent, absent, onCrio],
      "no-record",
    ],
    [
      "has no record after an intent left by a crash",
      [...pullings(12, pulling), onCrio],
      "no-record",
    ],
    ["has no record once its record is readable", [unreadable, withRecord], "no-record"],
  ])("%s", (_, seen, state) => {
    const node = new Node();
    const states = [whole, absent, ...seen].map((it) => node.sees(it));
    expect(states.at(-1)).toBe(state as never);
  });

  test("has no record if it was removed and loaded between two observations", () => {
    const node = new Node();
    node.sees(withRecord);
    node.ledger = forgetImages(node.ledger, [loaded.id]);
    expect(node.sees(withRecord)).toBe("no-record");
    expect([...node.ledger.outlivedPulls]).toEqual([]);
  });
});

test("an image that was dropped before it was settled leaves nothing behind", () => {
  const node = new Node();
  node.sees({ unread: true });
  const before = node.ledger.outlivedPulls;
  node.ledger = forgetImages(node.ledger, [loaded.id]);
  expect(node.ledger.outlivedPulls).toBe(before);
});

test("an intent that ended is forgotten after a day, and an unchanged node keeps its maps", () => {
  const node = new Node();
  node.sees({ intent: true });
  node.sees();
  const { pullIntents, outlivedPulls } = node.ledger;
  expect(pullIntents.size).toBe(1);
  node.sees();
  expect(node.ledger.pullIntents).toBe(pullIntents);
  expect(node.ledger.outlivedPulls).toBe(outlivedPulls);
  node.ledger = { ...node.ledger, watched: watched(node.ledger.watched + hours(24) - minutes(10)) };
  node.sees();
  expect(node.ledger.pullIntents.size).toBe(0);
});

test.each([
  ["registry.example/app:v1", ["app"]],
  ["app:v1", ["app"]],
  ["app:v2", []],
  ["other:v1", ["short"]],
  [idOf("app").slice("sha256:".length, 30), []],
])("a pull of %s is of %p", (image, words) => {
  const images = [
    anImage("app"),
    anImage("other"),
    anImage("short", { repoTags: ["docker.io/library/other:v1"] }),
  ];
  const intents = [{ image, markedAt: NOW }];
  const pulls = { kind: "failed", message: "unmounted", intents } as const;
  const ledger = { pullIntents: new Map(), watched: watched(0n) };
  expect([...pullsUnderWay({ images, pulls }, ledger).keys()]).toEqual(words.map(idOf));
});

test.each([[["older", "newer"]], [["newer", "older"]]])(
  "an image with the files %p has outlived both once it has outlived the newer",
  (files) => {
    const ended = watched(20n);
    const intent = { markedAt: NOW, firstSeenWatched: ended, endedWatched: ended };
    const ledger = aLedger({
      watched: ended,
      outlivedPulls: new Map([
        ["older", watched(10n)],
        ["newer", ended],
      ]),
      pullIntents: new Map([["registry.example/app:v1", intent]]),
    });
    const recorded = new Map([[loaded.id, files]]);
    const read = { kind: "read", directory: "/k", unreadable: [], unlisted: [] } as const;
    const pulls = { ...read, recorded, intents: [] };
    const runtime = { ...aSnapshot().runtime, name: "cri-o" };
    const snapshot = aSnapshot({ images: [loaded], pulls, runtime });
    const memory = new PullMemory(ledger, snapshot, watched(40n));
    expect(memory.stateOf(loaded)).toBe("no-record");
  },
);
