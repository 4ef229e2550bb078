// Each process that writes the state file has a mark in it, with the number of its writes; it removes the mark when
// everything is written. A mark that is missing or lower than its process knows is of an older copy of the file.

import type { Database } from "bun:sqlite";

import type { OtherWriters, WriterPresence } from "../model/ports.ts";
import { inTransaction, writeSetting } from "./connection.ts";
import type { FileState } from "./state-request.ts";

const MARK = "writer/";

export const marksIn = (db: Database): ReadonlyMap<string, number> =>
  new Map(
    db
      .query<{ key: string; value: string }, []>(
        `SELECT key, value FROM setting WHERE key > '${MARK}' AND key < 'writer0'`,
      )
      .all()
      .map(({ key, value }) => [key.slice(MARK.length), Number(value)]),
  );

const writeMark = (db: Database, id: string, writes: number): void =>
  writeSetting(db, `${MARK}${id}`, `${writes}`);

export function dropMarks(db: Database, ids: readonly string[]): void {
  const drop = db.query("DELETE FROM setting WHERE key = ?");
  for (const id of ids) drop.run(`${MARK}${id}`);
}

export class OwnMark {
  readonly #id: string | null;
  /** What the mark says; `null`: it was not written yet. */
  #writes: number | null = null;

  constructor(id: string | null) {
    this.#id = id;
  }

  /** Writes its next number together with this work; returns the state as it was before. */
  written(db: Database, work: (db: Database) => void): FileState {
    const id = this.#id;
    let writes: number | null = null;
    const state = inTransaction(db, () => {
      const before = this.state(db);
      if (id !== null) {
        writes = Math.max(this.#writes ?? 0, marksIn(db).get(id) ?? 0) + 1;
        writeMark(db, id, writes);
      }
      work(db);
      return before;
    });
    this.#writes = writes;
    return state;
  }

  state(db: Database): FileState {
    const marks = marksIn(db);
    const own = this.#id ?? "";
    return {
      marks: [...marks.keys()].filter((id) => id !== own),
      isOlder: this.#writes !== null && (marks.get(own) ?? -1) < this.#writes,
    };
  }

  /** The file is a new one. */
  forget(): void {
    this.#writes = null;
  }
}

/** Of a process that no other one writes beside. */
export const ALONE: WriterPresence = {
  id: "",
  others: () => ({ alive: [], isOneDead: false }),
  end: () => undefined,
};

export interface WriterTraces {
  /** Marks in the file, without this process's own. */
  readonly marks: readonly string[];
  /** The other processes before and after the marks were read: some enter and some leave meanwhile. */
  readonly before: OtherWriters;
  readonly after: OtherWriters;
  /** When this process found the file, it was not as its last writer closed it. */
  readonly wasLeftOpen: boolean;
}

/** Whether the ledger may miss changes: a process that wrote it ended before everything was written, or an older copy was put back. */
export function leftOpen({ marks, before, after, wasLeftOpen }: WriterTraces): {
  readonly isLeftOpen: boolean;
  readonly dead: readonly string[];
} {
  const alive = [...before.alive, ...after.alive];
  const dead = marks.filter((id) => !alive.includes(id));
  // A process that runs has opened the file, and will close it.
  const isUnexplained = wasLeftOpen && marks.length === 0 && alive.length === 0;
  const isLeftOpen = before.isOneDead || after.isOneDead || dead.length > 0 || isUnexplained;
  return { isLeftOpen, dead };
}
