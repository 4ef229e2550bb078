/** A filesystem in words: its figures and thresholds. */

import type { DiskBreakdown, DiskUsage } from "../model/plan.ts";
import { filesystemJson, jsonOf } from "./document.ts";
import type { Printer } from "./printer.ts";
import { clean, paint, present } from "./terminal.ts";
import { humanBytes, spaceWords } from "./words.ts";

export type UsageJson = ReturnType<typeof usageJson>;

/** A filesystem of a plan with the thresholds in force. */
export const usageJson = ({ filesystem, evictions = [], ...usage }: DiskUsage) => ({
  ...filesystemJson(filesystem),
  ...jsonOf(usage, "usedPercent", "inodesUsedPercent", "highPercent", "lowPercent"),
  evictions: evictions.map((mark) => jsonOf(mark)),
});

/** Inodes are shown only if they have a threshold. */
export function printUsage(printer: Printer, usage: UsageJson): void {
  const { inodesUsedPercent: percent, inodesFree, inodes } = usage;
  printFigures(printer, usage);
  if (percent !== null) printer.line(`  inodes: ${percent}% used, ${inodesFree} of ${inodes} free`);
}

type Figures = ReturnType<typeof filesystemJson> &
  Partial<Pick<UsageJson, "evictions">> & {
    /** `null`: the filesystem has no threshold of its own. */
    readonly lowPercent: number | null;
    readonly highPercent: number | null;
  };

/** `rest`: what else to say of the filesystem. */
export function printFigures(printer: Printer, figures: Figures, rest = ""): void {
  const { mountpoint, roles, usedPercent: used, lowPercent: low, highPercent: high } = figures;
  const name = paint(printer.screen, "bold", clean(mountpoint));
  printer.say(`${name}: ${spaceWords(figures)}${rest} (${roles.join(", ")})`);
  if (low === null || high === null) return;
  const isOver = used >= high;
  printer.say(`low ${low}%, high ${high}%`, isOver ? "red" : "dim", "  ");
  for (const { usedPercent, signal, met } of figures.evictions ?? [])
    printer.say(
      `eviction at ${usedPercent}%: ${signal}${met ? ", met" : ""}`,
      met ? "red" : "dim",
      "  ",
    );
}

/** What fills a disk, as one clause: for event `ImageGCFutile` and for `plan`. */
export function breakdownWords(it: DiskBreakdown): string {
  const parts = present([
    `${it.containersBytes === null ? "images and container layers" : "images"} about ${humanBytes(it.imagesBytes)}`,
    it.containersBytes !== null && `containers ${humanBytes(it.containersBytes)}`,
    it.logsBytes !== null && `pod logs ${humanBytes(it.logsBytes)}`,
    `other data ${humanBytes(it.otherBytes)}`,
  ]);
  return `${parts.join(", ")} of ${humanBytes(it.capacityBytes - it.availableBytes)} used`;
}
