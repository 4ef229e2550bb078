/** Document `DiskUsage` and the output of `crigc df`; and a filesystem in words: its figures and thresholds. */

import type { DiskBreakdown, DiskUsage } from "../model/plan.ts";
import type { DirectoryWalk, ImageShare, ImageUsage, WritableLayers } from "../model/reports.ts";
import type { Container } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { document, filesystemJson, jsonOf } from "./document.ts";
import { imageKeep } from "./reasons.ts";
import {
  clean,
  column,
  type Columns,
  paint,
  present,
  Printer,
  RIGHT,
  type Screen,
} from "./terminal.ts";
import { containerName, dayOf, humanBytes, plural, spaceWords } from "./words.ts";

export interface ImageUsageReport {
  readonly images: ImageUsage;
  /** Of all images, also those that a filter leaves out. */
  readonly allImagesBytes: bigint;
  /** Images with unknown layers: each counts as if it shared nothing. */
  readonly imagesWithoutLayers: number;
}

export interface DiskUsageReport extends ImageUsageReport {
  readonly observedAt: Instant;
  /** Filesystems with images; the sums are of the first. */
  readonly disks: readonly DiskUsage[];
  readonly containers: readonly Container[];
  readonly writableLayers: WritableLayers | null;
  /** `null`: unknown. */
  readonly podLogs: PodLogs | null;
  /** Other data on the image filesystem. */
  readonly rest: DirectoryWalk | null;
}

interface PodLogs extends DirectoryWalk {
  /** Whether they are on the filesystem of the images. */
  readonly areBesideImages: boolean;
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
    breakdown: breakdownOf(report),
  });

/** By all containers. */
export const writtenBytes = (layers: WritableLayers): bigint =>
  [...layers.values()].reduce((sum, bytes) => sum + bytes, 0n);

/** What takes the space of the image filesystem: the parts add up to `usedBytes`. `null`: unknown, counted as 0. */
function breakdownOf(report: DiskUsageReport) {
  const { disks, allImagesBytes: imagesBytes, writableLayers, podLogs, rest } = report;
  const disk = disks[0]?.filesystem;
  if (disk === undefined) return null;
  const usedBytes = disk.capacityBytes - (disk.freeBytes ?? disk.availableBytes);
  // With a filesystem of their own, container layers are none of its.
  const isShared = disk.roles.includes("containerfs");
  const containersBytes = writableLayers && (isShared ? writtenBytes(writableLayers) : 0n);
  const podLogsBytes = podLogs && (podLogs.areBesideImages ? podLogs.bytes : 0n);
  const otherBytes = rest?.bytes ?? null;
  const known = [imagesBytes, containersBytes ?? 0n, podLogsBytes ?? 0n, otherBytes ?? 0n];
  const contentBytes = known.reduce((left, bytes) => left - bytes, usedBytes);
  return { imagesBytes, containersBytes, podLogsBytes, otherBytes, contentBytes, usedBytes };
}

export type ImageUsageJson = ReturnType<typeof imageUsageJson>;

export const imageUsageJson = ({ images, ...report }: ImageUsageReport) => ({
  ...shareJson(images.total),
  withoutLayers: report.imagesWithoutLayers,
  byState: images.byState.map(shareJson),
  byRepository: images.byRepository.map(shareJson),
});

type ShareJson = ReturnType<typeof shareJson>;

const shareJson = (share: ImageShare) => jsonOf(share);

/** Largest first; `null`: unknown. */
const largestContainers = ({ containers, writableLayers }: DiskUsageReport) =>
  writableLayers &&
  containers
    .flatMap((container) => {
      const writableBytes = writableLayers.get(container.id);
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
  printer.table(shareColumns("WHAT"), [...withShared(states, images), ...partRows(usage)]);
  printer.gap();
  printer.table(shareColumns("REPOSITORY"), [
    ...withShared(images.byRepository, images),
    { ...images, name: "all of these" },
  ]);
  printer.gap();
  printLargest(printer, usage);
  printer.say(SIZES);
  if (images.withoutLayers > 0)
    printer.say(
      `The layers of ${plural(images.withoutLayers, "image")} are unknown; each counts as if it shared nothing.`,
    );
  return printer.text();
}

interface UsageRow extends Partial<Pick<ShareJson, "images" | "reportedBytes" | "lastUsedAt">> {
  /** `null`: images without a name. */
  readonly name: string | null;
  /** `null`: unknown. */
  readonly uniqueBytes: bigint | null;
}

/** The groups, and the layers that several of them have, which are in none of them. */
function withShared(groups: readonly UsageRow[], all: ImageUsageJson): readonly UsageRow[] {
  const own = groups.reduce((sum, { uniqueBytes }) => sum + (uniqueBytes ?? 0n), 0n);
  return all.uniqueBytes <= own
    ? groups
    : [...groups, { name: "layers of several", uniqueBytes: all.uniqueBytes - own }];
}

function partRows({ breakdown, images, rest, podLogsComplete, filesystems }: DiskUsageDocument) {
  if (breakdown === null) return [];
  const row = (name: string, uniqueBytes: bigint | null): UsageRow => ({ name, uniqueBytes });
  const leftOut = breakdown.imagesBytes - images.uniqueBytes;
  const isComplete = podLogsComplete && rest?.complete === true;
  const content = "content not in any image's size";
  const left = isComplete ? content : `${content}, and files not read in time`;
  return [
    ...(leftOut > 0n ? [row("other images", leftOut)] : []),
    row("container layers", breakdown.containersBytes),
    row("pod logs", breakdown.podLogsBytes),
    row("other files", breakdown.otherBytes),
    row(breakdown.contentBytes < 0n ? "estimated too much" : left, breakdown.contentBytes),
    row(`used of ${clean(filesystems[0]?.mountpoint ?? "")}`, breakdown.usedBytes),
  ];
}

export const shareColumns = (title: string): Columns<UsageRow> => [
  column(title, ({ name }) => clean(name ?? "(untagged)")),
  column("IMAGES", ({ images = "" }) => String(images), RIGHT),
  column(
    "SIZE",
    ({ uniqueBytes: bytes }) => (bytes === null ? "unknown" : humanBytes(bytes)),
    RIGHT,
  ),
  column(
    "REPORTED",
    ({ reportedBytes: bytes }) => (bytes === undefined ? "" : humanBytes(bytes)),
    RIGHT,
  ),
  column("LAST USED", ({ lastUsedAt: at }) => (at === null ? "never" : dayOf(at ?? ""))),
];

const SIZES =
  "SIZE of images: layers that no other row has, an estimate in the runtime's sizes. REPORTED: their sizes, added up.";

function printLargest(printer: Printer, usage: DiskUsageDocument): void {
  const { containers, podLogs, rest, filesystems } = usage;
  const layers = containers?.map((it) => ({
    path: `container ${containerName(it)}`,
    bytes: it.writableBytes,
  }));
  const root = filesystems[0]?.mountpoint;
  const others = (rest?.directories ?? []).map(({ path, bytes }) => ({
    path: path === root ? `${path} (files)` : path,
    bytes,
  }));
  const all = [layers ?? [], podLogs ?? [], others].flatMap((sizes) =>
    sizes.filter(({ bytes }) => bytes > 0n).slice(0, SHOWN_OF_EACH),
  );
  if (all.length > 0) printer.line("Largest container layers, pod logs, files and directories:");
  for (const { path, bytes } of all)
    printer.line(`  ${humanBytes(bytes).padStart(10)}  ${clean(path)}`);
  printer.gap();
}

const SHOWN_OF_EACH = 5;

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
    /** `null`: no threshold applies to the filesystem. */
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
    `other data ${humanBytes(it.otherBytes)}`,
  ]);
  return `${parts.join(", ")} of ${humanBytes(it.usedBytes)} used`;
}
