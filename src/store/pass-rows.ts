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
  type Pass,
  type PassStart,
  type RemovalResult,
  type SandboxItem,
  withLate,
} from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { Filesystem, FilesystemRole } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";

/** What a record says of a removal that told nothing more. */
const UNKNOWN = {
  signal: null,
  message: null,
  reportedBytes: null,
  measuredBytes: null,
  chainId: null,
  freesBytes: null,
  freesAtLeastBytes: null,
  freesAtMostBytes: null,
  settled: null,
  took: null,
} as const;

export function imageRemoval(passId: PassId, item: ImageItem): Removal {
  const { candidate, trigger, result, lateBytes, startedAt, took } = item;
  const { image, chain, frees } = candidate;
  return {
    ...UNKNOWN,
    passId,
    kind: "image",
    subject: image.id,
    names: [...image.repoTags, ...image.repoDigests],
    trigger: trigger.kind,
    signal: trigger.kind === "pressure" ? trigger.signal : null,
    reason: trigger.kind,
    result: result.kind,
    reportedBytes: image.sizeBytes,
    chainId: chain ?? null,
    freesBytes: frees?.estimateBytes ?? null,
    freesAtLeastBytes: frees?.lowerBytes ?? null,
    freesAtMostBytes: frees?.upperBytes ?? null,
    at: startedAt,
    took,
    ...measuredOf(withLate(result, lateBytes)),
  };
}

function measuredOf(result: ImageResult): Partial<Removal> {
  if (result.kind === "failed") return { message: result.message };
  if (result.kind === "skipped") return { message: result.reason.kind };
  if (result.kind === "ghost") return {};
  const { kind: _, ...measured } = result;
  return measured;
}

/** When and why something other than an image was removed; its outcome does not say. */
export interface RemovalContext {
  readonly passId: PassId;
  readonly purpose: Purpose;
  readonly at: Instant;
}

export function containerRemoval(
  { passId, purpose, at }: RemovalContext,
  item: ContainerItem | SandboxItem | LogItem,
): Removal {
  const { reason, result } = item;
  const removal = {
    ...UNKNOWN,
    passId,
    at,
    trigger: purpose.kind,
    signal: signalsOf(purpose)[0] ?? null,
    reason: reason.kind,
    result: result.kind,
    message: messageOf(result),
  };
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
    return { ...removal, kind: "sandbox", subject: id, names: [`${namespace}/${name}`] };
  }
  const { kind, entry, bytes } = item;
  return { ...removal, kind, subject: entry, names: [], reportedBytes: bytes };
}

function messageOf(result: RemovalResult): string | null {
  if (result.kind === "failed") return `${result.step}: ${result.message}`;
  return result.kind === "skipped" ? result.what : null;
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
  const measured = filesystems.filter((it) => it.unmeasured === undefined);
  return measured.map(({ unmeasured: ____, ...it }) => {
    const { imageUsedBytes: _, imageInodesUsed: __, containerUsedBytes: ___, ...disk } = it;
    const { highPercent = null, lowPercent = null } = thresholds.get(it.device) ?? {};
    const freedBytes = freed.get(it.device) ?? 0n;
    return { ...disk, at: startedAt, highPercent, lowPercent, freedBytes };
  });
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
