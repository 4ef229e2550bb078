// What `gc` and `run` are given: the ledger, and a record of each pass that is written as the pass goes on.

import { type DiskSample, recentHistory, type RegretFigures } from "../model/history.ts";
import type { PassId } from "../model/ids.ts";
import type {
  ContainerItem,
  Event,
  ImageItem,
  LogItem,
  Pass,
  PassStart,
  SandboxItem,
} from "../model/pass.ts";
import type { Filesystem } from "../model/snapshot.ts";
import { type Instant, seconds } from "../model/time.ts";
import { type HistoryRecord, SAMPLES_KEPT } from "./history.ts";
import {
  containerRemoval,
  imageRemoval,
  isOfDisk,
  isWorthKeeping,
  passRow,
  samplesOf,
} from "./pass-rows.ts";
import { within } from "./pending.ts";
import { Store } from "./store.ts";

const SAMPLES_APART = seconds(10);

/** Nothing here throws or waits for the disk, which gets its records between the steps of a pass. */
export class Recorder extends Store {
  #regrets: RegretFigures = { removedImages: 0, returned: [], soonest: null };
  /** In the order in which they were recorded: reports on the present must not wait for the disk. */
  #samples: readonly DiskSample[] = [];
  /** What passes without a sample freed since the newest one, by device. */
  #freedSince: ReadonlyMap<string, bigint> = new Map();
  /** The running pass, and whether its row was requested. */
  #current: { readonly start: PassStart; isRecorded: boolean } | null = null;

  protected override known(recent: string): void {
    const { samples: known, regrets } = recentHistory.read(JSON.parse(recent));
    this.#regrets = regrets;
    if (known === undefined) return;
    // Those of the history come before those not written yet.
    const keys = new Set(known.map(keyOf));
    this.#samples = [...known, ...this.#samples.filter((sample) => !keys.has(keyOf(sample)))];
  }

  /** The newest disk samples, in the order in which they were recorded. */
  samples(): readonly DiskSample[] {
    return this.#samples;
  }

  /** As of the last pass. */
  regrets(): RegretFigures {
    return this.#regrets;
  }

  passStarted(start: PassStart): void {
    this.#current = { start, isRecorded: false };
  }

  /** Each removal is recorded as soon as it is over, so that a killed pass leaves its record. */
  imageDone(passId: PassId, item: ImageItem): void {
    this.#removal(passId, { kind: "removal", row: imageRemoval(passId, item) });
  }

  containerDone(passId: PassId, item: ContainerItem | SandboxItem | LogItem, at: Instant): void {
    const purpose = this.#current?.start.purpose ?? { kind: "periodic" };
    this.#removal(passId, {
      kind: "removal",
      row: containerRemoval({ passId, purpose, at }, item),
    });
  }

  /** Completes the record of the pass. `filesystems`: as the pass saw them; `null` if it saw none. */
  passEnded(pass: Pass, filesystems: readonly Filesystem[] | null): void {
    this.#current = null;
    this.tidyNext();
    const samples = isOfDisk(pass) ? this.#sampled(pass, filesystems ?? []) : [];
    this.#samples = [...this.#samples, ...samples].slice(-SAMPLES_KEPT);
    this.record(...samples.map((row): HistoryRecord => ({ kind: "sample", row })));
    for (const item of pass.images?.items ?? [])
      if (item.lateBytes !== undefined)
        this.record({ kind: "removal", row: imageRemoval(pass.id, item) });
    if (isWorthKeeping(pass)) this.record({ kind: "pass", row: passRow(pass) });
  }

  /** Passes under pressure may come every 500 ms, and their samples would displace those of the day. */
  #sampled(pass: Pass, filesystems: readonly Filesystem[]): readonly DiskSample[] {
    const samples = samplesOf(pass, filesystems, this.#samples);
    const isRecent = ({ device, at }: DiskSample): boolean => {
      const newest = this.#samples.findLast((sample) => sample.device === device);
      return newest !== undefined && at >= newest.at && at < newest.at + SAMPLES_APART;
    };
    const freed = new Map(
      samples.map(({ device, freedBytes }) => [
        device,
        (freedBytes ?? 0n) + (this.#freedSince.get(device) ?? 0n),
      ]),
    );
    const isSkipped = pass.kind === "pressure" && samples.every(isRecent);
    this.#freedSince = isSkipped ? freed : new Map();
    return isSkipped
      ? []
      : samples.map((sample) => ({ ...sample, freedBytes: freed.get(sample.device) ?? 0n }));
  }

  /**
   * After a single pass, when nothing waits any more: tries to write its records of removals as long as `patience` lets
   * it, but twice if the directory is read-only. Returns the number of those that are not on disk. Calls `waits` once if
   * it waits longer.
   */
  async settle(patience: AbortSignal, waits: () => void = () => undefined): Promise<number> {
    for (let attempt = 1; ; attempt += 1) {
      await within(SETTLE_LEAST_MS, this.flush());
      const isOver = attempt > 1 && this.failure() === "write";
      if (this.removalsNotWritten === 0 || patience.aborted || isOver)
        return this.removalsNotWritten;
      if (attempt === 1 && this.failure() !== "write") waits();
      await Bun.sleep(SETTLE_PAUSE_MS);
    }
  }

  /** Every event, of a pass or of none; events that are not news are not passed on. */
  event(row: Event): void {
    this.record({ kind: "event", row });
  }

  #removal(passId: PassId, record: HistoryRecord): void {
    const current = this.#current;
    if (current !== null && current.start.id === passId && !current.isRecorded) {
      current.isRecorded = true;
      this.record({ kind: "pass", row: passRow(current.start) });
    }
    this.record(record);
  }
}

const SETTLE_LEAST_MS = 2_000;
const SETTLE_PAUSE_MS = 250;

const keyOf = ({ at, device }: DiskSample): string => `${at} ${device}`;
