// When the disk is full: told by status, the metrics and the HTML report of a node whose history shows how it fills.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { type Instant, instantFromMs, minutes, plus, watched } from "../../../src/model/time.ts";
import { historyRow } from "../../../src/store/history.ts";
import { StateFile } from "../../../src/store/state-file.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { type Json, startNode, type TestNode } from "./node.ts";

const flags = [
  "--eviction-hard=nodefs.available<0%",
  "--boot-grace=0s",
  "--minimum-image-ttl-duration=1h",
  "--image-gc-period=1s",
];
const images = [{ id: imageIdOf(0), repoTags: ["r.example/i:1"], sizeBytes: 1_000_000 }];

/** What a running agent knows of the filesystem of the images. */
async function measured(node: TestNode): Promise<Json> {
  const ofImages = ({ roles, measuredAt }: Json) => roles.includes("imagefs") && measuredAt;
  const { filesystems } = await node.status("the disk is measured", (it) =>
    it.filesystems.some(ofImages),
  );
  return filesystems.find(ofImages);
}

const now = (): Instant => instantFromMs(Date.now());

/** Samples every five minutes of a disk that filled by a tenth of what is free now in each hour. */
function fill(node: TestNode, disk: Json, spanMinutes: number): void {
  const file = new StateFile({ directory: node.stateDir, now });
  const free = BigInt(disk.availableBytes);
  const bytesPerHour = free / 10n;
  const records = Array.from({ length: spanMinutes / 5 }, (_, index) => {
    const ago = spanMinutes - 5 * index;
    const sample = {
      kind: "sample" as const,
      row: {
        at: plus(now(), minutes(-ago)),
        device: disk.device,
        path: disk.path,
        mountpoint: disk.mountpoint,
        roles: disk.roles,
        capacityBytes: BigInt(disk.capacityBytes),
        availableBytes: free + (bytesPerHour * BigInt(ago)) / 60n,
        inodes: 0n,
        inodesFree: 0n,
        highPercent: null,
        lowPercent: null,
        freedBytes: 0n,
      },
    };
    return historyRow(sample, watched(0n));
  });
  const write = { kind: "records", isFirst: true, records } as const;
  expect(file.handle(write, () => undefined).kind).toBe("done");
  file[Symbol.dispose]();
}

test("status, metrics and the HTML report forecast when a growing disk is full", async () => {
  await using it = await startNode({ node: { images }, flags });
  const first = it.start("run");
  const disk = await measured(it);
  expect(await first.stop()).toBe(0);
  fill(it, disk, 360);
  await using agent = it.start("run");
  const { forecast } = await measured(it);
  // Others write to the disk of the tester meanwhile.
  expect(forecast.untilFullMs / 3_600_000).toBeWithin(8, 12);
  expect(forecast.bytesPerHour / (disk.availableBytes / 10)).toBeWithin(0.8, 1.2);
  expect(forecast.measuredOverMs / 60_000).toBeWithin(160, 181);
  const sentence =
    /full in \d+h\d*m? if nothing is removed, at [\d.]+ [GT]iB\/h \(measured over \d/i;
  expect((await it.crigc("status")).stdout).toMatch(sentence);
  const metrics = await (await it.ask("/metrics")).text();
  const series = metrics.match(/^crigc_filesystem_full_in_seconds\{[^}]*role="imagefs"\} (\S+)$/m);
  expect(Number(series?.[1]) / 3600).toBeWithin(8, 12);
  expect(metrics).toMatch(/^crigc_filesystem_growth_bytes_per_second\{[^}]*role="imagefs"\} \d/m);
  expect(await agent.stop()).toBe(0);
  const page = join(it.home, "report.html");
  expect((await it.crigc("report", "--html", page)).exitCode).toBe(0);
  expect(readFileSync(page, "utf8")).toMatch(sentence);
});
