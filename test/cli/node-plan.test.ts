import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../src/model/ledger.ts";
import { hours, instant, totalUptime } from "../../src/model/time.ts";
import { namesText } from "../../src/policy/image/reference.ts";
import { read } from "../state/fixture.ts";
import { aFilesystem, aLedger, anImage, aRecord, NOW } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";
import { openNodeOf } from "./open-node.ts";
import { crigc } from "./world.ts";

test("a plan without the figures of the root directory says so, and exits like gc", async () => {
  const unmeasured = "cannot measure the filesystem of /var/lib/kubelet";
  const root = aFilesystem({ roles: ["nodefs"], capacityBytes: 0n, device: "none", unmeasured });
  const filesystems = [aFilesystem(), root];
  const { node } = openNodeOf({ snapshot: { filesystems } });
  const { code, stderr } = await crigc(["plan"], { open: { node } });
  expect([code, stderr]).toEqual([3, expect.stringContaining(unmeasured)]);
});

describe("with --compat kubelet", () => {
  const image = anImage("a");
  const record = aRecord({
    names: namesText(image),
    firstSeenAt: instant(NOW - hours(72)),
    lastUsedAt: instant(NOW - hours(48)),
    firstSeenUptime: totalUptime(0n),
    lastUsedUptime: totalUptime(hours(24)),
  });
  const shown = async (words: readonly string[], known: ImageRecord = record, youngest = "0s") => {
    // Written five minutes ago.
    const ledger = aLedger({
      totalUptime: totalUptime(hours(72)),
      images: new Map([[image.id, known]]),
    });
    const { node } = openNodeOf({ snapshot: { images: [image] }, ledger });
    const age = ["--minimum-image-ttl-duration", youngest, "--boot-grace", "0s"];
    const flags = ["--compat", "kubelet", ...age, "-o", "json"];
    const { stdout, stderr } = await crigc([...words, ...flags], {
      open: { node, state: () => read(scratch()).reader },
    });
    return { document: JSON.parse(stdout), stderr };
  };
  const known = { firstSeenAt: "2025-12-29T00:00:00Z", lastUsedAt: "2025-12-30T00:00:00Z" };

  test("images and explain show the ledger's records", async () => {
    const images = await shown(["images"]);
    expect(images.document.images).toMatchObject([known]);
    const explained = await shown(["explain", image.id]);
    expect(explained.document.things).toMatchObject([
      { ...known, verdict: "would-go", unusedForMs: (48 * 60 + 5) * 60_000 },
    ]);
  });

  test("plans treat every image as new", async () => {
    const { document } = await shown(["plan", "--all-unused"], record, "1s");
    expect(document.images.kept).toMatchObject([
      { ...known, reason: { code: "too-young", ageMs: 0 } },
    ]);
  });
});
