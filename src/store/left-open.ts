// Whether the ledger may miss changes: a process that wrote it ended before everything was written, or an older copy was
// put back.

import type { OtherWriters, WriterPresence } from "../model/ports.ts";

/** Of a process that no other one writes beside. */
export const ALONE: WriterPresence = {
  id: "",
  others: () => ({ alive: [], isOneDead: false }),
  end: () => undefined,
};

export interface Traces {
  /** Marks in the file, without this process's own. */
  readonly marks: readonly string[];
  /** The other processes before and after the marks were read: some enter and some leave meanwhile. */
  readonly before: OtherWriters;
  readonly after: OtherWriters;
  /** When this process found the file, it was not as its last writer closed it. */
  readonly wasLeftOpen: boolean;
}

/** `dead`: marks of processes that ended. */
export function leftOpen({ marks, before, after, wasLeftOpen }: Traces): {
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
