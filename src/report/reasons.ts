/** A table of reasons: one entry per code with its title and sentence, and its data for documents. */

import { type Duration, type Instant, toMs } from "../model/time.ts";
import { type JsonObject, timeOf } from "./document.ts";

/** A reason by its code. */
export interface Kind {
  readonly kind: string;
}

interface Wording<Reason> {
  /** A short title, for a heading or a column. */
  readonly title: string;
  /** A sentence without a full stop; absent: the title. */
  text?(reason: Reason): string;
  /** Data in documents; absent: the fields of the reason. */
  data?(reason: Reason): JsonObject;
}

export type ReasonTable<Reason extends Kind> = {
  readonly [Code in Reason["kind"]]: Wording<Extract<Reason, { kind: Code }>>;
};

export interface Reasons<Reason extends Kind> {
  readonly text: (reason: Reason) => string;
  /** An unknown code, of a later version, is shown as it is. */
  readonly title: (code: string) => string;
  /** `code`, `text` and the data. */
  readonly json: (reason: Reason) => JsonObject;
}

export function reasons<Reason extends Kind>(table: ReasonTable<Reason>): Reasons<Reason> {
  const entries: ReadonlyMap<string, Wording<Kind>> = new Map(Object.entries(table));
  const text = (reason: Reason): string => {
    const entry = entries.get(reason.kind);
    return entry?.text?.(reason) ?? entry?.title ?? reason.kind;
  };
  return {
    text,
    title: (code) => entries.get(code)?.title ?? code,
    json: (reason) => ({
      code: reason.kind,
      text: text(reason),
      ...(entries.get(reason.kind)?.data?.(reason) ?? dataJson(reason)),
    }),
  };
}

/** Fields of reasons, findings and holds that need a unit or a format in documents. */
interface Timed {
  readonly since?: Instant | null;
  readonly until?: Instant | null;
  readonly lastAt?: Instant;
  readonly age?: Duration;
  readonly minimumAge?: Duration;
  readonly remaining?: Duration;
}

/** The fields of a reason, finding or hold, instants as RFC 3339 and durations in milliseconds. */
export function dataJson({ kind: _code, ...rest }: Kind & Timed): JsonObject {
  const { since, until, lastAt, age, minimumAge, remaining, ...plain } = rest;
  return {
    ...plain,
    ...(since !== undefined && { since: timeOf(since) }),
    ...(until !== undefined && { until: timeOf(until) }),
    ...(lastAt !== undefined && { lastAt: timeOf(lastAt) }),
    ...(age !== undefined && { ageMs: toMs(age) }),
    ...(minimumAge !== undefined && { minimumAgeMs: toMs(minimumAge) }),
    ...(remaining !== undefined && { remainingMs: toMs(remaining) }),
  };
}
