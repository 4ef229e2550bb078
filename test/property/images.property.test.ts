import { expect, test } from "bun:test";

import fc from "fast-check";

import type { Criterion, ImagePlan } from "../../src/model/plan.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { duration, minutes } from "../../src/model/time.ts";
import type { Facts } from "../../src/policy/facts.ts";
import { recheckImages } from "../../src/policy/image/judge.ts";
import { decideAlone, kubeletOn } from "../policy/judging.ts";
import { aContainer, withImageLimits } from "../support/build/values.ts";
import { inSomeOrder, randomNode } from "./image-node.ts";

const RUNS = { numRuns: 1_500 };
const ids = (plan: ImagePlan): readonly string[] => plan.candidates.map(({ image }) => image.id);
const expected = (plan: ImagePlan): readonly string[] =>
  plan.candidates.filter((one) => one.expected).map(({ image }) => image.id);
/** Removes nothing, however full the disk. */
const isFutile = ({ futility }: ImagePlan): boolean => futility.some(({ futile }) => futile);
const withSnapshot = (input: Facts, change: Partial<Snapshot>): Facts => ({
  ...input,
  snapshot: { ...input.snapshot, ...change },
});

/** Under crigc's rules, or the kubelet's. */
const eitherPlan = (input: Facts, isKubelet: boolean): ImagePlan =>
  isKubelet ? kubeletOn(input, duration(0n)).decide(input, new Set()) : decideAlone(input);

test("an image that is running, mounted, pinned, kept or too young is never planned", () => {
  let planned = 0;
  fc.assert(
    fc.property(randomNode, fc.boolean(), ({ input, truth }, isKubelet) => {
      const plan = eitherPlan(input, isKubelet);
      planned += plan.candidates.length;
      const running = new Set<string>(truth.values());
      for (const volumes of input.snapshot.imageVolumes.values()) {
        if (volumes.kind === "known")
          for (const reference of volumes.references) running.add(reference);
      }
      const kept = new Set(input.snapshot.keep.rules.map(({ pattern }) => pattern));
      for (const { image, record, triggers } of plan.candidates) {
        expect(running.has(image.id)).toBeFalse();
        expect(image.pinned).toBeFalse();
        const names = [...image.repoTags, ...image.repoDigests];
        if (kept.has("registry.example/a"))
          expect(names.some((name) => name.startsWith("registry.example/a"))).toBeFalse();
        if (kept.has("host:5000/b:*"))
          expect(names.some((name) => name.startsWith("host:5000/b:"))).toBeFalse();
        if (kept.has("**/team/*"))
          expect(names.some((name) => name.includes("/team/"))).toBeFalse();
        for (const prefix of kept)
          if (prefix.startsWith("sha256:")) expect(image.id.startsWith(prefix)).toBeFalse();
        if (input.limits.images.keepLoaded) expect(image.repoDigests).not.toEqual([]);
        const isKubeletsAge = isKubelet && triggers.some(({ kind }) => kind === "age");
        const age = input.ledger.totalUptime - record.firstSeenUptime;
        if (!isKubeletsAge) expect(age).toBeGreaterThanOrEqual(input.limits.images.minimumAge);
      }
    }),
    RUNS,
  );
  // Else the property would hold of a policy that removes nothing.
  expect(planned).toBeGreaterThan(300);
});

test("every image is planned or kept exactly once, and a kept one has a reason", () => {
  fc.assert(
    fc.property(randomNode, fc.boolean(), ({ input }, isKubelet) => {
      const plan = eitherPlan(input, isKubelet);
      const all = [...ids(plan), ...plan.kept.map(({ image }) => image.id)].toSorted();
      expect(all).toEqual(input.snapshot.images.map(({ id }): string => id).toSorted());
      for (const { tried } of plan.kept) expect(tried.length).toBeGreaterThan(0);
      if (plan.triggers.length === 0) expect(plan.candidates).toEqual([]);
    }),
    RUNS,
  );
});

test("the order of lists does not matter", () => {
  const inAnyOrder = randomNode.chain(({ input }) =>
    fc.record({
      input: fc.constant(input),
      isKubelet: fc.boolean(),
      images: inSomeOrder(input.snapshot.images),
      containers: inSomeOrder(input.snapshot.containers),
    }),
  );
  fc.assert(
    fc.property(inAnyOrder, ({ input, isKubelet, ...lists }) => {
      const one = eitherPlan(input, isKubelet);
      const two = eitherPlan(withSnapshot(input, lists), isKubelet);
      expect(two.candidates).toEqual(one.candidates);
      expect(two.kept.map(({ image, reason }) => [image.id, reason.kind])).toEqual(
        one.kept.map(({ image, reason }) => [image.id, reason.kind]),
      );
    }),
    RUNS,
  );
});

test("a higher threshold never removes more", () => {
  fc.assert(
    fc.property(randomNode, fc.nat(60), fc.nat(60), ({ input }, high, low) => {
      // 100 with no maximum age is the switch, and a budget asks for images beside the thresholds.
      const limits = { ...input.limits.images, storeBudgetBytes: null };
      const highPercent = Math.min(100, limits.highPercent + high);
      const raised = {
        ...limits,
        highPercent,
        lowPercent: Math.min(highPercent - 1, limits.lowPercent + low),
      };
      const plans = [limits, raised].map((it) => decideAlone(withImageLimits(input, it)));
      const [before = [], after = []] = plans.map(expected);
      if (raised.lowPercent >= limits.lowPercent && !plans.some(isFutile))
        expect(before.slice(0, after.length)).toEqual([...after]);
    }),
    RUNS,
  );
});

test("a fuller disk removes the same images in the same order, and more of them", () => {
  fc.assert(
    fc.property(randomNode, fc.bigInt({ min: 0n, max: 2n ** 36n }), ({ input }, bytes) => {
      const fuller = input.snapshot.filesystems.map((one) => ({
        ...one,
        availableBytes: one.availableBytes > bytes ? one.availableBytes - bytes : 0n,
      }));
      const plans = [input, withSnapshot(input, { filesystems: fuller })].map((it) =>
        decideAlone(it),
      );
      const [before = [], after = []] = plans.map(expected);
      if (!plans.some(isFutile)) expect(after.slice(0, before.length)).toEqual([...before]);
    }),
    RUNS,
  );
});

test("a candidate that came into use is not removed, any other still is", () => {
  fc.assert(
    fc.property(randomNode, ({ input }) => {
      const [first, second] = decideAlone(input).candidates;
      if (first === undefined) return;
      const container = aContainer("new", { imageId: first.image.id, state: "created" });
      const { containers, imageVolumes } = input.snapshot;
      const fresh = withSnapshot(input, {
        containers: [...containers, container],
        imageVolumes: new Map(imageVolumes).set(container.id, { kind: "known", references: [] }),
      });
      expect(recheckImages(fresh)(first, new Set())?.kind).toBe("in-use");
      if (second !== undefined && input.limits.images.keepPerRepository === 0)
        expect(recheckImages(fresh)(second, new Set())).toBeNull();
    }),
    RUNS,
  );
});

test("a selection by hand removes nothing that a pass without it would keep", () => {
  const criterion: fc.Arbitrary<Criterion> = fc.constantFrom<Criterion>(
    { kind: "untagged" },
    { kind: "namespace", name: "default" },
    { kind: "reference", pattern: "**/team/*" },
    { kind: "reference", pattern: "not [ valid" },
    { kind: "larger-than", bytes: 1n << 31n },
    { kind: "unused-for", span: minutes(10) },
  );
  let planned = 0;
  fc.assert(
    fc.property(randomNode, fc.array(criterion, { maxLength: 3 }), ({ input }, only) => {
      const free = new Set(ids(decideAlone({ ...input, purpose: { kind: "all-unused" } })));
      const selected = ids(decideAlone({ ...input, purpose: { kind: "all-unused", only } }));
      planned += selected.length;
      expect(selected.filter((id) => !free.has(id))).toEqual([]);
      if (only.length === 0) expect(selected).toEqual([]);
    }),
    RUNS,
  );
  expect(planned).toBeGreaterThan(30);
});
