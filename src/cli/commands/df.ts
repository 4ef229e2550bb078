/** `crigc df`: show what fills the image filesystem. */

import type { DirectorySize, DirectoryWalk, WritableLayers } from "../../model/disk-usage.ts";
import { messageOf, RuntimeError } from "../../model/errors.ts";
import { type Filesystem, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { compared } from "../../model/values.ts";
import {
  diskUsageDocument,
  type DiskUsageReport,
  diskUsageTable,
  type View,
} from "../../report/disk-usage.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../listing.ts";
import { imageUsageReport, shownNode, SNAPSHOT, snapshotFileOf } from "../node-plan.ts";

const VIEWS: readonly View[] = ["repository", "namespace", "base"];
/** Time limit of the whole walk; what it did not see is missing, and the table says so. */
const LOGS_WITHIN_MS = 2_000;
const REST_WITHIN_MS = 3_000;
const DIRECTORIES_MAX = 10;

export const df = command({
  name: "df",
  summary: "show disk usage of images, containers, pod logs and other data",
  doc: "Shows which images take space, and what their removal would free: images in use, kept by each rule, and removable; then by repository, by namespace of the pods that use them, or by the base that they share. UNIQUE counts layers that only these images have, SHARED layers that other images have too; both are estimates from the layers that the runtime reports, shown as a range where sizes do not tell how they are divided, and never more than is in use. Then what else fills the filesystem: container layers, pod logs, and the largest directories found within a few seconds. Changes nothing.",
  options: [
    option("by VIEW", "group images by repository, namespace or base [repository]", {
      choices: VIEWS,
    }),
    { ...SNAPSHOT, help: "show the images in FILE, written by crigc snapshot" },
  ],
  json: true,
  readOnly: true,
  run: async (context) => {
    const isRecorded = snapshotFileOf(context) !== null;
    const prepared = await shownNode(context, {
      allLayers: true,
      parts: { containers: isRecorded ? "none" : "all", images: true },
    });
    const report: DiskUsageReport = {
      ...imageUsageReport(prepared),
      observedAt: prepared.snapshot.observedAt,
      disks: prepared.plan.images?.usage ?? [],
      containers: prepared.snapshot.containers,
      ...(isRecorded ? NO_OTHER_DATA : await otherDataOf(context, prepared.snapshot)),
    };
    const view = VIEWS.find((one) => one === textOf(context, "by")) ?? "repository";
    await print(context, {
      document: () => diskUsageDocument(report),
      table: (screen) => diskUsageTable(report, view, screen),
    });
    return exit.done;
  },
});

type OtherData = Pick<DiskUsageReport, "writableLayers" | "podLogs" | "rest">;

/** Not part of a recorded node. */
const NO_OTHER_DATA: OtherData = { writableLayers: null, podLogs: null, rest: null };

async function otherDataOf(context: CommandContext, snapshot: Snapshot): Promise<OtherData> {
  const imagefs = snapshot.filesystems.find(({ roles }) => roles.includes("imagefs"));
  const logs = logFactsOf(snapshot.logs);
  const [writableLayers, podLogs, rest] = await Promise.all([
    writableLayersOf(context),
    // A missing directory has no logs; one that cannot be read is unknown.
    logs === null ? (snapshot.logs === null ? [] : null) : sizesOfLogs(context, logs),
    imagefs === undefined ? null : restOf(context, imagefs, logs?.podLogsDirectory ?? null),
  ]);
  return { writableLayers, podLogs, rest };
}

/** Without this figure the others are still shown. */
async function writableLayersOf(context: CommandContext): Promise<WritableLayers | null> {
  using node = await context.open.node(context.config);
  try {
    return await node.engine.observe.runtime.writableLayers(context.signal);
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    context.stderr(`crigc: ${clean(messageOf(thrown))}\n`);
    return null;
  }
}

async function sizesOfLogs(
  context: CommandContext,
  logs: {
    readonly podLogsDirectory: string;
    readonly podLogs: readonly { readonly entry: string }[];
  },
): Promise<readonly DirectorySize[]> {
  const endsAt = performance.now() + LOGS_WITHIN_MS;
  const sizes: DirectorySize[] = [];
  for (const { entry } of logs.podLogs) {
    const path = `${logs.podLogsDirectory}/${entry}`;
    const withinMs = Math.max(0, endsAt - performance.now());
    const options = { withinMs, apart: [], most: 0 };
    const walk = await context.open.walkDirectories(path, options, context.signal);
    sizes.push({ path, bytes: walk.bytes });
  }
  return sizes.toSorted((one, other) => compared(other.bytes, one.bytes));
}

/** Excludes the runtime's directory and pod logs, which have their own figures. */
function restOf(
  context: CommandContext,
  { path, mountpoint }: Filesystem,
  podLogsDirectory: string | null,
): Promise<DirectoryWalk> {
  const above = path.slice(0, path.lastIndexOf("/"));
  const store = above === "" || above === mountpoint ? path : above;
  const options = {
    withinMs: REST_WITHIN_MS,
    apart: [store, ...(podLogsDirectory === null ? [] : [podLogsDirectory])],
    most: DIRECTORIES_MAX,
  };
  return context.open.walkDirectories(mountpoint, options, context.signal);
}
