// Makes rows of the history from passes.

import type { DiskSample, PassRow, Removal } from "../model/history.ts";
import type { PassId } from "../model/ids.ts";
import {
  type ContainerItem,
  type ImageItem,
  type ImageResult,
  isFailed,
  type LogItem,
  outcomeItems,
  type RemovalResult,
  type SandboxItem,
} from "../model/outcome.ts";
import type { Pass, PassStart } from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { Filesystem, FilesystemRole } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";

export function imageRemoval(passId: PassId, item: ImageItem): Removal {
  const { image, chain, frees } = item.candidate;
  const { result } = item;
  const names = [...image.repoTags, ...image.repoDigests];
  const isRemoved = result.kind === "removed";
  return {
    passId,
    kind: "image",
    subject: image.id,
    names,
    trigger: item.trigger.kind,
    signal: item.trigger.kind === "pressure" ? item.trigger.signal : null,
    reason: item.trigger.kind,
    result: result.kind,
    message: imageMessage(result),
    reportedBytes: isRemoved ? result.reportedBytes : image.sizeBytes,
    measuredBytes: isRemoved ? result.measuredBytes : null,
    chainId: chain ?? null,
    freesBytes: frees?.estimateBytes ?? null,
    freesAtLeastBytes: frees?.lowerBytes ?? null,
    freesAtMostBytes: frees?.upperBytes ?? null,
    settled: isRemoved ? result.settled : null,
    at: item.startedAt,
    took: item.took,
  };
}

function imageMessage(result: ImageResult): string | null {
  if (result.kind === "failed") return result.message;
  return result.kind === "skipped" ? result.reason.kind : null;
}

/** When and why something other than an image was removed; its outcome does not say. */
export interface RemovalContext {
  readonly passId: PassId;
  readonly purpose: Purpose;
  readonly at: Instant;
}

export function containerRemoval(
  context: RemovalContext,
  item: ContainerItem | SandboxItem | LogItem,
): Removal {
  const removal = common(context, item);
  if ("planned" in item) {
    const { id, podNamespace, podName, name } = item.planned.container;
    return {
      ...removal,
      kind: "container",
      subject: id,
      names: [`${podNamespace}/${podName}/${name}`],
      message: removal.message ?? item.logError,
      reportedBytes: item.logFiles.length === 0 ? null : item.logBytes,
    };
  }
  if ("sandbox" in item) {
    const { id, namespace, name } = item.sandbox;
    const names = [`${namespace}/${name}`];
    return { ...removal, kind: "sandbox", subject: id, names, reportedBytes: null };
  }
  const { kind, entry, bytes } = item;
  return { ...removal, kind, subject: entry, names: [], reportedBytes: bytes };
}

/** The pass as it ended, or as it began: the row of a killed pass stays like that. */
export function passRow(pass: PassStart & Partial<Pass>): PassRow {
  const { images = null, containers = null } = pass;
  const items = [
    ...(images?.items ?? []),
    ...(containers === null ? [] : outcomeItems(containers)),
  ];
  const results = items.map(({ result }) => result);
  const freed = [images, containers].flatMap((half) => half?.measuredFreedBytes ?? []);
  return {
    id: pass.id,
    kind: pass.kind,
    purpose: pass.purpose.kind,
    signals: signalsOf(pass.purpose),
    startedAt: pass.startedAt,
    endedAt: pass.endedAt ?? null,
    dryRun: pass.dryRun ?? false,
    error: pass.error ?? images?.error ?? pass.plan?.containers?.logsError ?? null,
    imagesEnd: images?.end ?? null,
    containersEnd: containers?.end ?? null,
    removed: results.filter(({ kind }) => kind === "removed" || kind === "already-gone").length,
    failed: results.filter(isFailed).length,
    wantedBytes: images?.wantedBytes ?? null,
    reportedFreedBytes: images?.reportedFreedBytes ?? null,
    measuredFreedBytes: freed.length === 0 ? null : freed.reduce((sum, bytes) => sum + bytes, 0n),
    availableBeforeBytes: images?.availableBefore ?? null,
    availableAfterBytes: images?.availableAfter ?? null,
    capacityBytes: images?.capacityBytes ?? null,
    steps: pass.steps ?? [],
  };
}

const signalsOf = (purpose: Purpose): PassRow["signals"] =>
  purpose.kind === "pressure" ? purpose.signals : [];

/** Frequent passes that found nothing to do would fill the history. */
export function isWorthKeeping(pass: Pass): boolean {
  const row = passRow(pass);
  const isQuiet = row.removed + row.failed === 0 && row.error === null && pass.events.length === 0;
  return !isQuiet || pass.kind === "image-gc" || pass.kind === "gc";
}

/** Whether the history records the disks as this pass saw them. */
export const isOfDisk = ({ kind, images, containers }: Pass): boolean =>
  images !== null || kind === "pressure" || (containers?.measuredFreedBytes ?? 0n) > 0n;

/** The filesystems before the pass, with the thresholds in force and what it freed. */
export function samplesOf(
  pass: Pass,
  filesystems: readonly Filesystem[],
  newest: readonly DiskSample[],
): readonly DiskSample[] {
  const { startedAt, plan } = pass;
  // A container pass judges no filesystem by thresholds, so the previous ones are still in force.
  const thresholds = new Map<string, Pick<DiskSample, "highPercent" | "lowPercent">>(
    plan.images === null
      ? newest.map((it) => [it.device, it])
      : plan.images.usage.map((it) => [it.filesystem.device, it]),
  );
  const freed = freedOn(pass, filesystems);
  return filesystems.map((it) => ({
    at: startedAt,
    device: it.device,
    path: it.path,
    mountpoint: it.mountpoint,
    roles: it.roles,
    capacityBytes: it.capacityBytes,
    availableBytes: it.availableBytes,
    inodes: it.inodes,
    inodesFree: it.inodesFree,
    highPercent: thresholds.get(it.device)?.highPercent ?? null,
    lowPercent: thresholds.get(it.device)?.lowPercent ?? null,
    freedBytes: freed.get(it.device) ?? 0n,
  }));
}

/** By device: images are measured where their first target is, containers where theirs are. */
function freedOn(
  { plan, images, containers }: Pass,
  filesystems: readonly Filesystem[],
): ReadonlyMap<string, bigint> {
  const of = (role: FilesystemRole): string | undefined =>
    filesystems.find(({ roles }) => roles.includes(role))?.device;
  const store = of("imagefs");
  const target = plan.images?.targets.flatMap((it) => ("device" in it ? [it.device] : []))[0];
  const freed = new Map<string, bigint>();
  const add = (device: string | undefined, bytes: bigint | null | undefined): void => {
    if (device !== undefined) freed.set(device, (freed.get(device) ?? 0n) + (bytes ?? 0n));
  };
  add(target ?? store, images?.measuredFreedBytes);
  add(of("containerfs") ?? store, containers?.measuredFreedBytes);
  return freed;
}

type Common = Omit<Removal, "kind" | "subject" | "names" | "reportedBytes">;

function common(
  { passId, purpose, at }: RemovalContext,
  item: { readonly reason: { readonly kind: string }; readonly result: RemovalResult },
): Common {
  return {
    passId,
    at,
    trigger: purpose.kind,
    signal: purpose.kind === "pressure" ? (purpose.signals[0] ?? null) : null,
    reason: item.reason.kind,
    result: item.result.kind,
    message: messageOf(item.result),
    measuredBytes: null,
    chainId: null,
    freesBytes: null,
    freesAtLeastBytes: null,
    freesAtMostBytes: null,
    settled: null,
    took: null,
  };
}

function messageOf(result: RemovalResult): string | null {
  if (result.kind === "failed") return `${result.step}: ${result.message}`;
  return result.kind === "skipped" ? result.what : null;
}
