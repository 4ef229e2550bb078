// Mistakes that other collectors made, each as a test that fails if this policy makes it too.

import { describe, expect, test } from "bun:test";

import { emptyLedger } from "../../src/model/ledger.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { minutes, watched } from "../../src/model/time.ts";
import { usageOf } from "../../src/policy/image/usage.ts";
import { remember } from "../../src/policy/remember.ts";
import {
  aContainer,
  anImage,
  aSnapshot,
  defaultLimits,
  idOf,
  NOW,
} from "../support/build/values.ts";
import { fateOf, planOf, WATCHED, words } from "./judging.ts";

const keep = (...patterns: readonly string[]): Snapshot["keep"] => ({
  rules: patterns.map((pattern) => ({ pattern, source: "--keep" })),
  problems: [],
  directoriesRead: [],
});

test("1: a pattern for one repository of a registry with a port does not keep the whole host", () => {
  const app = anImage("app", { repoTags: ["host:5000/app:v1"] });
  const others = [
    "host:5000/other:v1",
    "host:6000/app:v1",
    "host/app:v1",
    "docker.io/library/host:5000",
  ];
  const images = [app, ...others.map((tag) => anImage(tag, { repoTags: [tag] }))];
  const plan = planOf({ images, snapshot: { keep: keep("host:5000/app:*") } });
  expect(plan.kept.map(({ image }) => image.id)).toEqual([app.id]);
  expect(plan.candidates).toHaveLength(others.length);
});

describe("2: an unreadable use is not taken for unused", () => {
  const image = anImage("app");

  test("an image name that could not be resolved", () => {
    const snapshot: Partial<Snapshot> = {
      containers: [aContainer("c", { imageName: "registry.example/moved:v1" })],
      resolutions: new Map([
        ["registry.example/moved:v1", { kind: "unknown", message: "deadline passed" }],
      ]),
    };
    expect(planOf({ images: [image], snapshot })).toMatchObject({
      candidates: [],
      blocks: [{ kind: "usage-unknown" }],
    });
  });
});

test("4: an image in use under one name keeps all its other names, and a container that names it only by ID counts", () => {
  const image = anImage("app", { repoTags: ["a.example/app:v1", "b.example/app:latest"] });
  for (const word of [
    { imageName: "a.example/app:v1" },
    { imageId: image.id },
    { imageRef: image.id },
  ]) {
    const plan = planOf({ images: [image], snapshot: { containers: [aContainer("c", word)] } });
    expect(fateOf(plan, image)).toBe("in-use");
  }
});

test("5: an image in use is never a candidate, not merely the last one", () => {
  const image = anImage("app");
  const snapshot = { containers: [aContainer("c", { imageId: image.id })] };
  const facts = { purpose: { kind: "all-unused" } } as const;
  expect(planOf({ images: [image], snapshot, facts }).candidates).toEqual([]);
});

test("6: an image that is seen for the first time is new, not as old as the epoch", () => {
  const snapshot = aSnapshot({ images: [anImage("app")] });
  const memory = {
    ledger: emptyLedger,
    snapshot,
    usage: usageOf(snapshot),
    limits: defaultLimits.memory,
    pods: new Map(),
  };
  const ledger = remember(memory);
  expect(ledger.images.get(idOf("app"))).toMatchObject({
    firstSeenAt: NOW,
    firstSeenWatched: ledger.watched,
  });
  expect(fateOf(planOf({ images: [anImage("app")], ledger }), anImage("app"))).toBe("too-young");
});

test("6: without a ledger the order is still the same each time", () => {
  const images = ["d", "a", "c", "b"].map((word) => anImage(word));
  const plan = (list: typeof images) => words(planOf({ images: list, records: [] }).candidates);
  expect(plan(images)).toEqual(plan(images.toReversed()));
});

test("12: a pin or rule of this pass keeps an image, whatever existed when the image came", () => {
  const records = [{ firstSeenWatched: watched(WATCHED - minutes(9_000)) }];
  expect(
    fateOf(planOf({ images: [anImage("app", { pinned: true })], records }), anImage("app")),
  ).toBe("pinned");
  expect(
    fateOf(
      planOf({ images: [anImage("app")], records, snapshot: { keep: keep("**/app") } }),
      anImage("app"),
    ),
  ).toBe("keep-rule");
  expect(fateOf(planOf({ images: [anImage("app")], records }), anImage("app"))).toBe("goes");
});
