// Recognises images that come back after their removal, by ID or name: each had to be pulled again.

import type { Regret, RegretFigures, Removal } from "../model/history.ts";
import type { ImageId } from "../model/ids.ts";
import type { ImageRecord, Ledger } from "../model/ledger.ts";
import { type Duration, plus, since } from "../model/time.ts";
import { readable, type RecentHistory, REMOVED_IMAGES } from "./history.ts";

export class Regrets {
  /** Removed images by their ID and each of their names; of two with one name, the later one. */
  readonly #removed = new Map<string, Removal>();
  /** The same in the order of removal, bounded as after a restart, however long an agent runs. */
  readonly #newest = new Set<Removal>();
  /** By the trigger of the removal. */
  readonly #returned = new Map<string, { readonly count: number; readonly sizeBytes: bigint }>();
  #soonest: Duration | null = null;
  #removedCount = 0;

  /** The records of the history. Invalid ones are skipped, because no decision depends on them. */
  load({ removals, regrets, removedCount }: RecentHistory): void {
    this.#removed.clear();
    this.#newest.clear();
    this.#returned.clear();
    this.#soonest = null;
    this.#removedCount = removedCount - removals.length;
    for (const removal of readable("removal", removals)) this.removed(removal);
    for (const regret of readable("regret", regrets)) this.#count(regret);
  }

  figures(): RegretFigures {
    const returned = [...this.#returned].map(([trigger, sums]) => ({ trigger, ...sums }));
    return {
      removedImages: this.#removedCount,
      returned: returned.toSorted((one, other) => (one.trigger < other.trigger ? -1 : 1)),
      soonest: this.#soonest,
    };
  }

  removed(removal: Removal): void {
    if (removal.kind !== "image" || removal.result !== "removed") return;
    this.#removedCount += 1;
    for (const name of namesOf(removal)) this.#removed.set(name, removal);
    this.#newest.add(removal);
    const [oldest] = this.#newest;
    if (this.#newest.size <= REMOVED_IMAGES || oldest === undefined) return;
    this.#newest.delete(oldest);
    for (const name of namesOf(oldest))
      if (this.#removed.get(name) === oldest) this.#removed.delete(name);
  }

  /** Counts each removal once. */
  #count(regret: Regret): void {
    const removal = this.#removed.get(regret.subject);
    if (removal !== undefined) this.#newest.delete(removal);
    for (const name of namesOf(regret)) this.#removed.delete(name);
    const { count, sizeBytes } = this.#returned.get(regret.trigger) ?? NONE;
    const sums = { count: count + 1, sizeBytes: sizeBytes + regret.sizeBytes };
    this.#returned.set(regret.trigger, sums);
    const time = since(regret.at, regret.removedAt);
    if (this.#soonest === null || time < this.#soonest) this.#soonest = time;
  }

  /** What came back between two observations; nothing if both are the same one. */
  seen(next: Ledger, previous: Ledger): readonly Regret[] {
    const { observedAt } = next;
    if (this.#removed.size === 0 || observedAt === null || observedAt === previous.observedAt)
      return [];
    const regrets: Regret[] = [];
    for (const [id, record] of next.images) {
      const removal = previous.images.has(id) ? undefined : this.#removalOf(id, record);
      // A list from before the removal says nothing about what came after it.
      if (removal === undefined || observedAt <= endOf(removal)) continue;
      const regret: Regret = {
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
      };
      this.#count(regret);
      regrets.push(regret);
    }
    return regrets;
  }

  #removalOf(id: ImageId, record: ImageRecord): Removal | undefined {
    const name = [id, ...record.names.split("\n")].find((it) => this.#removed.has(it));
    return name === undefined ? undefined : this.#removed.get(name);
  }
}

const NONE = { count: 0, sizeBytes: 0n };

const namesOf = ({ subject, names }: Pick<Removal, "subject" | "names">): readonly string[] => [
  subject,
  ...names,
];

const endOf = ({ at, took }: Removal) => (took === null ? at : plus(at, took));
