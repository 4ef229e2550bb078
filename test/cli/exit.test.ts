import { expect, test } from "bun:test";

import { passExit, planExit } from "../../src/cli/exit.ts";
import { HostError } from "../../src/model/errors.ts";
import type { ImageOutcome } from "../../src/model/pass.ts";
import type { ImagePlan } from "../../src/model/plan.ts";
import { minutes } from "../../src/model/time.ts";
import {
  containerOutcome,
  containerPlan,
  imageOutcome,
  imagePlan,
  kept,
  pass,
  removedImage,
} from "../report/build.ts";

const blocked = (block: "on-hold" | "usage-unknown"): Partial<ImageOutcome> => ({
  end: "blocked",
  items: [removedImage(1, { result: { kind: "skipped", reason: { kind: "blocked", block } } })],
});

test.each<[string, Partial<ImageOutcome> | null, number]>([
  ["reached its target", {}, 0],
  ["has no candidate left", { end: "candidates-exhausted" }, 4],
  ["is futile", { end: "futile" }, 4],
  ["was put on hold", blocked("on-hold"), 7],
  ["could not read the use of an image", blocked("usage-unknown"), 3],
  ["could not read a list", { end: "observation-failed", error: "cannot list" }, 3],
  ["was stopped", { end: "stopped" }, 4],
  ["was stopped before its images", null, 4],
])("a pass that %s ends so", (_, images, code) => {
  const outcome = images && imageOutcome({ items: [], ...images });
  expect(passExit(pass({ images: outcome, containers: null }), null)).toBe(code);
});

test("a pass without a candidate left exits 4 if a target is missed or an image only too young, and not otherwise", () => {
  const codeOf = (plan: Partial<ImagePlan>): number => {
    const images = imageOutcome({ end: "candidates-exhausted", items: [] });
    const planned = { images: imagePlan({ kept: [], ...plan }), containers: null };
    return passExit(pass({ images, plan: planned, containers: null }), null);
  };
  const targets = [{ kind: "everything", trigger: { kind: "all-unused" } }] as const;
  expect(codeOf({})).toBe(4);
  expect(codeOf({ targets })).toBe(0);
  const reason = { kind: "too-young", age: minutes(0), minimumAge: minutes(2) } as const;
  expect(codeOf({ targets, kept: [kept(1, reason)] })).toBe(4);
});

test("a dry run exits 4 if its plan has a trigger and no candidate, as the pass would", () => {
  const codeOf = (plan: Partial<ImagePlan>): number => {
    const images = imageOutcome({ end: "dry-run", items: [] });
    const planned = { images: imagePlan({ kept: [], ...plan }), containers: null };
    return passExit(pass({ images, plan: planned, containers: null }), null);
  };
  const triggers = [{ kind: "space" }] as const;
  expect(codeOf({ triggers })).toBe(0);
  expect(codeOf({ triggers, candidates: [] })).toBe(4);
  expect(codeOf({ triggers: [], candidates: [] })).toBe(0);
});

test("a pass or plan whose log directories cannot be read exits 3, even if it did the rest", () => {
  const plan = { images: null, containers: containerPlan({ logsError: "no" }) };
  const containers = containerOutcome({ errors: ["logs stay"] });
  expect(passExit(pass({ plan, containers }), null)).toBe(3);
  expect([planExit(plan), planExit({ ...plan, containers: containerPlan() })]).toEqual([3, null]);
});

test("a pass that another one kept waiting too long exits 6", () => {
  const busy = new HostError("lock", "another pass was still running");
  const waited = pass({ images: null, containers: null, error: busy.message });
  expect(passExit(waited, busy)).toBe(6);
});
