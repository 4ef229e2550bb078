/** What a state directory tells a process that starts: the ledger as far as it can be trusted, and where the history ends. */

import { StoreError } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type ObservedTime, watched } from "../model/time.ts";
import { ageNow } from "../policy/age-clock.ts";
import { statePaths, type StatePlaces } from "./files.ts";
import { FIRST_LINE, historyFault, historyLines } from "./history-file.ts";
import { type LedgerContent, readLedger } from "./ledger-file.ts";
import { headOf, imageIn, isImageGone, type LineHead, rawOf } from "./records.ts";

export interface FoundState {
  readonly ledger: Ledger;
  /** Of the last record in the history; 0: none. */
  readonly lastRecord: number;
  /** The newest records of disks, by device. */
  readonly disksRecorded: ReadonlyMap<string, ObservedTime>;
  /** Files that cannot be used. */
  readonly faults: readonly { readonly path: string; readonly why: string }[];
  /** Lines of the history that are no records, beyond what the ledger knows. */
  readonly brokenLines: number;
}

/** `isOwner`: no other process is writing, so a ledger that is not closed is what a crash left. */
export function readState(
  places: StatePlaces,
  { clocks, isOwner }: { readonly clocks: Clocks; readonly isOwner: boolean },
): FoundState {
  const paths = statePaths(places);
  const faults: { path: string; why: string }[] = [];
  const [stored, spare] = [paths.ledger, paths.spareLedger].map((path) => {
    try {
      return readLedger(places, path);
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      faults.push({ path, why: thrown.message });
      return null;
    }
  });
  const content = newer(stored ?? null, spare ?? null);
  const isUnbroken = faults.length === 0;
  for (const path of [paths.olderHistory, paths.history]) {
    const why = historyFault(path, places);
    if (why !== null) faults.push({ path, why });
  }
  const { ledger: known, closed, lastRecord } = content ?? NOTHING;
  const unusable = new Set(faults.map(({ path }) => path));
  const history = scanned(historyLines(places, unusable), { known, lastRecord });
  const ledger = withClock(without(known, history.removed), history.watched, clocks);
  const isWhole = isUnbroken && closed && lastRecord >= history.lastRecord;
  return {
    ledger: {
      ...ledger,
      ageRestartDue: ledger.observedAt !== null && (ledger.ageRestartDue || (isOwner && !isWhole)),
    },
    lastRecord: Math.max(history.lastRecord, lastRecord),
    disksRecorded: history.disks,
    faults,
    brokenLines: history.broken,
  };
}

const NOTHING = { ledger: emptyLedger, closed: true, lastRecord: 0 };

/** The spare one is there only if the disk did not take it. */
const newer = (stored: LedgerContent | null, spare: LedgerContent | null): LedgerContent | null =>
  spare !== null && spare.ledger.watched >= (stored?.ledger.watched ?? 0n) ? spare : stored;

/** The age clock never goes back, also if the ledger is lost or an older one. */
function withClock(ledger: Ledger, recorded: ObservedTime, clocks: Clocks): Ledger {
  if (recorded <= ageNow(ledger, clocks)) return ledger;
  return { ...ledger, watched: recorded, uptime: clocks.uptime, bootId: clocks.bootId };
}

function without(ledger: Ledger, removed: ReadonlySet<string>): Ledger {
  if (removed.size === 0) return ledger;
  return { ...ledger, images: new Map([...ledger.images].filter(([id]) => !removed.has(id))) };
}

function scanned(
  lines: Iterable<Buffer>,
  { known, lastRecord }: { readonly known: Ledger; readonly lastRecord: number },
) {
  const removed = new Set<string>();
  const disks = new Map<string, ObservedTime>();
  let last: LineHead = { record: "", seq: 0, watched: watched(0n) };
  let broken = 0;
  for (const line of lines) {
    const head = headOf(line);
    if (head === null) {
      if (!line.includes(FIRST_LINE)) broken += 1;
      continue;
    }
    last = head;
    // The process that wrote the ledger has reported them.
    if (head.seq <= lastRecord) broken = 0;
    if (head.record === "disk") disks.set(String(rawOf(line)["device"]), head.watched);
    if (head.record !== "removal") continue;
    const id = imageIn(line);
    const since = id === null ? undefined : known.images.get(id)?.firstSeenWatched;
    // An image that was removed after its record was made has come back, and is new.
    if (id !== null && since !== undefined && head.watched >= since && isImageGone(rawOf(line)))
      removed.add(id);
  }
  return { removed, disks, broken, lastRecord: last.seq, watched: last.watched };
}
