// What `gc` and `run` are given: the ledger, settings, and a record of each pass that is written as the pass goes on.

import type { DiskSample, RegretFigures } from "../../model/history.ts";
import type { PassId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { ContainerItem, ImageItem, LogItem, SandboxItem } from "../../model/outcome.ts";
import type { Event, Pass, PassStart } from "../../model/pass.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import type { Store } from "../store.ts";
import {
  containerRemoval,
  imageRemoval,
  isOfDisk,
  isWorthKeeping,
  passRow,
  samplesOf,
} from "./history-making.ts";
import type { HistoryRecord } from "./history-records.ts";
import type { RecentSamples } from "./recent-samples.ts";
import type { Regrets } from "./regrets.ts";

/** What the history lets tell of the present, in memory. */
export interface Recent {
  readonly regrets: Regrets;
  readonly samples: RecentSamples;
}

/** Nothing here throws or waits for the disk; records go to it between the steps of a pass. */
export class Recorder {
  readonly #store: Store;
  readonly #regrets: Regrets;
  readonly #samples: RecentSamples;
  /** The pass that runs, and whether its row was asked for. */
  #current: { readonly start: PassStart; isRecorded: boolean } | null = null;

  constructor(store: Store, { regrets, samples }: Recent) {
    this.#store = store;
    this.#regrets = regrets;
    this.#samples = samples;
  }

  /** The newest samples of the disks, in the order in which they were recorded. */
  samples(): readonly DiskSample[] {
    return this.#samples.newest();
  }

  /** Images that were removed and came back, as far as the history goes. */
  regrets(): RegretFigures {
    return this.#regrets.figures();
  }

  /** The newest ledger that is known. */
  ledger(): Ledger {
    return this.#store.ledger();
  }

  saveLedger(ledger: Ledger): void {
    for (const row of this.#regrets.seen(ledger, this.#store.ledger()))
      this.#store.record({ kind: "regret", row });
    this.#store.saveLedger(ledger);
  }

  setting(key: string): string | null {
    return this.#store.setting(key);
  }

  setSetting(key: string, value: string): void {
    this.#store.setSetting(key, value);
  }

  passStarted(start: PassStart): void {
    this.#current = { start, isRecorded: false };
  }

  /** Each removal is told as soon as it is over, so that a pass that is killed leaves its record. */
  imageDone(passId: PassId, item: ImageItem): void {
    const row = imageRemoval(passId, item);
    this.#regrets.removed(row);
    this.#removal(passId, { kind: "removal", row });
  }

  containerDone(passId: PassId, item: ContainerItem | SandboxItem | LogItem, at: Instant): void {
    const purpose = this.#current?.start.purpose ?? { kind: "periodic" };
    this.#removal(passId, {
      kind: "removal",
      row: containerRemoval({ passId, purpose, at }, item),
    });
  }

  /** Completes what was told during the pass. `filesystems`: as the pass saw them, `null` where it saw none. */
  passEnded(pass: Pass, filesystems: readonly Filesystem[] | null): void {
    this.#current = null;
    this.#store.tidyNext();
    const samples = isOfDisk(pass)
      ? samplesOf(pass, filesystems ?? [], this.#samples.newest())
      : [];
    this.#samples.add(samples);
    this.#store.record(...samples.map((row): HistoryRecord => ({ kind: "sample", row })));
    if (!isWorthKeeping(pass)) return;
    const context = { passId: pass.id, purpose: pass.purpose, at: pass.endedAt };
    const { images, containers } = pass;
    const removals = [
      ...(images?.items ?? []).map((item) => imageRemoval(pass.id, item)),
      ...(containers === null
        ? []
        : [...containers.containers, ...containers.sandboxes, ...containers.logs]
      ).map((item) => containerRemoval(context, item)),
    ];
    this.#store.record(
      { kind: "pass", row: passRow(pass) },
      ...removals.map((row): HistoryRecord => ({ kind: "removal", row })),
    );
  }

  /** Every event, of a pass or of none: only those that are news are told. */
  event(row: Event): void {
    this.#store.record({ kind: "event", row });
  }

  /** Takes in what another process wrote, for a bounded time. */
  refresh(): Promise<void> {
    return this.#store.refresh();
  }

  /** Writes all that waits, and says whether it is on disk: as long as the disk takes. */
  flush(): Promise<boolean> {
    return this.#store.flush();
  }

  /** Why nothing can be written at present; `null` where all is well. */
  failure(): string | null {
    return this.#store.failure();
  }

  /** Writes all that waits, for a bounded time. */
  close(): Promise<void> {
    return this.#store.close();
  }

  #removal(passId: PassId, record: HistoryRecord): void {
    const current = this.#current;
    if (current !== null && current.start.id === passId && !current.isRecorded) {
      current.isRecorded = true;
      this.#store.record({ kind: "pass", row: passRow(current.start) });
    }
    this.#store.record(record);
  }
}
