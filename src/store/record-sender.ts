// Sends records as they come, without waiting for replies: what was sent outlives a killed process.

import type { StoreErrorKind } from "../model/errors.ts";
import { type ImageId, imageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { HistoryRecord } from "./history-records.ts";
import { historyRow } from "./history.ts";
import type { StateAppend, StateReply } from "./state-request.ts";

/** Maximum number of records kept while the disk refuses them; beyond it the oldest are dropped and counted. */
export const recordsMax = 20_000;
const batchRecords = 2_000;

/** Maximum number of unanswered batches; a pipe holds about as many. */
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
  /** Batches without an answer. */
  readonly #inFlight = new Set<readonly HistoryRecord[]>();
  /** Batches that failed while others were unanswered, in order. */
  #refused: (readonly HistoryRecord[])[] = [];
  #isTidyDue = false;

  constructor(ports: RecordSenderPorts) {
    this.#ports = ports;
  }

  add(...records: readonly HistoryRecord[]): void {
    this.#records.push(...records);
    this.#dropOldest();
  }

  /** The next batch may also checkpoint the log and prune the history. */
  tidyNext(): void {
    this.#isTidyDue = true;
  }

  /**
   * Removals whose records are not sent, or were refused: what was sent is written once a hanging disk responds. Each was
   * recorded when it was done, and again with its pass.
   */
  get removalsNotWritten(): number {
    const keys = [...this.#refused.flat(), ...this.#records].flatMap((it) =>
      it.kind === "removal" ? [`${it.row.passId} ${it.row.kind} ${it.row.subject}`] : [],
    );
    return new Set(keys).size;
  }

  get isIdle(): boolean {
    return !this.#isDue && this.#inFlight.size === 0;
  }

  get #isDue(): boolean {
    return this.#records.length > 0 || this.#isTidyDue;
  }

  send(): void {
    while (this.#isDue && this.#refused.length === 0 && this.#inFlight.size < MAX_UNANSWERED) {
      const sending: Promise<boolean> = this.#send(this.next()).finally(() =>
        this.#sending.delete(sending),
      );
      this.#sending.add(sending);
    }
  }

  /** Whether everything that was sent is written. */
  async settled(): Promise<boolean> {
    const written = await Promise.all(this.#sending);
    return written.every((isWritten) => isWritten);
  }

  /** The pending records, as a request. */
  next(): { readonly request: StateAppend; readonly batch: readonly HistoryRecord[] } {
    const batch = this.#records.slice(0, batchRecords);
    this.#records = this.#records.slice(batchRecords);
    const tidy = this.#isTidyDue;
    this.#isTidyDue = false;
    const { images, watched } = this.#ports.ledger();
    const request: StateAppend = {
      kind: "append",
      isFirst: this.#inFlight.size === 0,
      records: batch.map(historyRow),
      forgotten: removedImages(batch).filter((id) => !images.has(id)),
      watched: watched.toString(),
      tidy,
    };
    return { request, batch };
  }

  async #send({ request, batch }: ReturnType<RecordSender["next"]>): Promise<boolean> {
    this.#inFlight.add(batch);
    const answer = await this.#ports.ask(request);
    this.#inFlight.delete(batch);
    if (answer.kind === "done") {
      const lost = this.#lost;
      this.#lost = 0;
      this.#ports.succeeded(lost);
      return true;
    }
    this.#refused.push(batch);
    this.#isTidyDue ||= request.tidy;
    // Batches sent after it come back too.
    if (this.#inFlight.size === 0) {
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
