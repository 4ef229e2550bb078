/** Makes rows of the history from passes, and records them as they go on. */

import type { PassRow, Removal } from "../model/history.ts";
import type { PassId } from "../model/ids.ts";
import {
  type Event,
  type ImageItem,
  type ImageResult,
  isFailed,
  outcomeItems,
  type Pass,
  type PassKind,
  type PassStart,
  type PodItem,
  type RemovalResult,
} from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { Instant } from "../model/time.ts";
import type { State } from "./state.ts";

/** Nothing here throws or waits for the disk. */
export class Recorder {
  readonly state: State;
  readonly #now: () => Instant;
  #purpose: Purpose = { kind: "periodic" };
  /** How the last pass of each kind ended. */
  readonly #ends = new Map<PassKind, string>();

  constructor(state: State, now: () => Instant) {
    this.state = state;
    this.#now = now;
  }

  passStarted({ purpose }: PassStart): void {
    this.#purpose = purpose;
  }

  /** Before the next removal begins, so that a killed pass leaves its records. */
  done(passId: PassId, item: ImageItem | PodItem): void {
    const context = { passId, purpose: this.#purpose, at: this.#now() };
    const row = "candidate" in item ? imageRemoval(passId, item) : containerRemoval(context, item);
    this.state.append({ record: "removal", row });
  }

  passEnded(pass: Pass): void {
    const row = toPassRow(pass);
    const end = JSON.stringify([row.imagesEnd, row.containersEnd, row.error]);
    const didSomething = row.removed + row.failed > 0 || pass.kind === "gc";
    if (didSomething || this.#ends.get(pass.kind) !== end)
      this.state.append({ record: "pass", row });
    this.#ends.set(pass.kind, end);
    this.state.sync();
  }

  /** Every event, of a pass or of none. */
  event(row: Event): void {
    this.state.append({ record: "warning", row });
  }
}

/** What a record says of a removal that told nothing more. */
const UNKNOWN = {
  firstSeenAt: null,
  signal: null,
  message: null,
  reportedBytes: null,
  measuredBytes: null,
  estimateBytes: null,
  took: null,
} as const;

export function imageRemoval(passId: PassId, item: ImageItem): Removal {
  const { candidate, trigger, result, startedAt, took } = item;
  const { image, estimateBytes } = candidate;
  return {
    ...UNKNOWN,
    passId,
    kind: "image",
    subject: image.id,
    names: [...image.repoTags, ...image.repoDigests],
    firstSeenAt: candidate.record.firstSeenAt,
    trigger: trigger.kind,
    signal: trigger.kind === "pressure" ? trigger.signal : null,
    reason: trigger.kind,
    result: result.kind,
    reportedBytes: image.sizeBytes,
    estimateBytes,
    at: startedAt,
    took,
    ...measuredOf(result),
  };
}

function measuredOf(result: ImageResult): Partial<Removal> {
  if (result.kind === "failed") return { message: result.message };
  if (result.kind === "skipped") return { message: result.reason.kind };
  if (result.kind === "ghost") return {};
  return { reportedBytes: result.reportedBytes, measuredBytes: result.measuredBytes };
}

/** When and why something other than an image was removed; its outcome does not say. */
export interface RemovalContext {
  readonly passId: PassId;
  readonly purpose: Purpose;
  readonly at: Instant;
}

export function containerRemoval({ passId, purpose, at }: RemovalContext, item: PodItem): Removal {
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

export function toPassRow(pass: Pass): PassRow {
  const { images, containers } = pass;
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
    requestedBy: pass.requestedBy ?? null,
    startedAt: pass.startedAt,
    endedAt: pass.endedAt,
    dryRun: pass.dryRun,
    error: pass.error ?? images?.error ?? pass.plan.containers?.logsError ?? null,
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
  };
}

const signalsOf = (purpose: Purpose): PassRow["signals"] =>
  purpose.kind === "pressure" ? purpose.signals : [];
