/** Reads a state directory without changing anything: the ledger as far as it can be trusted, and the history. */

import {
  type History,
  type PassRow,
  passRow,
  type Regret,
  type Removal,
  removal,
} from "../model/history.ts";
import { type ImageId, imageId } from "../model/ids.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import { type Event, event } from "../model/pass.ts";
import { type Instant, plus } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { adviceOn, reasonOf } from "../node/files.ts";
import { readLedger, type StateOptions, statePaths, type StatePlaces } from "./files.ts";
import { historyRecords, type RawRecord, rowsOf } from "./history-file.ts";

/** A file that crigc cannot use. */
interface Fault {
  readonly path: string;
  readonly message: string;
}

interface FoundState {
  readonly ledger: Ledger;
  /** Of the last record in the history; 0: none. */
  readonly lastRecord: number;
  readonly faults: readonly Fault[];
  /** Lines of the history that are no records, beyond what the ledger knows. */
  readonly brokenLines: number;
}

/** `isOwner`: no other process is writing, so a ledger that is not closed is what a crash left. */
export function readState(places: StatePlaces, isOwner: boolean): FoundState {
  const paths = statePaths(places);
  const faults: { readonly path: string; readonly thrown: unknown }[] = [];
  const onFault = (path: string, thrown: unknown): void => void faults.push({ path, thrown });
  const [stored = null, spare = null] = [paths.ledger, paths.spareLedger].map((path) => {
    try {
      return readLedger(path, places);
    } catch (thrown) {
      onFault(path, thrown);
      return null;
    }
  });
  // The spare one is there only if the disk did not take it.
  const isSpare = spare !== null && spare.ledger.totalUptime >= (stored?.ledger.totalUptime ?? 0n);
  const { ledger, closed, lastRecord } = (isSpare ? spare : stored) ?? NOTHING;
  const images = new Map(ledger.images);
  let last = 0;
  let brokenLines = 0;
  for (const raw of historyRecords(places, onFault)) {
    last = Math.max(last, raw?.seq ?? 0);
    if (raw === null) brokenLines += 1;
    else if (raw.seq <= lastRecord) break;
    // If it is listed again, it has come back, and is new.
    else removedImages(raw).forEach((id) => images.delete(id));
  }
  // An older copy, or one beside another history, may have missed anything; a deleted history tells nothing.
  const isWhole = faults.length === 0 && closed && (last === lastRecord || last === 0);
  return {
    ledger: {
      ...ledger,
      images,
      ageRestartDue: ledger.observedAt !== null && (ledger.ageRestartDue || (isOwner && !isWhole)),
    },
    lastRecord: Math.max(last, lastRecord),
    faults: faults.map(({ path, thrown }) => {
      const lost = ledger.observedAt === null ? "; every image counts as new" : "";
      const next = adviceOn(thrown) || `${lost}; crigc gc and crigc run move it aside`;
      return { path, message: `cannot use ${path}: ${reasonOf(thrown)}${next}` };
    }),
    brokenLines,
  };
}

const NOTHING = { ledger: emptyLedger, closed: true, lastRecord: 0 };

const isImageGone = ({ kind, result }: Removal): boolean =>
  kind === "image" && result === "removed";

const removedImages = (raw: RawRecord): readonly ImageId[] =>
  rowsOf("removal", removal, raw)
    .filter(isImageGone)
    .map(({ subject }) => imageId(subject));

export interface StateReader {
  readonly ledger: Ledger;
  /** Why a file cannot be used; `null`: all can. */
  readonly failure: string | null;
  /** Read anew at each call; a file that cannot be used is missing. */
  readonly history: () => History;
}

/** What cannot be read is reported and missing. `isOwner`: as above. */
export function openReader(options: StateOptions, isOwner: boolean): StateReader {
  const { ledger, faults } = readState(options, isOwner);
  for (const { message } of faults) options.notify(message);
  const failure = faults[0]?.message ?? null;
  return { ledger, failure, history: () => readHistory(options, ledger) };
}

function readHistory(places: StatePlaces, ledger: Ledger): History {
  const passes: PassRow[] = [];
  const removals: Removal[] = [];
  const events: Event[] = [];
  for (const raw of historyRecords(places, () => undefined)) {
    if (raw === null) continue;
    passes.push(...rowsOf("pass", passRow, raw));
    removals.push(...rowsOf("removal", removal, raw));
    events.push(...rowsOf("warning", event, raw));
  }
  for (const rows of [passes, removals, events]) rows.reverse();
  return { passes, removals, events, returned: returnedImages(removals, ledger) };
}

/** Removed images that were seen again under their ID or one of their names, listed or removed again. */
function returnedImages(removals: readonly Removal[], ledger: Ledger): readonly Regret[] {
  const away = new Map<string, Removal>();
  const found: Regret[] = [];
  const seen = (names: readonly string[], at: Instant | null, sizeBytes: bigint): void => {
    const gone = names.map((name) => away.get(name)).find((it) => it !== undefined);
    if (gone === undefined || at === null || at <= endOf(gone)) return;
    // Each removal counts once.
    for (const name of namesOf(gone)) if (away.get(name) === gone) away.delete(name);
    found.push({ ...gone, removedAt: gone.at, at, returnedAs: names[0] ?? "", sizeBytes });
  };
  for (const row of removals.filter(isImageGone)) {
    seen(namesOf(row), row.firstSeenAt, row.reportedBytes ?? 0n);
    for (const name of namesOf(row)) away.set(name, row);
  }
  for (const [id, { firstSeenAt, names, sizeBytes }] of ledger.images)
    seen([id, ...names.split("\n")], firstSeenAt, sizeBytes);
  return found.toSorted((one, other) => compared(one.at, other.at));
}

/** Its ID first. */
const namesOf = ({ subject, names }: Removal): readonly string[] => [subject, ...names];

const endOf = ({ at, took }: Removal): Instant => (took === null ? at : plus(at, took));
