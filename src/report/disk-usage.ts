/** Document `DiskUsage` and the output of `crigc df`. */

import type { DiskUsage } from "../model/plan.ts";
import type {
  DirectorySize,
  DirectoryWalk,
  ImageShare,
  ImageUsage,
  WritableLayers,
} from "../model/reports.ts";
import type { Container } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { printUsage, usageJson } from "./disk.ts";
import { document, jsonOf } from "./document.ts";
import { imageKeep } from "./image-reasons.ts";
import { column, type Columns, Printer, RIGHT } from "./printer.ts";
import { clean, present, type Screen } from "./terminal.ts";
import { containerName, counted, dayOf, humanBytes } from "./words.ts";

export interface ImageUsageReport {
  readonly images: ImageUsage;
  /** Images with unknown layers: each counts as if it shared nothing. */
  readonly imagesWithoutLayers: number;
}

export interface DiskUsageReport extends ImageUsageReport {
  readonly observedAt: Instant;
  /** Filesystems with images. */
  readonly disks: readonly DiskUsage[];
  readonly containers: readonly Container[];
  readonly writableLayers: WritableLayers | null;
  /** Log directories of pods; `null`: unknown. */
  readonly podLogs: Pick<DirectoryWalk, "directories" | "complete"> | null;
  /** Other data on the image filesystem. */
  readonly rest: DirectoryWalk | null;
}

export type DiskUsageDocument = ReturnType<typeof diskUsageDocument>;

export const diskUsageDocument = (report: DiskUsageReport) =>
  document("DiskUsage", {
    ...jsonOf(report, "observedAt", "rest"),
    podLogs: report.podLogs && report.podLogs.directories.map((it) => jsonOf(it)),
    podLogsComplete: report.podLogs?.complete ?? true,
    filesystems: report.disks.map((disk) => ({
      ...usageJson(disk),
      usedBytes: disk.filesystem.capacityBytes - disk.filesystem.availableBytes,
    })),
    images: imageUsageJson(report),
    containers: largestContainers(report),
  });

export type ImageUsageJson = ReturnType<typeof imageUsageJson>;

export const imageUsageJson = ({ images, ...report }: ImageUsageReport) => ({
  ...shareJson(images.total),
  withoutLayers: report.imagesWithoutLayers,
  byState: images.byState.map(shareJson),
  byRepository: images.byRepository.map(shareJson),
});

type ShareJson = ReturnType<typeof shareJson>;

const shareJson = (share: ImageShare) =>
  jsonOf(
    share,
    "name",
    "images",
    "removable",
    "reportedBytes",
    "uniqueBytes",
    "sharedBytes",
    "lastUsedAt",
  );

/** Largest first; `null`: unknown. */
const largestContainers = ({ containers, writableLayers }: DiskUsageReport) =>
  writableLayers &&
  containers
    .flatMap((container) => {
      const writableBytes = writableLayers.get(container.id)?.bytes;
      const names = jsonOf(container, "id", "name", "podName", "podNamespace");
      return writableBytes === undefined ? [] : [{ ...names, writableBytes }];
    })
    .toSorted((one, other) => compared(other.writableBytes, one.writableBytes));

export function diskUsageTable(usage: DiskUsageDocument, screen: Screen): string {
  const { images } = usage;
  const printer = new Printer(screen);
  for (const disk of usage.filesystems) printUsage(printer, disk);
  printer.gap();
  const states = images.byState.map((row) => ({ ...row, name: imageKeep.title(row.name ?? "") }));
  printer.table(shareColumns("STATE"), [...states, { ...images, name: "all" }]);
  printer.gap();
  printer.table(shareColumns("REPOSITORY"), images.byRepository);
  printer.gap();
  printOtherData(printer, usage);
  printer.gap();
  printer.say(SHARES);
  for (const note of usageNotes(images)) printer.say(note);
  return printer.text();
}

export const shareColumns = (title: string): Columns<ShareJson> => [
  column(title, ({ name }) => clean(name ?? "(untagged)")),
  column("IMAGES", ({ images }) => String(images), RIGHT),
  column("UNIQUE", ({ uniqueBytes }) => humanBytes(uniqueBytes), RIGHT),
  column("SHARED", ({ sharedBytes }) => humanBytes(sharedBytes), RIGHT),
  column("REPORTED", ({ reportedBytes }) => humanBytes(reportedBytes), RIGHT),
  column("LAST USED", ({ lastUsedAt }) => (lastUsedAt === null ? "never" : dayOf(lastUsedAt))),
];

const SHARES =
  "UNIQUE: layers that only these images have. SHARED: layers that other images have too. Both are estimates in the runtime's sizes.";

function printOtherData(
  printer: Printer,
  { containers, podLogs, podLogsComplete, rest }: DiskUsageDocument,
): void {
  printer.line("Other data", "bold");
  const layers = containers?.map((it) => ({ path: containerName(it), bytes: it.writableBytes }));
  const total = (sizes: readonly DirectorySize[]): string =>
    humanBytes(sizes.reduce((sum, { bytes }) => sum + bytes, 0n));
  const part = ({ complete }: { readonly complete: boolean }) => (complete ? "" : " (incomplete)");
  printLargest(printer, `container layers: ${layers ? total(layers) : "unknown"}`, layers ?? []);
  const logs = podLogs ? total(podLogs) : "unknown";
  printLargest(printer, `pod logs${part({ complete: podLogsComplete })}: ${logs}`, podLogs ?? []);
  if (rest === null) return;
  const title = `other directories${part(rest)}`;
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
export const usageNotes = ({ withoutLayers }: ImageUsageJson) =>
  present([
    withoutLayers > 0 &&
      `The layers of ${counted(withoutLayers, "image")} are unknown; each counts as if it shared nothing.`,
  ]);
