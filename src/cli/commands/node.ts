/** `crigc images` and `crigc df`: what is on the node, and what fills its disk. */

import { layerDirectories } from "../../cri/runtimes.ts";
import { unmeasuredIn } from "../../gc/observe.ts";
import type { Prepared } from "../../gc/prepare.ts";
import { messageOf, RuntimeError } from "../../model/errors.ts";
import type { DirectoryWalk, ImageShare, WritableLayers } from "../../model/reports.ts";
import { type Filesystem, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { compared } from "../../model/values.ts";
import { usageOf } from "../../policy/image/usage.ts";
import { selectedImages } from "../../policy/selection.ts";
import {
  diskUsageDocument,
  type DiskUsageReport,
  diskUsageTable,
} from "../../report/disk-usage.ts";
import {
  entriesOf,
  imageListDocument,
  type ImageListEntry,
  imageListTable,
} from "../../report/images.ts";
import { imageBlock } from "../../report/reasons.ts";
import { imageName, wholeImageName } from "../../report/words.ts";
import {
  command,
  type CommandContext,
  LIST,
  print,
  QUIET,
  sortOption,
  textOf,
} from "../command.ts";
import { exit } from "../exit.ts";
import { imagesOf, imageUsageReport, planNode } from "../node-plan.ts";
import { criteriaOf, FILTER } from "../selection.ts";

export const images = command({
  name: "images",
  inAgent: true,
  summary: "list images: size, first seen, last used, users, kept by",
  doc: "First seen and last used come from the ledger.",
  options: [QUIET, sortOption(["size", "name", "first-seen", "last-used"]), FILTER],
  formats: LIST,
  run: async (context) => {
    const prepared = await planNode(context);
    const { snapshot } = prepared;
    const plan = selectedOf(context, prepared);
    const found = entriesOf(plan, usageOf(snapshot).users);
    const entries = sorted(found, ORDERS[textOf(context, "sort") ?? ""]);
    const report = { observedAt: snapshot.observedAt, entries };
    await print(context, {
      document: imageListDocument(report),
      table: imageListTable,
      rows: (list) => list.images.map((it) => ({ id: it.id, name: wholeImageName(it) })),
    });
  },
});

/** The images that `--filter` selects; all without one. */
function selectedOf(context: CommandContext, prepared: Prepared) {
  const all = imagesOf(prepared.plan);
  const selection = criteriaOf(context);
  if (selection.length === 0) return all;
  const selected = selectedImages([...all.kept, ...all.candidates], selection, prepared);
  return {
    kept: all.kept.filter(({ image }) => selected.has(image.id)),
    candidates: all.candidates.filter(({ image }) => selected.has(image.id)),
  };
}

type Key<Row> = (row: Row) => string | bigint;

/** `key`: absent for the given order, the largest first. */
const sorted = <Row>(rows: readonly Row[], key?: Key<Row>): readonly Row[] =>
  key === undefined ? rows : rows.toSorted((one, other) => compared(key(one), key(other)));

/** Never used comes before used long ago. */
const NEVER = -(2n ** 63n);
const NOW = 2n ** 63n;

const ORDERS: Readonly<Record<string, Key<ImageListEntry>>> = {
  name: ({ image }) => imageName(image),
  "first-seen": ({ record }) => record.firstSeenAt,
  "last-used": ({ users, record }) => (users.length > 0 ? NOW : (record.lastUsedAt ?? NEVER)),
};

const USAGE_ORDERS: Readonly<Record<string, Key<ImageShare>>> = {
  reported: ({ reportedBytes }) => -reportedBytes,
  name: ({ name }) => name ?? "",
  "last-used": ({ lastUsedAt }) => lastUsedAt ?? NEVER,
};

/** Time limit of each walk; what it did not see is missing, and the table says so. */
const WITHIN_MS = 3_000;
const DIRECTORIES_MAX = 10;

export const df = command({
  name: "df",
  inAgent: true,
  summary: "show disk usage of images, containers, pod logs and other data",
  doc: "Shows images in use, kept by each rule, and removable, and what else fills the filesystem: the sizes add up to what is used. Then images by repository, and the largest files and directories found within a few seconds.",
  options: [QUIET, sortOption(["size", "reported", "name", "last-used"]), FILTER],
  formats: LIST,
  run: async (context) => {
    const prepared = await planNode(context, { allLayers: true });
    const usage = imageUsageReport(prepared, selectedOf(context, prepared));
    const order = USAGE_ORDERS[textOf(context, "sort") ?? ""];
    const report: DiskUsageReport = {
      ...usage,
      images: { ...usage.images, byRepository: sorted(usage.images.byRepository, order) },
      observedAt: prepared.snapshot.observedAt,
      disks: prepared.plan.images?.usage ?? [],
      containers: prepared.snapshot.containers,
      ...(await otherDataOf(context, prepared.snapshot)),
    };
    await print(context, {
      document: diskUsageDocument(report),
      table: diskUsageTable,
      rows: ({ images: { byRepository } }) =>
        byRepository.flatMap(({ name }) => (name === null ? [] : [{ id: name, name }])),
    });
    const missing = missingFigures(prepared);
    for (const why of missing) context.note(why);
    return missing.length > 0 || unmeasuredIn(prepared.snapshot) ? exit.runtime : exit.done;
  },
});

/** Beside those of filesystems that could not be measured. */
const missingFigures = ({ plan, snapshot: { logs } }: Prepared): readonly string[] => [
  ...(plan.images?.blocks ?? []).flatMap((block) =>
    block.kind === "invalid-capacity" ? [imageBlock.text(block)] : [],
  ),
  ...(logs?.kind === "failed" ? [logs.message] : []),
];

type OtherData = Pick<DiskUsageReport, "writableLayers" | "podLogs" | "rest">;

async function otherDataOf(
  context: CommandContext,
  { filesystems, logs }: Snapshot,
): Promise<OtherData> {
  const imagefs = filesystems.find(({ roles }) => roles.includes("imagefs"));
  const logDirectory = logFactsOf(logs)?.podLogsDirectory ?? null;
  const walk = (path: string, apart: readonly string[]): Promise<DirectoryWalk> => {
    const options = { withinMs: WITHIN_MS, apart, most: DIRECTORIES_MAX };
    return context.open.walkDirectories(path, options, context.signal);
  };
  const [writableLayers, ofLogs, rest, device] = await Promise.all([
    writableLayersOf(context),
    // A missing directory has no logs; one that cannot be read is unknown.
    logDirectory === null ? (logs === null ? NO_LOGS : null) : walk(logDirectory, []),
    imagefs === undefined ? null : walk(imagefs.mountpoint, apartFrom(imagefs, logDirectory)),
    logDirectory === null ? null : context.open.machine(context.config).device(logDirectory),
  ]);
  const podLogs = ofLogs && { ...ofLogs, areBesideImages: device === imagefs?.device };
  return { writableLayers, podLogs, rest };
}

const NO_LOGS: DirectoryWalk = { directories: [], complete: true, bytes: 0n };

/**
 * Pod logs and what the runtime has of images and containers, which have their own figures: its directory, or the layers
 * in it if its directory is a separate disk, which can hold other data.
 */
function apartFrom(
  { path, mountpoint }: Filesystem,
  logDirectory: string | null,
): readonly string[] {
  const above = path.slice(0, path.lastIndexOf("/"));
  const isDisk = above === "" || above === mountpoint;
  const layers = [path, ...layerDirectories.map((name) => `${above}/${name}`)];
  return [...(isDisk ? layers : [above]), ...(logDirectory === null ? [] : [logDirectory])];
}

/** Without this figure the others are still shown. */
export async function writableLayersOf(context: CommandContext): Promise<WritableLayers | null> {
  using node = await context.open.node(context.config);
  try {
    return await node.engine.observe.runtime.writableLayers(context.signal);
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    context.note(messageOf(thrown));
    return null;
  }
}
