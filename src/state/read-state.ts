/** What a state directory tells a process that starts: the ledger as far as it can be trusted, and where the history ends. */

import { readFileSync } from "node:fs";

import {
  branded,
  durationNs,
  FieldError,
  flag,
  list,
  nullable,
  record,
  text,
} from "../model/codec.ts";
import { StoreError } from "../model/errors.ts";
import { imageId } from "../model/ids.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type ObservedTime, watched } from "../model/time.ts";
import { parsedJson } from "../model/values.ts";
import { ageNow } from "../policy/age-clock.ts";
import { statePaths, type StatePlaces } from "./files.ts";
import { FIRST_LINE, historyFault, historyLines } from "./history-file.ts";
import { type LedgerContent, readLedger } from "./ledger-file.ts";
import { mayBe, parsedLine } from "./records.ts";

/** What the state directory does not say because its disk took no write, in the run directory. */
export const marker = record({
  bootId: text,
  /** By a process that ended in order. */
  closed: flag,
  /** The time since the boot when the minimum age began anew; `null`: not within the last hour. */
  ageBegan: nullable(durationNs),
  /** Removed images of which the history has no record. */
  removed: list(branded(imageId)),
});
export type Marker = Parameters<typeof marker.write>[0];

export interface FoundState {
  readonly ledger: Ledger;
  /** Of the last record in the history; 0: none. */
  readonly lastRecord: number;
  /** The newest records of disks, by device. */
  readonly disksRecorded: ReadonlyMap<string, ObservedTime>;
  /** Files that cannot be used. */
  readonly faults: readonly { readonly path: string; readonly why: string }[];
  /** Lines of the history that are no records. */
  readonly brokenLines: number;
  readonly marker: Marker | null;
}

/** `isOwner`: no other process is writing, so a ledger that is not closed is what a crash left. */
export function readState(
  places: StatePlaces,
  { clocks, isOwner }: { readonly clocks: Clocks; readonly isOwner: boolean },
): FoundState {
  const paths = statePaths(places);
  const faults: { path: string; why: string }[] = [];
  let content: LedgerContent | null = null;
  try {
    content = readLedger(places);
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown;
    faults.push({ path: paths.ledger, why: thrown.message });
  }
  for (const path of [paths.olderHistory, paths.history]) {
    const why = historyFault(path, places);
    if (why !== null) faults.push({ path, why });
  }
  const unusable = new Set(faults.map(({ path }) => path));
  const history = scanned(places, unusable);
  const left = readMarker(paths.marker, clocks);
  const stored = content?.ledger ?? emptyLedger;
  const isWhole = content === null || (content.closed && content.lastRecord >= history.lastRecord);
  const isTrusted = left === null ? isWhole || !isOwner : left.closed;
  const began = left?.ageBegan ?? null;
  const ledger = withoutRemoved(atLeast(stored, history.watched, clocks), {
    removals: history.removals,
    unrecorded: left?.removed ?? [],
  });
  return {
    ledger: {
      ...ledger,
      ...(began !== null && {
        ageRestartedWatched: ageNow(stored, { ...clocks, uptime: began }),
      }),
      ageRestartDue: ledger.observedAt !== null && (ledger.ageRestartDue || !isTrusted),
    },
    lastRecord: Math.max(history.lastRecord, content?.lastRecord ?? 0),
    disksRecorded: history.disks,
    faults,
    brokenLines: history.broken,
    marker: left,
  };
}

/** The age clock never goes back, also if the ledger is lost or an older one. */
function atLeast(ledger: Ledger, recorded: ObservedTime, clocks: Clocks): Ledger {
  if (recorded <= ageNow(ledger, clocks)) return ledger;
  return { ...ledger, watched: recorded, uptime: clocks.uptime, bootId: clocks.bootId };
}

/** An image that was removed after its record was made has come back, and is new. */
function withoutRemoved(
  ledger: Ledger,
  {
    removals,
    unrecorded,
  }: {
    readonly removals: ReadonlyMap<string, ObservedTime>;
    readonly unrecorded: readonly string[];
  },
): Ledger {
  const isOld = (id: string, since: ObservedTime): boolean =>
    unrecorded.includes(id) || (removals.get(id) ?? -1n) >= since;
  const left = [...ledger.images].filter(([id, it]) => !isOld(id, it.firstSeenWatched));
  return left.length === ledger.images.size ? ledger : { ...ledger, images: new Map(left) };
}

function scanned(places: StatePlaces, unusable: ReadonlySet<string>) {
  const removals = new Map<string, ObservedTime>();
  const disks = new Map<string, ObservedTime>();
  let [last, broken]: [Buffer | null, number] = [null, 0];
  for (const line of historyLines(places, unusable)) {
    if (line[0] !== OPEN || line.at(-1) !== CLOSE) {
      broken += 1;
      continue;
    }
    if (!line.includes(FIRST_LINE)) last = line;
    if (!mayBe(line, "removal") && !mayBe(line, "disk")) continue;
    const document = parsedLine(line);
    if (document === null) broken += 1;
    else if (document["record"] === "disk") disks.set(String(document["device"]), document.watched);
    else if (document["kind"] === "image" && isGone(document["result"]))
      removals.set(String(document["subject"]), document.watched);
  }
  const end = last === null ? null : parsedLine(last);
  return {
    removals,
    disks,
    broken,
    lastRecord: end?.seq ?? 0,
    watched: end?.watched ?? watched(0n),
  };
}

const OPEN = "{".charCodeAt(0);
const CLOSE = "}".charCodeAt(0);
const isGone = (result: unknown): boolean => result === "removed" || result === "already-gone";

/** `null`: there is none of this boot. */
function readMarker(path: string, { bootId }: Clocks): Marker | null {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch {
    return null;
  }
  try {
    const found = marker.read(parsedJson(content));
    return found.bootId === bootId ? found : null;
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown;
    return { bootId, closed: false, ageBegan: null, removed: [] };
  }
}
