// Sends records of the history as they come, without waiting for answers: what was sent outlives a process that is killed.

import type { StoreErrorKind } from "../../model/errors.ts";
import { type ImageId, imageId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { StateAppend, StateReply } from "../file/state-request.ts";
import type { HistoryRecord } from "./history-records.ts";
import { historyRow } from "./history.ts";

/** At most so many records are kept while the disk refuses them; then the oldest are lost, and counted. */
export const recordsMax = 20_000;
const batchRecords = 2_000;

/** Batches that are unanswered; a pipe holds about as many. */
const MAX_UNANSWERED = 64;

export interface RecordSenderPorts {
  readonly ask: (request: StateAppend) => Promise<Exclude<StateReply, { kind: "read" }>>;
  /** The newest one that is known. */
  readonly ledger: () => Ledger;
  readonly succeeded: (lost: number) => void;
  readonly failed: (why: { readonly error: StoreErrorKind; readonly message: string }) => void;
}

export class RecordSender {
  readonly #ports: RecordSenderPorts;
  #records: HistoryRecord[] = [];
  #lost = 0;
  readonly #sending = new Set<Promise<boolean>>();
  #unanswered = 0;
  /** What came back while others were unanswered, in its order. */
  #refused: (readonly HistoryRecord[])[] = [];
  #isTidyDue = false;

  constructor(ports: RecordSenderPorts) {
    this.#ports = ports;
  }

  add(...records: readonly HistoryRecord[]): void {
    this.#records.push(...records);
    this.#dropOldest();
  }

  /** With the next batch, the log may be folded and the history pruned. */
  tidyNext(): void {
    this.#isTidyDue = true;
  }

  get isIdle(): boolean {
    return !this.#isDue && this.#unanswered === 0;
  }

  get #isDue(): boolean {
    return this.#records.length > 0 || this.#isTidyDue;
  }

  send(): void {
    while (this.#isDue && this.#refused.length === 0 && this.#unanswered < MAX_UNANSWERED) {
      const sending: Promise<boolean> = this.#send(this.next()).finally(() =>
        this.#sending.delete(sending),
      );
      this.#sending.add(sending);
    }
  }

  /** Whether all that was sent is written. */
  async settled(): Promise<boolean> {
    const written = await Promise.all(this.#sending);
    return written.every((isWritten) => isWritten);
  }

  /** What waits, as a request. */
  next(): { readonly request: StateAppend; readonly batch: readonly HistoryRecord[] } {
    const batch = this.#records.slice(0, batchRecords);
    this.#records = this.#records.slice(batchRecords);
    const tidy = this.#isTidyDue;
    this.#isTidyDue = false;
    const { images, watched } = this.#ports.ledger();
    const request: StateAppend = {
      kind: "append",
      isFirst: this.#unanswered === 0,
      records: batch.map(historyRow),
      forgotten: removedImages(batch).filter((id) => !images.has(id)),
      watched: watched.toString(),
      tidy,
    };
    return { request, batch };
  }

  async #send({ request, batch }: ReturnType<RecordSender["next"]>): Promise<boolean> {
    this.#unanswered += 1;
    const answer = await this.#ports.ask(request);
    this.#unanswered -= 1;
    if (answer.kind === "done") {
      const lost = this.#lost;
      this.#lost = 0;
      this.#ports.succeeded(lost);
      return true;
    }
    this.#refused.push(batch);
    this.#isTidyDue ||= request.tidy;
    // Those that were sent behind it come back too.
    if (this.#unanswered === 0) {
      this.#records = [...this.#refused.flat(), ...this.#records];
      this.#refused = [];
      this.#dropOldest();
    }
    if (answer.kind === "failed") this.#ports.failed(answer);
    return false;
  }

  #dropOldest(): void {
    const tooMany = this.#records.length - recordsMax;
    if (tooMany <= 0) return;
    this.#records = this.#records.slice(tooMany);
    this.#lost += tooMany;
  }
}

const removedImages = (records: readonly HistoryRecord[]): readonly ImageId[] =>
  records.flatMap((it) =>
    it.kind === "removal" && it.row.kind === "image" ? imageId(it.row.subject) : [],
  );
