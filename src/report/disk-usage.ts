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
import { counted, dayCell, humanBytes, humanRange } from "./bytes.ts";
import { usageLines } from "./disk.ts";
import { document, type JsonObject, picked, timeOf } from "./document.ts";
import { imageKeep } from "./image-reasons.ts";
import { containerName } from "./names.ts";
import { column, type ItemColumn, itemLines, NAME, RIGHT, text, wrapped } from "./table.ts";
import { clean, paint, present, type Screen } from "./terminal.ts";

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
  const { images, podLogs, rest } = report;
  return document("DiskUsage", {
    observedAt: timeOf(report.observedAt),
    filesystems: report.disks.map(({ filesystem, usedPercent, highPercent, lowPercent }) => ({
      ...picked(filesystem, "path", "mountpoint", "roles", "capacityBytes", "availableBytes"),
      usedBytes: filesystem.capacityBytes - filesystem.availableBytes,
      usedPercent,
      highPercent,
      lowPercent,
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
        ...picked(container, "id", "name", "podName", "podNamespace"),
        writableBytes: bytes,
      })) ?? null,
    podLogs: podLogs?.map((it) => picked(it, "path", "bytes")) ?? null,
    rest: rest && {
      ...picked(rest, "complete", "bytes"),
      directories: rest.directories.map((it) => picked(it, "path", "bytes")),
    },
  });
};

const shareJson = (row: ImageShare): JsonObject => ({
  ...picked(row, "name", "images", "reportedBytes"),
  uniqueBytes: row.unique.estimateBytes,
  uniqueAtLeastBytes: row.unique.lowerBytes,
  uniqueAtMostBytes: row.unique.upperBytes,
  sharedBytes: row.shared.estimateBytes,
  sharedAtLeastBytes: row.shared.lowerBytes,
  sharedAtMostBytes: row.shared.upperBytes,
  lastUsedAt: timeOf(row.lastUsedAt),
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
  const states = byState.map((row) => ({ ...row, name: imageKeep.title(row.name ?? "") }));
  return text([
    ...report.disks.flatMap((disk) => usageLines(disk, screen)),
    "",
    ...shareLines("STATE", [...states, { ...total, name: "all" }], screen),
    "",
    ...shareLines(
      title,
      rows.map((row) => ({ ...row, name: row.name ?? unknown })),
      screen,
    ),
    "",
    paint(screen, "bold", "Other data"),
    ...otherDataLines(report),
    "",
    ...[SHARES, ...usageNotes(report)].flatMap((line) => wrapped(line, screen)),
  ]);
}

/** Maximum rows of a table; documents have all. */
const ROWS_MAX = 20;

function shareLines(title: string, rows: readonly ImageShare[], screen: Screen): readonly string[] {
  const columns: readonly ItemColumn<ImageShare>[] = [
    column(title, ({ name }) => clean(name ?? ""), NAME),
    column("IMAGES", ({ images }) => String(images), RIGHT),
    column("UNIQUE", ({ unique }) => boundsText(unique), RIGHT),
    column("SHARED", ({ shared }) => boundsText(shared), RIGHT),
    column("REPORTED", ({ reportedBytes }) => humanBytes(reportedBytes), RIGHT),
    column("LAST USED", ({ lastUsedAt }) => dayCell(lastUsedAt)),
  ];
  const more = rows.length - ROWS_MAX;
  return [
    ...itemLines({ columns, items: rows.slice(0, ROWS_MAX) }, screen),
    ...(more > 0 ? [`${counted(more, "more row")}; -o json has all`] : []),
  ];
}

const SHARES =
  "UNIQUE: layers that only these images have. SHARED: layers that other images have too. Both are estimates in the runtime's sizes.";

/** A range where the sizes tell too little about how they are divided. */
const boundsText = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): string =>
  (upperBytes - lowerBytes) * 4n <= estimateBytes
    ? humanBytes(estimateBytes)
    : humanRange(lowerBytes, upperBytes);

function otherDataLines(report: DiskUsageReport): readonly string[] {
  const { podLogs, rest } = report;
  const layers = largestContainers(report)?.map(({ container, bytes }) => ({
    path: containerName(container),
    bytes,
  }));
  const directories = rest?.directories.map(({ path, bytes }) => ({
    path: rest.directories.some((it) => isWithin(it.path, path)) ? `${path} (files)` : path,
    bytes,
  }));
  const title = `other directories${rest?.complete === false ? " (incomplete: time ran out)" : ""}`;
  return [
    ...largestLines("container layers", layers ?? "the runtime does not report them"),
    ...largestLines("pod logs", podLogs ?? "cannot be read"),
    ...(directories === undefined ? [] : largestLines(title, directories, rest?.bytes)),
  ];
}

const isWithin = (path: string, directory: string): boolean =>
  path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);

const SHOWN_OF_EACH = 5;

function largestLines(
  title: string,
  items: readonly DirectorySize[] | string,
  total?: bigint,
): readonly string[] {
  if (typeof items === "string") return [`  ${title}: ${items}`];
  const sum = total ?? items.reduce((bytes, item) => bytes + item.bytes, 0n);
  const shown = items.filter(({ bytes }) => bytes > 0n).slice(0, SHOWN_OF_EACH);
  return [
    `  ${title}: ${humanBytes(sum)}`,
    ...shown.map(({ path, bytes }) => `    ${humanBytes(bytes).padStart(10)}  ${clean(path)}`),
  ];
}

/** What the estimates of layers leave open. */
export const usageNotes = (report: ImageUsageReport): readonly string[] =>
  present([
    report.measuredPerEstimated !== null &&
      `On this node a removal frees ${report.measuredPerEstimated.toFixed(2)} times its estimate.`,
    report.imagesWithoutLayers > 0 &&
      `The layers of ${counted(report.imagesWithoutLayers, "image")} are unknown; each counts as if it shared nothing.`,
  ]);
