// Sends records of the history as they come, without waiting for answers: what was sent outlives a process that is killed.

import type { StoreErrorKind } from "../../model/errors.ts";
import type { StateAppend, StateReply } from "../file/state-request.ts";
import type { HistoryRecord } from "./history-records.ts";
import { historyRow } from "./history.ts";
import { type Batch, Queue } from "./queue.ts";

/** Batches that are unanswered; a pipe holds about as many. */
const MAX_UNANSWERED = 64;

export interface RecordSenderPorts {
  readonly ask: (request: StateAppend) => Promise<Exclude<StateReply, { kind: "read" }>>;
  /** Observed time, as digits. */
  readonly watched: () => string;
  readonly succeeded: (lost: number) => void;
  readonly failed: (why: { readonly error: StoreErrorKind; readonly message: string }) => void;
}

export class RecordSender {
  readonly #ports: RecordSenderPorts;
  readonly #queue = new Queue();
  readonly #sending = new Set<Promise<boolean>>();
  #unanswered = 0;
  /** What came back while others were unanswered, in its order. */
  #refused: Batch[] = [];
  #isTidyDue = false;

  constructor(ports: RecordSenderPorts) {
    this.#ports = ports;
  }

  add(...records: readonly HistoryRecord[]): void {
    this.#queue.add(...records);
  }

  set(key: string, value: string): void {
    this.#queue.set(key, value);
  }

  hasSetting(key: string): boolean {
    return this.#queue.hasSetting(key);
  }

  /** With the next batch, the log may be folded and the history pruned. */
  tidyNext(): void {
    this.#isTidyDue = true;
  }

  get isIdle(): boolean {
    return this.#queue.isEmpty && !this.#isTidyDue && this.#unanswered === 0;
  }

  send(): void {
    while (
      (!this.#queue.isEmpty || this.#isTidyDue) &&
      this.#refused.length === 0 &&
      this.#unanswered < MAX_UNANSWERED
    ) {
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
  next(): { readonly request: StateAppend; readonly batch: Batch } {
    const batch = this.#queue.take();
    const tidy = this.#isTidyDue;
    this.#isTidyDue = false;
    const request: StateAppend = {
      kind: "append",
      isFirst: this.#unanswered === 0,
      settings: [...batch.settings],
      records: batch.records.map(historyRow),
      watched: this.#ports.watched(),
      tidy,
    };
    return { request, batch };
  }

  async #send({ request, batch }: ReturnType<RecordSender["next"]>): Promise<boolean> {
    this.#unanswered += 1;
    const answer = await this.#ports.ask(request);
    this.#unanswered -= 1;
    if (answer.kind === "done") {
      this.#ports.succeeded(this.#queue.takeLost());
      return true;
    }
    this.#refused.push(batch);
    this.#isTidyDue ||= request.tidy;
    // Those that were sent behind it come back too.
    if (this.#unanswered === 0) {
      for (const refused of this.#refused.toReversed()) this.#queue.putBack(refused);
      this.#refused = [];
    }
    if (answer.kind === "failed") this.#ports.failed(answer);
    return false;
  }
}
