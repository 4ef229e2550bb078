// Notices images that come back after they were removed, by ID or by name: each had to be pulled again.

import {
  type Regret,
  type RegretFigures,
  regretFigures,
  type Removal,
} from "../../model/history.ts";
import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import { plus } from "../../model/time.ts";
import { regretCodec, removalCodec } from "./history-records.ts";
import type { RecentHistory } from "./history.ts";
import { readable } from "./readable.ts";

export class Regrets {
  /** Removed images by their ID and by each of their names; of two with one name the later one. */
  readonly #removed = new Map<string, Removal>();
  #returned: readonly Regret[] = [];
  #removedCount = 0;

  /** What the history knows; a record that cannot be read is passed over, because nothing is decided by it. */
  load({ removals, regrets, removedCount }: RecentHistory): void {
    this.#removed.clear();
    this.#removedCount = removedCount - removals.length;
    for (const removal of readable(removals, removalCodec)) this.removed(removal);
    this.#returned = readable(regrets, regretCodec);
    for (const regret of this.#returned) this.returned(regret);
  }

  figures(): RegretFigures {
    return regretFigures(this.#removedCount, this.#returned);
  }

  /** An image was removed. */
  removed(removal: Removal): void {
    if (removal.kind !== "image" || removal.result !== "removed") return;
    this.#removedCount += 1;
    for (const name of namesOf(removal)) this.#removed.set(name, removal);
  }

  /** It has come back; each removal is regretted once. */
  returned(removal: Pick<Removal, "subject" | "names">): void {
    for (const name of namesOf(removal)) this.#removed.delete(name);
  }

  /** What came back between two looks at the node; nothing where both are of one look. */
  seen(next: Ledger, previous: Ledger): readonly Regret[] {
    const { observedAt } = next;
    if (this.#removed.size === 0 || observedAt === null || observedAt === previous.observedAt)
      return [];
    const regrets: Regret[] = [];
    for (const [id, record] of next.images) {
      const removal = previous.images.has(id) ? undefined : this.#removalOf(id, record);
      // A list from before the removal says nothing of what came after it.
      if (removal === undefined || observedAt <= endOf(removal)) continue;
      this.returned(removal);
      regrets.push({
        passId: removal.passId,
        subject: removal.subject,
        names: removal.names,
        removedAt: removal.at,
        at: observedAt,
        returnedAs: id,
        sizeBytes: record.sizeBytes,
        trigger: removal.trigger,
        signal: removal.signal,
        reason: removal.reason,
      });
    }
    this.#returned = [...this.#returned, ...regrets];
    return regrets;
  }

  #removalOf(id: ImageId, record: ImageRecord): Removal | undefined {
    const name = [id, ...record.names.split("\n")].find((it) => this.#removed.has(it));
    return name === undefined ? undefined : this.#removed.get(name);
  }
}

const namesOf = ({ subject, names }: Pick<Removal, "subject" | "names">): readonly string[] => [
  subject,
  ...names,
];

const endOf = ({ at, took }: Removal) => (took === null ? at : plus(at, took));
