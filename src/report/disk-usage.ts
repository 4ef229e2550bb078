/** Document `DiskUsage` and the output of `crigc df`. */

import type {
  DirectorySize,
  DirectoryWalk,
  FamilyUsage,
  ImageShare,
  ImageUsage,
  WritableLayers,
} from "../model/disk-usage.ts";
import type { ContainerId } from "../model/ids.ts";
import type { Bounds, DiskUsage } from "../model/plan.ts";
import type { Container } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { counted, dayOf, humanBytes, humanRange } from "./bytes.ts";
import { printUsage } from "./disk.ts";
import { document, type JsonObject, jsonOf } from "./document.ts";
import { imageKeep } from "./image-reasons.ts";
import { containerName } from "./names.ts";
import { column, type Columns, NAME, Printer, RIGHT } from "./printer.ts";
import { clean, present, type Screen } from "./terminal.ts";

export type View = "repository" | "namespace" | "base";

export interface ImageUsageReport {
  readonly images: ImageUsage;
  readonly families: readonly FamilyUsage[];
  /** Images with unknown layers: each counts as if it shared nothing. */
  readonly imagesWithoutLayers: number;
  /** Measured bytes per estimated byte, learned from removals; `null`: not learned yet. */
  readonly measuredPerEstimated: number | null;
}

export interface DiskUsageReport extends ImageUsageReport {
  readonly observedAt: Instant;
  /** Filesystems with images. */
  readonly disks: readonly DiskUsage[];
  readonly containers: readonly Container[];
  readonly writableLayers: WritableLayers | null;
  /** Log directories of pods; `null`: unreadable. */
  readonly podLogs: readonly DirectorySize[] | null;
  /** Other data on the image filesystem. */
  readonly rest: DirectoryWalk | null;
}

export const diskUsageDocument = (report: DiskUsageReport): JsonObject => {
  const { images } = report;
  return document("DiskUsage", {
    ...jsonOf(report, "observedAt", "podLogs", "rest"),
    filesystems: report.disks.map(({ filesystem, ...usage }) => ({
      ...jsonOf(filesystem, "path", "mountpoint", "roles", "capacityBytes", "availableBytes"),
      usedBytes: filesystem.capacityBytes - filesystem.availableBytes,
      ...jsonOf(usage, "usedPercent", "highPercent", "lowPercent"),
    })),
    images: {
      ...shareJson(images.total),
      withoutLayers: report.imagesWithoutLayers,
      measuredPerEstimated: report.measuredPerEstimated,
      byState: images.byState.map(shareJson),
      byRepository: images.byRepository.map(shareJson),
      byNamespace: images.byNamespace.map(shareJson),
      byFamily: images.byFamily.map(shareJson),
    },
    containers:
      largestContainers(report)?.map(({ container, bytes }) => ({
        ...jsonOf(container, "id", "name", "podName", "podNamespace"),
        writableBytes: bytes,
      })) ?? null,
  });
};

const shareJson = ({ unique, shared, ...row }: ImageShare): JsonObject => ({
  ...jsonOf(row, "name", "images", "reportedBytes", "lastUsedAt"),
  uniqueBytes: unique.estimateBytes,
  uniqueAtLeastBytes: unique.lowerBytes,
  uniqueAtMostBytes: unique.upperBytes,
  sharedBytes: shared.estimateBytes,
  sharedAtLeastBytes: shared.lowerBytes,
  sharedAtMostBytes: shared.upperBytes,
});

/** Largest first; `null`: the runtime does not report them. */
function largestContainers({ containers, writableLayers }: DiskUsageReport) {
  if (writableLayers === null) return null;
  const byId = new Map<ContainerId, Container>(containers.map((one) => [one.id, one]));
  return [...writableLayers]
    .flatMap(([id, bytes]) => {
      const container = byId.get(id);
      return container === undefined ? [] : [{ container, bytes }];
    })
    .toSorted((one, other) => compared(other.bytes, one.bytes));
}

export function diskUsageTable(report: DiskUsageReport, view: View, screen: Screen): string {
  const { byState, byRepository, byNamespace, byFamily, total } = report.images;
  const views = {
    repository: { title: "REPOSITORY", unknown: "(untagged)", rows: byRepository },
    namespace: { title: "NAMESPACE", unknown: "(not in use by a pod)", rows: byNamespace },
    base: { title: "BASE", unknown: "(layers not known)", rows: byFamily },
  };
  const { title, unknown, rows } = views[view];
  const printer = new Printer(screen);
  for (const disk of report.disks) printUsage(printer, disk);
  printer.gap();
  const states = byState.map((row) => ({ ...row, name: imageKeep.title(row.name ?? "") }));
  printer.table(shareColumns("STATE"), [...states, { ...total, name: "all" }]);
  printer.gap();
  printer.table(shareColumns(title, unknown), rows.slice(0, ROWS_MAX));
  if (rows.length > ROWS_MAX)
    printer.line(`${counted(rows.length - ROWS_MAX, "more row")}; -o json has all`);
  printer.gap();
  printOtherData(printer, report);
  printer.gap();
  printer.say(SHARES);
  for (const note of usageNotes(report)) printer.say(note);
  return printer.text();
}

/** Maximum rows of a table; documents have all. */
const ROWS_MAX = 20;

export const shareColumns = (title: string, unknown = ""): Columns<ImageShare> => [
  column(title, ({ name }) => clean(name ?? unknown), NAME),
  column("IMAGES", ({ images }) => String(images), RIGHT),
  column("UNIQUE", ({ unique }) => boundsText(unique), RIGHT),
  column("SHARED", ({ shared }) => boundsText(shared), RIGHT),
  column("REPORTED", ({ reportedBytes }) => humanBytes(reportedBytes), RIGHT),
  column("LAST USED", ({ lastUsedAt }) => (lastUsedAt === null ? "never" : dayOf(lastUsedAt))),
];

const SHARES =
  "UNIQUE: layers that only these images have. SHARED: layers that other images have too. Both are estimates in the runtime's sizes.";

/** A range where the sizes tell too little about how they are divided. */
const boundsText = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): string =>
  (upperBytes - lowerBytes) * 4n <= estimateBytes
    ? humanBytes(estimateBytes)
    : humanRange(lowerBytes, upperBytes);

function printOtherData(printer: Printer, report: DiskUsageReport): void {
  const { podLogs, rest } = report;
  printer.line("Other data", "bold");
  const layers = largestContainers(report)?.map(({ container, bytes }) => ({
    path: containerName(container),
    bytes,
  }));
  const total = (sizes: readonly DirectorySize[]): string =>
    humanBytes(sizes.reduce((sum, { bytes }) => sum + bytes, 0n));
  const unknown = "the runtime does not report them";
  printLargest(printer, `container layers: ${layers ? total(layers) : unknown}`, layers ?? []);
  printLargest(printer, `pod logs: ${podLogs ? total(podLogs) : "cannot be read"}`, podLogs ?? []);
  if (rest === null) return;
  const title = `other directories${rest.complete ? "" : " (incomplete: time ran out)"}`;
  const directories = rest.directories.map(({ path, bytes }) => ({
    path: rest.directories.some((it) => isWithin(it.path, path)) ? `${path} (files)` : path,
    bytes,
  }));
  printLargest(printer, `${title}: ${humanBytes(rest.bytes)}`, directories);
}

const isWithin = (path: string, directory: string): boolean =>
  path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);

const SHOWN_OF_EACH = 5;

function printLargest(printer: Printer, title: string, items: readonly DirectorySize[]): void {
  printer.line(`  ${title}`);
  for (const { path, bytes } of items.filter((it) => it.bytes > 0n).slice(0, SHOWN_OF_EACH))
    printer.line(`    ${humanBytes(bytes).padStart(10)}  ${clean(path)}`);
}

/** What the estimates of layers leave open. */
export const usageNotes = (report: ImageUsageReport): readonly string[] =>
  present([
    report.measuredPerEstimated !== null &&
      `Expect a removal to free about ${report.measuredPerEstimated.toFixed(1)} times its unique bytes, as past removals on this node did.`,
    report.imagesWithoutLayers > 0 &&
      `The layers of ${counted(report.imagesWithoutLayers, "image")} are unknown; each counts as if it shared nothing.`,
  ]);
