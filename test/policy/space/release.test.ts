import { describe, expect, test } from "bun:test";

import type { ReleaseRecord } from "../../../src/model/ledger.ts";
import {
  learnRelease,
  noRelease,
  type ReleaseSign,
  spaceReleaseOf,
} from "../../../src/policy/space/release.ts";

const UNKNOWN = { name: "containerd", version: "2.1.9" };
const after = (...signs: readonly ReleaseSign[]): ReleaseRecord =>
  signs.reduce(learnRelease, noRelease);
const release = (...signs: readonly ReleaseSign[]) => spaceReleaseOf(UNKNOWN, after(...signs));

describe("what removals teach of a runtime", () => {
  test.each<[string, readonly ReleaseSign[], string]>([
    ["nothing is known before the first removal", [], "unknown"],
    ["one removal after which none followed makes it immediate", ["none-followed"], "immediate"],
    ["one delay proves nothing", ["more-followed"], "unknown"],
    ["two delays make it delayed", ["more-followed", "more-followed"], "delayed"],
    [
      "a delay and a removal after which none followed make it immediate",
      ["more-followed", "none-followed"],
      "immediate",
    ],
    [
      "two removals of which nothing is seen prove nothing",
      ["nothing-seen", "nothing-seen"],
      "unknown",
    ],
    [
      "three removals of which nothing is seen make it immediate: their images share all layers",
      ["nothing-seen", "nothing-seen", "nothing-seen"],
      "immediate",
    ],
    [
      "three removals whose space is there at once make it immediate",
      ["there-at-once", "there-at-once", "there-at-once"],
      "immediate",
    ],
    [
      "space that is there at once after a delay may be that of the removal before",
      ["more-followed", "there-at-once", "there-at-once", "there-at-once"],
      "unknown",
    ],
    [
      "one delay does not outweigh three removals of which nothing is seen",
      ["more-followed", "nothing-seen", "nothing-seen", "nothing-seen"],
      "immediate",
    ],
    [
      "a delay that was learned is given up when none follows",
      ["more-followed", "more-followed", "none-followed"],
      "immediate",
    ],
    [
      "a delay that was seen often outlasts one removal after which none followed",
      [...Array<ReleaseSign>(20).fill("more-followed"), "none-followed"],
      "delayed",
    ],
    [
      "a delay that was seen often is given up after two removals after which none followed",
      [...Array<ReleaseSign>(20).fill("more-followed"), "none-followed", "none-followed"],
      "immediate",
    ],
    [
      "a delay that was learned stays while nothing is seen",
      ["more-followed", "more-followed", "nothing-seen", "nothing-seen", "nothing-seen"],
      "delayed",
    ],
  ])("%s", (_, signs, expected) => {
    expect(release(...signs)).toBe(expected as ReturnType<typeof release>);
  });
});

describe("known versions", () => {
  test.each([
    ["cri-o", "1.37.0", "immediate"],
    ["containerd", "2.0.0-rc.1", "delayed"],
    ["containerd", "2.0.0", "delayed"],
    ["containerd", "2.0.4", "delayed"],
    ["containerd", "v2.0.4", "delayed"],
    ["containerd", "2.0.5", "unknown"],
    ["containerd", "1.7.24", "unknown"],
    ["containerd", "a build of ours", "unknown"],
  ] as const)("%s %s is %s", (name, version, expected) => {
    expect(spaceReleaseOf({ name, version }, noRelease)).toBe(expected);
  });

  test("ignore what was learned", () => {
    const record = after("none-followed");
    expect(spaceReleaseOf({ name: "containerd", version: "2.0.3" }, record)).toBe("delayed");
  });
});
