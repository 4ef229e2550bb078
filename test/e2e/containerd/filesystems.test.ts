// What gc frees on real filesystems, one of which shows freed space only with its next commit. The runtime is a fake one.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { tryCommand } from "../../support/containerd/command.ts";
import { mebibyte as MiB, mountDisk, unmount } from "../../support/containerd/disk.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { type Json, startNode } from "../binary/node.ts";

const sizeBytes = 512 * MiB;
const has = (filesystem: string): boolean =>
  new RegExp(`\\t${filesystem}$`, "m").test(readFileSync("/proc/filesystems", "utf8"));

describe.each(["ext4", "xfs", "btrfs"] as const)("on %s", (filesystem) => {
  const isThere = has(filesystem);
  if (!isThere) console.warn(`tests on ${filesystem} are skipped: this kernel has none`);

  test.skipIf(!isThere)(
    "gc removes as many images as the low threshold takes, and not one more",
    async () => {
      const home = mkdtempSync(join(tmpdir(), "crigc-filesystem-"));
      const disk = await mountDisk(home, "disk", { sizeBytes, filesystem, reservedPercent: 0 });
      try {
        const usedShare = (): number => {
          const { blocks, bavail } = statfsSync(disk.path);
          return 100 * (1 - bavail / blocks);
        };
        const images = Array.from({ length: 14 }, (_, index) => ({
          id: imageIdOf(`i${index}`),
          repoTags: [`r.example/i${index}:1`],
          layers: [{ id: `i${index}`, bytes: 16 * MiB }],
        }));
        const store = { directory: join(disk.path, "store") };
        await using it = await startNode({
          node: { images },
          store,
          flags: ["--minimum-image-ttl-duration=0s"],
        });
        await tryCommand(["sync", "-f", disk.path]);
        const used = usedShare();
        const low = Math.floor(used) - 11;
        const thresholds = [
          `--image-gc-high-threshold=${low + 5}`,
          `--image-gc-low-threshold=${low}`,
        ];
        const report: Json = await it.json(["gc", "--images", ...thresholds]);
        expect(report.images.end).toBe("target-reached");
        // 16 of 512 MiB are 3.1 %.
        await tryCommand(["sync", "-f", disk.path]);
        expect(usedShare()).toBeLessThanOrEqual(low + 0.5);
        expect(usedShare()).toBeGreaterThan(low - 4.5);
        // The others free with their next commit, or in the background.
        if (filesystem !== "btrfs" && filesystem !== "xfs")
          for (const { result } of report.images.items)
            expect(result.measuredBytes).toBeGreaterThanOrEqual(16 * MiB);
      } finally {
        await unmount(disk.path);
        rmdirSync(disk.path);
        rmSync(home, { recursive: true });
      }
    },
    120_000,
  );
});
