// What doctor says of leftovers on a node: names, removed images, usage.

import { expect, test } from "bun:test";

import { leftoverChecks } from "../../../src/cli/checks/leftovers.ts";
import type { Removal } from "../../../src/model/history.ts";
import { containerId } from "../../../src/model/ids.ts";
import type { WritableLayers } from "../../../src/model/reports.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import type { Facts } from "../../../src/policy/facts.ts";
import { defaultPolicy } from "../../../src/policy/policy.ts";
import { removalRow } from "../../report/build.ts";
import {
  aFilesystem,
  aLedger,
  anImage,
  aSnapshot,
  defaultLimits,
  GIB,
} from "../../support/build/values.ts";

const app = anImage("app");

function warnings(
  seen: Partial<Snapshot>,
  removals: readonly Removal[] = [],
  layers: WritableLayers | null = new Map(),
): Readonly<Record<string, string>> {
  const facts: Facts = {
    snapshot: aSnapshot({ images: [app], ...seen }),
    ledger: aLedger(),
    limits: defaultLimits,
    purpose: { kind: "periodic" },
    parts: { containers: "all", images: true },
    hold: { kind: "none" },
    pressureTargets: [],
    awaited: new Set(),
    last: new Set(),
    paused: new Map(),
  };
  const { decide } = defaultPolicy;
  const checks = leftoverChecks({ ...facts, plan: decide(facts), listedNs: 0n }, removals, layers);
  return Object.fromEntries(
    checks.flatMap(([name, it]) => (it?.result === "warning" ? [[name, it.message]] : [])),
  );
}

const empty = aFilesystem({ availableBytes: 99n * GIB, imageUsedBytes: GIB / 8n });
const removal = (result: Removal["result"]): Removal => removalRow({ subject: app.id, result });

test("doctor warns of nothing on a node whose images have names and explain its disk", () => {
  expect(warnings({ filesystems: [empty] })).toEqual({});
});

test.each([["" as const], ["<none>:<none>" as const]])(
  "doctor warns of an image whose only name is %j",
  (name) => {
    const nameless = { ...app, repoTags: [name], repoDigests: [] };
    expect(warnings({ images: [nameless], filesystems: [empty] })).toEqual({
      "image-names": expect.stringContaining("1 image known by ID only: "),
    });
  },
);

test("doctor warns of a listed image whose last removal found it still listed", () => {
  const filesystems = [empty];
  expect(warnings({ filesystems }, [removal("ghost"), removal("removed")])).toEqual({
    "removed-images": expect.stringContaining("1 image still listed after removal: registry"),
  });
  expect(warnings({ filesystems }, [removal("removed"), removal("ghost")])).toEqual({});
  expect(warnings({ filesystems, images: [anImage("other")] }, [removal("ghost")])).toEqual({});
});

test("doctor warns of bytes that no image, container or log explains, and of a store far larger than its images", () => {
  const full = aFilesystem({ availableBytes: 50n * GIB, imageUsedBytes: GIB });
  const found = warnings({ filesystems: [full] });
  expect(found["unexplained-usage"]).toContain("belong to no image, container or pod log");
  const store = aFilesystem({ availableBytes: 60n * GIB, imageUsedBytes: 40n * GIB });
  expect(warnings({ filesystems: [store] })["unexplained-usage"]).toContain("the image store on");
  const written = new Map([[containerId("c"), { bytes: 40n * GIB, inodes: 1n }]]);
  for (const layers of [written, null])
    expect(warnings({ filesystems: [store] }, [], layers)).toEqual({});
});
