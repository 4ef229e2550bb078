// Random nodes for properties of image policy, small enough that every rule meets every other one.

import fc from "fast-check";

import { containerId, type ImageId } from "../../src/model/ids.ts";
import type { ImageRecord } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { Purpose } from "../../src/model/plan.ts";
import type {
  Container,
  ContainerState,
  Image,
  ImageVolumes,
  KeepRule,
  Resolution,
} from "../../src/model/snapshot.ts";
import { instant, minutes, totalUptime } from "../../src/model/time.ts";
import type { Facts } from "../../src/policy/facts.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aRecord,
  aSnapshot,
  defaultImageLimits,
  factsOf,
  GIB,
  keepOf,
  NOW,
} from "../support/build/values.ts";

/** What an arbitrary makes. */
export type Drawn<From> = From extends fc.Arbitrary<infer Value> ? Value : never;

export const inSomeOrder = <Item>(list: readonly Item[]): fc.Arbitrary<Item[]> =>
  fc.shuffledSubarray([...list], { minLength: list.length });

export const WATCHED = totalUptime(minutes(100_000));
export const WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"] as const;
export const rarely = fc.nat(5).map((roll) => roll === 0);
const minute = fc.integer({ min: 0, max: 40 }).map((count) => minutes(count));

const image = (word: string): fc.Arbitrary<Image> =>
  fc
    .record({
      tags: fc.subarray([
        `registry.example/${word}:v1`,
        `host:5000/${word}:v2`,
        `registry.k8s.io/team/${word}:v3`,
      ]),
      digests: fc.subarray([`registry.example/${word}@${anImage(`digest-${word}`).id}`]),
      sizeBytes: fc.bigInt({ min: 0n, max: 8n * GIB }),
      pinned: rarely,
    })
    .map(({ tags, digests, sizeBytes, pinned }) =>
      anImage(word, { repoTags: tags, repoDigests: digests, sizeBytes, pinned }),
    );

const record: fc.Arbitrary<Partial<ImageRecord>> = fc
  .record({
    seen: minute,
    used: fc.option(minute),
  })
  .map(({ seen, used }) => ({
    firstSeenAt: instant(NOW - seen),
    firstSeenUptime: totalUptime(WATCHED - seen),
    lastUsedAt: used === null ? null : instant(NOW - used),
    lastUsedUptime: used === null ? null : totalUptime(WATCHED - used),
  }));

/** How a container may name its image. */
const wordFor = (target: Image): fc.Arbitrary<Partial<Container>> =>
  fc.constantFrom<Partial<Container>>(
    { imageId: target.id },
    { imageRef: target.id },
    { imageRef: target.id.slice("sha256:".length) },
    { imageName: target.repoTags[0] ?? target.id },
    { imageRef: target.repoDigests[0] ?? target.id, imageName: "registry.example/gone:v1" },
  );

const volumes: fc.Arbitrary<ImageVolumes> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<ImageVolumes>({ kind: "known", references: [] }) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(...WORDS)
      .map((word): ImageVolumes => ({ kind: "known", references: [anImage(word).id] })),
  },
  { weight: 1, arbitrary: fc.constant<ImageVolumes>({ kind: "gone" }) },
);

const limits: fc.Arbitrary<ImageLimits> = fc
  .record({
    high: fc.integer({ min: 1, max: 100 }),
    below: fc.integer({ min: 1, max: 30 }),
    minimumAge: fc.constantFrom(minutes(0), minutes(2), minutes(20)),
    maximumAge: fc.constantFrom(minutes(0), minutes(30)),
    keepLoaded: rarely,
    keepPerRepository: fc.constantFrom(0, 0, 0, 1, 2),
  })
  .map(({ high, below, ...rest }) => ({
    ...defaultImageLimits,
    ...rest,
    highPercent: high,
    lowPercent: Math.max(0, high - below),
  }));

const aNode = fc.record({
  images: fc.tuple(...WORDS.map((word) => image(word))).chain((all) => fc.subarray(all)),
  records: fc.array(record, { minLength: WORDS.length, maxLength: WORDS.length }),
  limits,
  available: fc.bigInt({ min: 0n, max: 50n * GIB }),
  used: fc.option(fc.bigInt({ min: 0n, max: 100n * GIB })),
  rules: fc.subarray<KeepRule>([
    { pattern: "registry.example/a", source: "--keep" },
    { pattern: "host:5000/b:*", source: "/k/x.list:1" },
    { pattern: "**/team/*", source: "/k/x.list:2" },
    { pattern: anImage("c").id.slice(0, 20), source: "/k/x.list:3" },
  ]),
  purpose: fc.constantFrom<Purpose>({ kind: "periodic" }, { kind: "all-unused" }),
});

/** A container that runs one of these images. */
const containerOf = (images: readonly Image[]) =>
  fc.constantFrom(...images).chain((target) =>
    fc.record({
      target: fc.constant(target),
      word: wordFor(target),
      state: fc.constantFrom<ContainerState>("created", "running", "exited", "unknown"),
      mounts: volumes,
    }),
  );

/** A node on which everything that matters is known, with the image that each container really runs. */
export const randomNode = aNode.chain((node) =>
  (node.images.length === 0
    ? fc.constant([])
    : fc.array(containerOf(node.images), { maxLength: 5 })
  ).map((runs) => assemble(node, runs)),
);

function assemble(
  parts: Drawn<typeof aNode>,
  runs: readonly Drawn<ReturnType<typeof containerOf>>[],
): { readonly input: Facts; readonly truth: ReadonlyMap<string, ImageId> } {
  const { images, records, limits: chosen, rules, purpose } = parts;
  const containers = runs.map(({ word, state }, at) => aContainer(`c${at}`, { ...word, state }));
  const gone: readonly string[] = [
    "registry.example/gone:v1",
    ...WORDS.map((word) => anImage(word).id),
  ];
  const snapshot = aSnapshot({
    runtime: { ...aSnapshot().runtime, version: "2.1.0" },
    images,
    containers,
    imageVolumes: new Map(runs.map(({ mounts }, at) => [containerId(`container-c${at}`), mounts])),
    resolutions: new Map(gone.map((name): [string, Resolution] => [name, { kind: "absent" }])),
    filesystems: [aFilesystem({ availableBytes: parts.available, imageUsedBytes: parts.used })],
    keep: keepOf(rules),
  });
  const known = images.map((one, at) => [one.id, aRecord(records[at])] as const);
  return {
    input: {
      ...factsOf(snapshot, aLedger({ totalUptime: WATCHED, images: new Map(known) }), chosen),
      purpose,
    },
    truth: new Map(runs.map(({ target }, at) => [`container-c${at}`, target.id])),
  };
}
