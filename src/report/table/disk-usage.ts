/** Document `DiskUsage` and the output of `crigc df`. */

import type {
  DirectorySize,
  DirectoryWalk,
  FamilyUsage,
  ImageShare,
  ImageUsage,
  WritableLayers,
} from "../../model/disk-usage.ts";
import type { ContainerId } from "../../model/ids.ts";
import type { Bounds, DiskUsage } from "../../model/plan.ts";
import type { Container } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import { counted, dayOf, humanBytes, humanRange } from "../bytes.ts";
import { document, type JsonObject, picked, timeOf } from "../document/json.ts";
import { imageKeep } from "../image-reasons.ts";
import { containerName } from "../names.ts";
import { clean, paint, present, type Screen } from "../terminal.ts";
import { usageLines } from "./disk.ts";
import { text } from "./plan.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

export type View = "repository" | "namespace" | "family";

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

const VIEWS: Readonly<Record<View, { readonly title: string; readonly unknown: string }>> = {
  repository: { title: "REPOSITORY", unknown: "(untagged)" },
  namespace: { title: "NAMESPACE", unknown: "(not in use by a pod)" },
  family: { title: "BASE", unknown: "(layers not known)" },
};
/** Maximum rows of a table; documents have all. */
const ROWS_MAX = 20;

export const diskUsageDocument = (report: DiskUsageReport): JsonObject =>
  document("DiskUsage", {
    observedAt: timeOf(report.observedAt),
    filesystems: report.disks.map(({ filesystem, usedPercent, highPercent, lowPercent }) => ({
      ...picked(filesystem, "path", "mountpoint", "roles", "capacityBytes", "availableBytes"),
      usedBytes: filesystem.capacityBytes - filesystem.availableBytes,
      usedPercent,
      highPercent,
      lowPercent,
    })),
    images: {
      ...shareJson(report.images.total),
      withoutLayers: report.imagesWithoutLayers,
      measuredPerEstimated: report.measuredPerEstimated,
      byState: report.images.byState.map(shareJson),
      byRepository: report.images.byRepository.map(shareJson),
      byNamespace: report.images.byNamespace.map(shareJson),
      byFamily: report.images.byFamily.map(shareJson),
    },
    containers:
      report.writableLayers === null
        ? null
        : largestContainers(report, report.writableLayers).map(({ container, bytes }) => ({
            ...picked(container, "id", "name", "podName", "podNamespace"),
            writableBytes: bytes,
          })),
    podLogs: report.podLogs?.map(directoryJson) ?? null,
    rest:
      report.rest === null
        ? null
        : {
            ...picked(report.rest, "complete", "bytes"),
            directories: report.rest.directories.map(directoryJson),
          },
  });

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

const directoryJson = ({ path, bytes }: DirectorySize): JsonObject => ({ path, bytes });

export function diskUsageTable(report: DiskUsageReport, view: View, screen: Screen): string {
  const { images } = report;
  const rows = {
    repository: images.byRepository,
    namespace: images.byNamespace,
    family: images.byFamily,
  };
  return text([
    ...report.disks.flatMap((disk) => usageLines(disk, screen)),
    "",
    ...shareTable(
      "STATE",
      [...images.byState.map(stateRow), { ...images.total, name: "all" }],
      screen,
    ),
    "",
    ...shareTable(
      VIEWS[view].title,
      rows[view].map((row) => ({ ...row, name: row.name ?? VIEWS[view].unknown })),
      screen,
    ),
    "",
    ...otherDataLines(report, screen),
    ...notes(report, screen),
  ]);
}

const stateRow = (row: ImageShare): ImageShare => ({
  ...row,
  name: imageKeep.title(row.name ?? ""),
});

const SHARE_COLUMNS: readonly Column[] = [
  { title: "IMAGES", align: "right" },
  { title: "UNIQUE", align: "right" },
  { title: "SHARED", align: "right" },
  { title: "REPORTED", align: "right" },
  { title: "LAST USED" },
];

function shareTable(title: string, rows: readonly ImageShare[], screen: Screen): readonly string[] {
  const shown = rows.slice(0, ROWS_MAX);
  const lines = tableLines(
    [{ title, minimumWidth: 16, cut: "middle" }, ...SHARE_COLUMNS],
    shown.map((row) => [
      clean(row.name ?? ""),
      String(row.images),
      boundsText(row.unique),
      boundsText(row.shared),
      humanBytes(row.reportedBytes),
      row.lastUsedAt === null ? "never" : dayOf(row.lastUsedAt),
    ]),
    screen,
  );
  return [...lines, ...moreLine(rows.length - shown.length)];
}

/** A range where the sizes tell too little about how they are divided. */
const boundsText = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): string =>
  (upperBytes - lowerBytes) * 4n <= estimateBytes
    ? humanBytes(estimateBytes)
    : humanRange(lowerBytes, upperBytes);

const moreLine = (more: number): readonly string[] =>
  more > 0 ? [`${counted(more, "more row")}; -o json has all`] : [];

interface Weighed {
  readonly name: string;
  readonly bytes: bigint;
}

function otherDataLines(report: DiskUsageReport, screen: Screen): readonly string[] {
  const { writableLayers, podLogs, rest } = report;
  const containers = writableLayers === null ? null : largestContainers(report, writableLayers);
  return [
    paint(screen, "bold", "Other data"),
    ...weighed(
      "container layers",
      containers?.map(({ container, bytes }) => ({ name: containerName(container), bytes })) ??
        "the runtime does not report them",
    ),
    ...weighed(
      "pod logs",
      podLogs?.map(({ path, bytes }) => ({ name: path, bytes })) ?? "cannot be read",
    ),
    ...(rest === null
      ? []
      : weighed(
          rest.complete ? "other directories" : "other directories (incomplete: time ran out)",
          rest.directories.map(({ path, bytes }) => ({
            name: rest.directories.some((it) => isWithin(it.path, path)) ? `${path} (files)` : path,
            bytes,
          })),
          rest.bytes,
        )),
  ];
}

const isWithin = (path: string, directory: string): boolean =>
  path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);

const SHOWN_OF_EACH = 5;

function weighed(
  title: string,
  items: readonly Weighed[] | string,
  bytes?: bigint,
): readonly string[] {
  if (typeof items === "string") return [`  ${title}: ${items}`];
  const sum = bytes ?? items.reduce((total, item) => total + item.bytes, 0n);
  const shown = items.filter((item) => item.bytes > 0n).slice(0, SHOWN_OF_EACH);
  return [
    `  ${title}: ${humanBytes(sum)}`,
    ...shown.map((it) => `    ${humanBytes(it.bytes).padStart(10)}  ${clean(it.name)}`),
  ];
}

function notes(report: DiskUsageReport, screen: Screen): readonly string[] {
  const { imagesWithoutLayers, measuredPerEstimated } = report;
  const lines = present([
    "UNIQUE: layers that only these images have. SHARED: layers that other images have too. Both are estimates in the runtime's sizes.",
    measuredPerEstimated !== null &&
      `On this node a removal frees ${measuredPerEstimated.toFixed(2)} times its estimate.`,
    imagesWithoutLayers > 0 &&
      `The layers of ${counted(imagesWithoutLayers, "image")} are unknown; each counts as if it shared nothing.`,
  ]);
  return ["", ...lines.flatMap((line) => wrapped(line, screen))];
}

function largestContainers(
  { containers }: DiskUsageReport,
  layers: WritableLayers,
): readonly { readonly container: Container; readonly bytes: bigint }[] {
  const byId = new Map<ContainerId, Container>(containers.map((one) => [one.id, one]));
  return [...layers]
    .flatMap(([id, bytes]) => {
      const container = byId.get(id);
      return container === undefined ? [] : [{ container, bytes }];
    })
    .toSorted((one, other) => compared(other.bytes, one.bytes));
}
