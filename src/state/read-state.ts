/** What a state directory tells a process that starts: the ledger as far as it can be trusted, and where the history ends. */

import { StoreError } from "../model/errors.ts";
import { imageId } from "../model/ids.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import { fromRfc3339, type Instant } from "../model/time.ts";
import { asRoot } from "../node/files.ts";
import { type Fault, statePaths, type StatePlaces } from "./files.ts";
import { historyLines } from "./history-file.ts";
import { readLedger } from "./ledger-file.ts";
import { headOf, isImageGone, rawOf } from "./records.ts";

export interface FoundState {
  readonly ledger: Ledger;
  /** Of the last record in the history; 0: none. */
  readonly lastRecord: number;
  /** The newest records of disks, by device. */
  readonly disksRecorded: ReadonlyMap<string, Instant>;
  /** Files that cannot be used. */
  readonly faults: readonly Fault[];
  /** Lines of the history that are no records, beyond what the ledger knows. */
  readonly brokenLines: number;
}

/** `isOwner`: no other process is writing, so a ledger that is not closed is what a crash left. */
export function readState(places: StatePlaces, isOwner: boolean): FoundState {
  const paths = statePaths(places);
  const faults: Fault[] = [];
  const [stored = null, spare = null] = [paths.ledger, paths.spareLedger].map((path) => {
    try {
      return readLedger(places, path);
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      faults.push({ path, why: thrown.message, advice: asRoot(thrown.cause) });
      return null;
    }
  });
  const isUnbroken = faults.length === 0;
  // The spare one is there only if the disk did not take it.
  const isSpare = spare !== null && spare.ledger.watched >= (stored?.ledger.watched ?? 0n);
  const { ledger, closed, lastRecord } = (isSpare ? spare : stored) ?? NOTHING;
  const images = new Map(ledger.images);
  const disks = new Map<string, Instant>();
  let last = 0;
  let broken = 0;
  for (const line of historyLines(places, (fault) => faults.push(fault))) {
    const head = headOf(line);
    if (head === null) {
      broken += 1;
      continue;
    }
    last = head.seq;
    // The process that wrote the ledger has reported them.
    if (last <= lastRecord) broken = 0;
    if (head.record === "disk") {
      const { device, at } = rawOf(line);
      const time = fromRfc3339(String(at));
      if (time !== null) disks.set(String(device), time);
    }
    if (head.record !== "removal" || last <= lastRecord) continue;
    const raw = rawOf(line);
    // If it is listed again, it has come back, and is new.
    if (isImageGone(raw)) images.delete(imageId(String(raw["subject"])));
  }
  // An older copy, or one beside another history, may have missed anything; a deleted history tells nothing.
  const isWhole = isUnbroken && closed && (last === lastRecord || last === 0);
  return {
    ledger: {
      ...ledger,
      images: images.size === ledger.images.size ? ledger.images : images,
      ageRestartDue: ledger.observedAt !== null && (ledger.ageRestartDue || (isOwner && !isWhole)),
    },
    lastRecord: Math.max(last, lastRecord),
    disksRecorded: disks,
    faults,
    brokenLines: broken,
  };
}

const NOTHING = { ledger: emptyLedger, closed: true, lastRecord: 0 };
