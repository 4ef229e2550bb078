// The ledger as rows of the state file, one per entry of its maps: read completely, written by difference.

import type { Database } from "bun:sqlite";

import {
  type Codec,
  flag,
  nullable,
  type Of,
  record,
  type RecordOf,
  time,
  watchedNs,
} from "../model/codec.ts";
import { StoreError } from "../model/errors.ts";
import { rowJson } from "../model/exact-json.ts";
import type { ImageId } from "../model/ids.ts";
import {
  emptyLedger,
  imageFields,
  type ImageRecord,
  type Ledger,
  ledgerMaps,
  stateFields,
} from "../model/ledger.ts";
import type { ObservedTime } from "../model/time.ts";
import { readSetting, REMOVED_IMAGE, writeSetting } from "./connection.ts";

/** When an image was last in use: the same moment for all that were in use at one observation. */
const aLastUse = record({ at: time, watched: watchedNs });
type LastUse = Of<typeof aLastUse>;

/** The ledger besides its maps, with the last observation at which anything was in use. */
const stateRow = record({ ...stateFields, lastUse: nullable(aLastUse) });
type LedgerState = RecordOf<typeof stateFields>;

/** An image in use at that observation says only that, so that a node without changes writes no row per image. */
const imageRow = record({ ...imageFields, inUse: flag });

export type LedgerRow = readonly [kind: string, id: string, document: string];

/** A row as it is to be; `null`: it is removed. */
export type LedgerChange = readonly [kind: string, id: string, document: string | null];

type MapName = keyof typeof ledgerMaps;
type Maps = Pick<Ledger, MapName>;
const codecs: Readonly<Record<MapName, { readonly value: Codec<unknown> }>> = ledgerMaps;
const isMapName = (kind: string): kind is MapName => Object.hasOwn(codecs, kind);
export const mapNames = Object.keys(codecs).filter(isMapName);
export const STATE_KIND = "state";

/** The ledger of these rows; throws like `LedgerReading`. */
export function ledgerOf(rows: Iterable<LedgerRow>): Ledger {
  const reading = new LedgerReading();
  reading.add(rows);
  return reading.ledger();
}

/**
 * Builds a ledger from rows as they arrive, its state first. Throws `StoreError` or `FieldError` for rows that crigc
 * cannot have written; skips kinds of rows that a later version added.
 */
export class LedgerReading {
  readonly #maps = new Map(mapNames.map((it) => [it, new Map<string, unknown>()]));
  /** Most containers, pods and sandboxes of a kind say the same, and share what was read of it. */
  readonly #shared = new Map<string, unknown>();
  #state: LedgerState | null = null;
  #lastUse: LastUse | null = null;

  add(rows: Iterable<LedgerRow>): void {
    for (const [kind, id, text] of rows) {
      if (kind === STATE_KIND) {
        const { lastUse, ...state } = stateRow.read(JSON.parse(text));
        this.#state = state;
        this.#lastUse = lastUse;
      } else if (isMapName(kind)) {
        // Without a state, records would make images look older than they are.
        if (this.#state === null) throw broken("it has records but no state");
        const value = kind === "images" ? this.#image(text) : this.#value(kind, text);
        this.#maps.get(kind)?.set(id, value);
      }
    }
  }

  ledger(): Ledger {
    if (this.#state === null) return emptyLedger;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each map was filled by its own codec
    const maps = Object.fromEntries(this.#maps) as unknown as Maps;
    lastUses.set(maps.images, this.#lastUse);
    return { ...this.#state, ...maps };
  }

  #value(kind: MapName, text: string): unknown {
    const key = `${kind} ${text}`;
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const value = codecs[kind].value.read(JSON.parse(text));
    if (this.#shared.size < SHARED_MAX) this.#shared.set(key, value);
    return value;
  }

  #image(text: string): ImageRecord {
    const { inUse, ...image } = imageRow.read(JSON.parse(text));
    if (!inUse) return image;
    if (this.#lastUse === null)
      throw broken("it has images in use, but no time of that observation");
    return { ...image, lastUsedAt: this.#lastUse.at, lastUsedWatched: this.#lastUse.watched };
  }
}

/** As its row says; without its last use, if that was at the last observation. */
export const imageOf = (document: string): ImageRecord => imageRow.read(JSON.parse(document));

/** What few say need not be remembered. */
const SHARED_MAX = 64;

const broken = (what: string): StoreError =>
  new StoreError("corrupt", `cannot read the ledger: ${what}`);

/** The rows that differ. `changed`: the only images whose records do; `null`: any may. */
export function ledgerChanges(
  next: Ledger,
  previous: Ledger,
  changed: ReadonlySet<ImageId> | null = null,
): readonly LedgerChange[] {
  const lastUseBefore = lastUseOf(previous.images);
  // A comparison of all images for each removal would take longer than the removal. Their rows refer to the same moment.
  if (changed !== null) lastUses.set(next.images, lastUseBefore);
  const lastUse = lastUseOf(next.images);
  const changes: LedgerChange[] = [];
  const state = stateText(next, lastUse);
  // A file without this row is read as the empty ledger, so the row must be written then.
  if (previous === emptyLedger || state !== stateText(previous, lastUseBefore))
    changes.push([STATE_KIND, "", state]);
  addChanges<ImageRecord>(changes, {
    kind: "images",
    changed,
    after: next.images,
    before: previous.images,
    // Most records are the same object.
    isSame: (after, before) =>
      after === before
        ? isLast(after, lastUse) === isLast(before, lastUseBefore)
        : Bun.deepEquals(rowImage(after, lastUse), rowImage(before, lastUseBefore)),
    document: (image) => imageRow.write(rowImage(image, lastUse)),
  });
  for (const kind of mapNames)
    if (kind !== "images")
      addChanges<unknown>(changes, {
        kind,
        changed: null,
        after: next[kind],
        before: previous[kind],
        isSame: (after, before) => after === before || Bun.deepEquals(after, before),
        document: (value) => codecs[kind].value.write(value),
      });
  return changes;
}

interface MapChange<Value> {
  readonly kind: MapName;
  /** The only keys under which rows can differ; `null`: all. */
  readonly changed: ReadonlySet<string> | null;
  readonly after: ReadonlyMap<string, Value>;
  readonly before: ReadonlyMap<string, Value>;
  readonly isSame: (after: Value, before: Value) => boolean;
  readonly document: (value: Value) => unknown;
}

function addChanges<Value>(changes: LedgerChange[], change: MapChange<Value>): void {
  const { kind, changed, after, before, isSame, document } = change;
  if (after === before) return;
  for (const id of changed ?? after.keys()) {
    const [value, known] = [after.get(id), before.get(id)];
    if (value !== undefined && (known === undefined || !isSame(value, known)))
      changes.push([kind, id, rowJson(document(value))]);
  }
  for (const id of changed ?? before.keys())
    if (!after.has(id) && before.has(id)) changes.push([kind, id, null]);
}

const stateText = (ledger: Ledger, lastUse: LastUse | null): string =>
  rowJson(stateRow.write({ ...ledger, lastUse }));

/** The moment to which rows of these images refer: that of their file, or the last observation with any in use. */
const lastUses = new WeakMap<Ledger["images"], LastUse | null>();

function lastUseOf(images: Ledger["images"]): LastUse | null {
  const known = lastUses.get(images);
  if (known !== undefined) return known;
  let last: LastUse | null = null;
  for (const { lastUsedAt: at, lastUsedWatched: watched } of images.values())
    if (at !== null && watched !== null && !isEarlier({ at, watched }, last))
      last = { at, watched };
  lastUses.set(images, last);
  return last;
}

const isEarlier = ({ at, watched }: LastUse, last: LastUse | null): boolean =>
  last !== null && (watched < last.watched || (watched === last.watched && at <= last.at));

const isLast = (image: ImageRecord | undefined, last: LastUse | null): boolean =>
  last !== null && image?.lastUsedAt === last.at && image.lastUsedWatched === last.watched;

const rowImage = (image: ImageRecord, last: LastUse | null) =>
  isLast(image, last)
    ? { ...image, lastUsedAt: null, lastUsedWatched: null, inUse: true }
    : { ...image, inUse: false };

/** The row of the ledger's state comes first. */
export function* readLedgerRows(db: Database): Iterable<LedgerRow> {
  // Two queries, because ordering by kind would sort what its key already orders.
  for (const comparison of ["=", "<>"]) {
    const sql = `SELECT kind, id, document FROM ledger WHERE kind ${comparison} '${STATE_KIND}'`;
    for (const { kind, id, document } of db.query<Row, []>(sql).iterate())
      yield [kind, id, document];
  }
}

interface Row {
  readonly kind: string;
  readonly id: string;
  readonly document: string;
}

/** The image's record, first seen no earlier than its last removal in the history. */
const newSinceRemoval = (id: string, image: string): string => `ifnull((
  SELECT json_set(${image}, '$.firstSeenWatchedNs', CAST(watched AS TEXT), '$.firstSeenAt', document ->> '$.at')
  FROM history INDEXED BY removed_images WHERE ${REMOVED_IMAGE} AND document ->> '$.subject' = ${id}
    AND watched > CAST(${image} ->> '$.firstSeenWatchedNs' AS INTEGER) ORDER BY watched DESC LIMIT 1), ${image})`;

/** Observed time of the ledger; `null`: there is none. */
export function watchedIn(db: Database): ObservedTime | null {
  const sql = `SELECT document FROM ledger WHERE kind = '${STATE_KIND}'`;
  const state = db.query<{ document: string }, []>(sql).get();
  return state === null ? null : stateRow.read(JSON.parse(state.document)).watched;
}

/** Within the caller's transaction. `revision`: of the file with these changes. */
export function writeLedgerRows(
  db: Database,
  changes: readonly LedgerChange[],
  revision: string,
): void {
  const put = db.query("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)");
  const putImage = db.query(
    `INSERT OR REPLACE INTO ledger VALUES ('images', ?1, ${newSinceRemoval("?1", "?2")})`,
  );
  const drop = db.query("DELETE FROM ledger WHERE kind = ? AND id = ?");
  for (const [kind, id, document] of changes)
    if (document === null) drop.run(kind, id);
    else if (kind === "images") putImage.run(id, document);
    else put.run(kind, id, document);
  writeSetting(db, REVISION, revision);
}

const REVISION = "ledger-revision";

/** After the row of a removal: a record that is left of the image is of one that came back. */
export function renewRemoved(db: Database, key: string): void {
  db.query(
    `UPDATE ledger SET document = ${newSinceRemoval("ledger.id", "ledger.document")}
     WHERE kind = 'images' AND id = (SELECT document ->> '$.subject' FROM history WHERE key = ?)`,
  ).run(key);
}

/** Names the file and counts its changes; random, so that one process never takes the change of another for its own. */
export function nextRevision(revision: string | null): string {
  const { file, count } = revisionParts(revision);
  return `${file || crypto.randomUUID()} ${count + 1} ${crypto.randomUUID()}`;
}

/** Another file is in the place of the known one, or an older copy of it, also if its changes since are no more. */
export function isOtherFile(revision: string, known: string | null): boolean {
  if (revision === known) return false;
  const [found, before] = [revisionParts(revision), revisionParts(known)];
  return before.file !== "" && (found.file !== before.file || found.count <= before.count);
}

function revisionParts(revision: string | null) {
  const [file = "", count = "0"] = (revision ?? "").split(" ");
  return { file, count: Number(count) };
}

/** "" before the first change. */
export const revisionOf = (db: Database): string => readSetting(db, REVISION) ?? "";
