/** Makes rows of the history from passes, and records them as they go on. */

import { type PassRow, passRow, type Removal, removal } from "../model/history.ts";
import type { PassId } from "../model/ids.ts";
import {
  type Event,
  event,
  type ImageItem,
  type ImageResult,
  isFailed,
  isGone,
  measuredFreedBytes,
  type Pass,
  passItems,
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
    const row = "candidate" in item ? imageRow(item) : this.#podRow(item);
    this.state.append("removal", removal.write({ ...row, passId }));
  }

  passEnded(pass: Pass): void {
    const row = toPassRow(pass);
    const end = JSON.stringify([row.imagesEnd, row.containersEnd, row.error]);
    const didSomething = row.removed + row.failed > 0 || pass.kind === "gc";
    if (didSomething || this.#ends.get(pass.kind) !== end)
      this.state.append("pass", passRow.write(row));
    this.#ends.set(pass.kind, end);
    this.state.save();
  }

  /** Every event, of a pass or of none. */
  event(row: Event): void {
    this.state.append("warning", event.write(row));
  }

  #podRow(item: PodItem): Omit<Removal, "passId"> {
    const logError = "logError" in item ? item.logError : null;
    return {
      firstSeenAt: null,
      trigger: this.#purpose.kind,
      signal: signalsOf(this.#purpose)[0] ?? null,
      reason: item.reason.kind,
      result: item.result.kind,
      message: messageOf(item.result) ?? logError,
      measuredBytes: null,
      estimateBytes: null,
      at: this.#now(),
      took: null,
      ...subjectOf(item),
    };
  }
}

function imageRow(item: ImageItem): Omit<Removal, "passId"> {
  const { candidate, trigger, result, startedAt, took } = item;
  const { image, record, estimateBytes } = candidate;
  return {
    kind: "image",
    subject: image.id,
    names: [...image.repoTags, ...image.repoDigests],
    firstSeenAt: record.firstSeenAt,
    trigger: trigger.kind,
    signal: trigger.kind === "pressure" ? trigger.signal : null,
    reason: trigger.kind,
    result: result.kind,
    message: messageOf(result),
    reportedBytes: image.sizeBytes,
    measuredBytes: result.kind === "removed" ? result.measuredBytes : null,
    estimateBytes,
    at: startedAt,
    took,
  };
}

function messageOf(result: ImageResult | RemovalResult): string | null {
  if (result.kind === "failed")
    return "step" in result ? `${result.step}: ${result.message}` : result.message;
  if (result.kind !== "skipped") return null;
  return "what" in result ? result.what : result.reason.kind;
}

function subjectOf(item: PodItem): Pick<Removal, "kind" | "subject" | "names" | "reportedBytes"> {
  if ("planned" in item) {
    const { id, podNamespace, podName, name } = item.planned.container;
    const reportedBytes = item.logFiles.length === 0 ? null : item.logBytes;
    const names = [`${podNamespace}/${podName}/${name}`];
    return { kind: "container", subject: id, names, reportedBytes };
  }
  if ("sandbox" in item) {
    const { id, namespace, name } = item.sandbox;
    return { kind: "sandbox", subject: id, names: [`${namespace}/${name}`], reportedBytes: null };
  }
  return { kind: item.kind, subject: item.entry, names: [], reportedBytes: item.bytes };
}

function toPassRow(ended: Pass): PassRow {
  const { images, containers, ...pass } = ended;
  const items = passItems(ended);
  return {
    ...pass,
    purpose: pass.purpose.kind,
    signals: signalsOf(pass.purpose),
    requestedBy: pass.requestedBy ?? null,
    error: pass.error ?? images?.error ?? pass.plan.containers?.logsError ?? null,
    imagesEnd: images?.end ?? null,
    containersEnd: containers?.end ?? null,
    removed: items.filter(isGone).length,
    failed: items.filter(({ result }) => isFailed(result)).length,
    wantedBytes: images?.wantedBytes ?? null,
    reportedFreedBytes: images?.reportedFreedBytes ?? null,
    measuredFreedBytes: measuredFreedBytes(ended),
    availableBeforeBytes: images?.availableBefore ?? null,
    availableAfterBytes: images?.availableAfter ?? null,
    capacityBytes: images?.capacityBytes ?? null,
  };
}

const signalsOf = (purpose: Purpose): PassRow["signals"] =>
  purpose.kind === "pressure" ? purpose.signals : [];
