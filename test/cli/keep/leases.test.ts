// keep list shows of each lease when it ends and when it began.

import { expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import { plus, seconds } from "../../../src/model/time.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { aLedger, anImage, NOW } from "../../support/build/values.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const app = anImage("app");
const line = "registry.example/app # crigc: until used or 36h";

async function list(leases: Ledger["leases"], ...words: readonly string[]) {
  const keep = { directoriesRead: [], ...parseKeepFile(`${line}\n`, "/keep.d/a.list") };
  const ledger = aLedger({ leases });
  const { node } = openNodeOf({ snapshot: { images: [app], keep }, ledger });
  return (await crigc(["keep", "list", ...words], { open: { node } })).stdout;
}

test("a lease is shown with its end and its start", async () => {
  expect(JSON.parse(await list(new Map(), "-o", "json")).rules[0]).toMatchObject({
    pattern: "registry.example/app",
    lease: { untilUsed: true, lastsMs: 129_600_000, usedAt: null, remainingMs: 129_600_000 },
    images: [{ id: app.id }],
  });
  expect(await list(new Map())).toMatch(/lease ends in 1d12h or with its first use, since 20/);
});

test("a lease that has ended keeps no image, and is not counted as misspelt", async () => {
  const { watched: startedWatched } = aLedger();
  const key = "/keep.d/a.list registry.example/app until used or 36h";
  const usedAt = plus(NOW, seconds(5));
  const leases = new Map([[key, { startedAt: NOW, startedWatched, usedAt }]]);
  const table = await list(leases);
  expect(table).toMatch(/lease ended with its first use at 20.*:05Z, since 20.*no image/);
  expect(table).not.toContain("1 rule matches");
});
