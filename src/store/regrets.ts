// Recognises images that come back after their removal, by ID or name: each had to be pulled again.

import type { Database } from "bun:sqlite";

import type { RegretFigures, Removal } from "../model/history.ts";
import { type Duration, type ObservedTime, plus, since } from "../model/time.ts";
import { REMOVED_IMAGE } from "./connection.ts";
import { historyRow, newestRows, writeRow } from "./history.ts";
import { imageOf, type LedgerChange } from "./ledger-rows.ts";

/** How many of the latest removed images are recognised when they come back. */
export const REMOVED_IMAGES = 1_000;

const REMOVED = `history INDEXED BY removed_images WHERE ${REMOVED_IMAGE}`;

/** Within the caller's transaction. `before`: observed time of the ledger that these changes were made to. */
export function recordRegrets(
  db: Database,
  changes: readonly LedgerChange[],
  before: ObservedTime,
): void {
  const arrived = changes
    .flatMap(([kind, id, text]) =>
      kind === "images" && text !== null ? [{ ...imageOf(text), id }] : [],
    )
    .filter(({ firstSeenWatched }) => firstSeenWatched > before);
  if (arrived.length === 0) return;
  const removals = newestRows(db, "removal", { from: REMOVED, limit: REMOVED_IMAGES });
  // Of two with one name, the later one.
  const removed = new Map(removals.flatMap((it) => namesOf(it).map((name) => [name, it])));
  for (const { id, names, firstSeenAt: at, firstSeenWatched, sizeBytes } of arrived) {
    const name = [id, ...names.split("\n")].find((it) => removed.has(it)) ?? "";
    const removal = removed.get(name);
    // A list from before the removal says nothing about what came after it.
    if (removal === undefined || at <= endOf(removal)) continue;
    const row = { ...removal, removedAt: removal.at, at, returnedAs: id, sizeBytes };
    // Each removal counts once.
    for (const it of namesOf(removal)) removed.delete(it);
    writeRow(db, historyRow({ kind: "regret", row }, firstSeenWatched));
  }
}

const namesOf = ({ subject, names }: Removal): readonly string[] => [subject, ...names];

const endOf = ({ at, took }: Removal) => (took === null ? at : plus(at, took));

/** As far as the history goes, and for the latest of those that came back. */
export function regretFiguresIn(db: Database): RegretFigures {
  const sql = `SELECT count(*) AS count FROM ${REMOVED}`;
  const removedImages = db.query<{ count: number }, []>(sql).get()?.count ?? 0;
  const from = "history WHERE kind = 'regret'";
  const regrets = newestRows(db, "regret", { from, limit: REMOVED_IMAGES });
  const returned = [...Map.groupBy(regrets, ({ trigger }) => trigger)]
    .map(([trigger, those]) => ({
      trigger,
      count: those.length,
      sizeBytes: those.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n),
    }))
    .toSorted((one, other) => (one.trigger < other.trigger ? -1 : 1));
  const times = regrets.map(({ at, removedAt }) => since(at, removedAt));
  const soonest = times.reduce<Duration | null>(
    (least, time) => (least === null || time < least ? time : least),
    null,
  );
  return { removedImages, returned, soonest };
}
