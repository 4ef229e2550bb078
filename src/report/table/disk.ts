/** A filesystem in three lines: its figures, a bar, and its thresholds. */

import type { DiskUsage } from "../../model/plan.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import { humanBytes } from "../bytes.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { diskBar } from "./bar.ts";

/** With the thresholds that the plan judged it by. */
export function usageLines(usage: DiskUsage, screen: Screen): readonly string[] {
  return [
    figuresLine(usage.filesystem, usage.usedPercent, screen),
    ...diskBar({ usedPercent: usage.usedPercent, thresholds: usage }, screen, "  "),
    ...inodesLine(usage.filesystem, usage.inodesUsedPercent),
  ];
}

export function figuresLine(filesystem: Filesystem, percent: number, screen: Screen): string {
  const used = filesystem.capacityBytes - filesystem.availableBytes;
  const name = paint(screen, "bold", clean(filesystem.mountpoint));
  return `${name} (${filesystem.roles.join(", ")}): ${humanBytes(used)} of ${humanBytes(filesystem.capacityBytes)} used (${percent}%), ${humanBytes(filesystem.availableBytes)} free`;
}

/** Inodes are said only where a threshold watches them. */
function inodesLine(filesystem: Filesystem, percent: number | null): readonly string[] {
  if (percent === null) return [];
  return [`  inodes: ${percent}% used, ${filesystem.inodesFree} of ${filesystem.inodes} free`];
}
