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
import { baseOf, changedKeys } from "../model/layered-map.ts";
import {
  emptyLedger,
  imageFields,
  type ImageRecord,
  type Ledger,
  ledgerMaps,
  stateFields,
} from "../model/ledger.ts";
import { instant, watched as asWatched } from "../model/time.ts";
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
    const maps: unknown = Object.fromEntries(this.#maps);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each map was filled by its own codec
    return { ...this.#state, ...(maps as Maps) };
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

/** What few say need not be remembered. */
const SHARED_MAX = 64;

const broken = (what: string): StoreError =>
  new StoreError("corrupt", `cannot read the ledger: ${what}`);

/** The rows that differ. */
export function ledgerChanges(next: Ledger, previous: Ledger): readonly LedgerChange[] {
  const lastUseBefore = lastUseOf(previous.images);
  const lastUse = lastUseOf(next.images);
  const changes: LedgerChange[] = [];
  const state = stateText(next, lastUse);
  // A file without this row is read as the empty ledger, so the row must be written then.
  if (previous === emptyLedger || state !== stateText(previous, lastUseBefore))
    changes.push([STATE_KIND, "", state]);
  // Rows of images in use say so by that observation.
  const isSameUse =
    lastUse?.at === lastUseBefore?.at && lastUse?.watched === lastUseBefore?.watched;
  addChanges<ImageRecord>(changes, {
    kind: "images",
    changed: isSameUse ? changedKeys(next.images, previous.images) : null,
    after: next.images,
    before: previous.images,
    // Most records are the same object, and each removal compares all.
    isSame: (after, before) =>
      after === before
        ? isLast(after, lastUse) === isLast(before, lastUseBefore)
        : Bun.deepEquals(rowImage(after, lastUse), rowImage(before, lastUseBefore)),
    document: (image) => imageRow.write(rowImage(image, lastUse)),
  });
  for (const kind of mapNames)
    if (kind !== "images" && next[kind] !== previous[kind])
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

/** The last observation at which any image was in use. */
function lastUseOf(images: Ledger["images"]): LastUse | null {
  const base = baseOf(images);
  const lastOfBase = lastUseIn(base);
  let last = lastOfBase;
  for (const id of changedKeys(images, base) ?? []) {
    // Others may have been in use then, or none.
    if (isLast(base.get(id), lastOfBase)) return lastUseIn(images);
    last = later(images.get(id), last);
  }
  return last;
}

const lastUses = new WeakMap<Ledger["images"], { readonly last: LastUse | null }>();

function lastUseIn(images: Ledger["images"]): LastUse | null {
  const known = lastUses.get(images);
  if (known !== undefined) return known.last;
  let last: LastUse | null = null;
  for (const image of images.values()) last = later(image, last);
  lastUses.set(images, { last });
  return last;
}

function later(image: ImageRecord | undefined, last: LastUse | null): LastUse | null {
  const { lastUsedAt: at = null, lastUsedWatched: watched = null } = image ?? {};
  if (at === null || watched === null) return last;
  const isLater =
    last === null || watched > last.watched || (watched === last.watched && at > last.at);
  return isLater ? { at, watched } : last;
}

const isLast = (image: ImageRecord | undefined, last: LastUse | null): boolean =>
  last !== null && image?.lastUsedAt === last.at && image.lastUsedWatched === last.watched;

const rowImage = (image: ImageRecord, last: LastUse | null) =>
  isLast(image, last)
    ? { ...image, lastUsedAt: null, lastUsedWatched: null, inUse: true }
    : { ...image, inUse: false };

/** The row of the ledger's state comes first. No image was first seen before its last removal in the history. */
export function* readLedgerRows(db: Database): Iterable<LedgerRow> {
  const removals = new Map(removalsOfKnown(db).map((it) => [it.id, it]));
  // Two queries, because ordering by kind would sort what its key already orders.
  for (const comparison of ["=", "<>"]) {
    const sql = `SELECT kind, id, document FROM ledger WHERE kind ${comparison} '${STATE_KIND}'`;
    for (const { kind, id, document } of db.query<Row, []>(sql).iterate()) {
      const removal = kind === "images" ? removals.get(id) : undefined;
      yield [kind, id, removal === undefined ? document : firstSeenAfter(document, removal)];
    }
  }
}

interface Row {
  readonly kind: string;
  readonly id: string;
  readonly document: string;
}

interface LastRemoval {
  readonly id: string;
  readonly watched: bigint;
  readonly at: bigint;
}

/** Of images that the ledger has again. */
const removalsOfKnown = (db: Database): readonly LastRemoval[] =>
  db
    .query<LastRemoval, []>(
      `SELECT id, watched, at FROM ledger JOIN (
         SELECT document ->> '$.subject' AS subject, max(watched) AS watched, at
         FROM history INDEXED BY removed_images WHERE ${REMOVED_IMAGE} GROUP BY 1
       ) ON subject = id WHERE ledger.kind = 'images'`,
    )
    .safeIntegers(true)
    .all();

function firstSeenAfter(document: string, { watched, at }: LastRemoval): string {
  const image = imageRow.read(JSON.parse(document));
  if (image.firstSeenWatched >= watched) return document;
  const first = { firstSeenWatched: asWatched(watched), firstSeenAt: instant(at) };
  return rowJson(imageRow.write({ ...image, ...first }));
}

/** Within the caller's transaction. `revision`: of the file with these changes. */
export function writeLedgerRows(
  db: Database,
  changes: readonly LedgerChange[],
  revision: string,
): void {
  const put = db.query("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)");
  const drop = db.query("DELETE FROM ledger WHERE kind = ? AND id = ?");
  for (const [kind, id, document] of changes)
    if (document === null) drop.run(kind, id);
    else put.run(kind, id, document);
  writeSetting(db, REVISION, revision);
}

const REVISION = "ledger-revision";

/** Random, so that a file restored from elsewhere is not taken for the known one; "" before the first change. */
export const revisionOf = (db: Database): string => readSetting(db, REVISION) ?? "";
