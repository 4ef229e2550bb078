/** A table of reasons: one entry per code with its title, sentence and data, for text and JSON. */

import type { Decision } from "../model/plan.ts";
import type { JsonObject } from "./document/json.ts";

/** A reason by its code. */
export interface Kind {
  readonly kind: string;
}

/** Values that documents take as they are. Times and durations need a name with a unit, records their own fields. */
type Plain = string | number | boolean | undefined | readonly string[];

interface Wording<Reason> {
  /** A short title, for a heading or a column. */
  readonly title: string;
  /** A sentence without a full stop; absent: the title. */
  text?(reason: Reason): string;
}

type Data<Reason> =
  Exclude<Reason[keyof Reason], Plain> extends never
    ? { readonly data?: never }
    : { data(reason: Reason): JsonObject };

export type ReasonTable<Reason extends Kind> = {
  readonly [Code in Reason["kind"]]: Wording<Extract<Reason, { kind: Code }>> &
    Data<Extract<Reason, { kind: Code }>>;
};

export interface Reasons<Reason extends Kind> {
  readonly codes: readonly string[];
  readonly text: (reason: Reason) => string;
  /** An unknown code, of a later version, is shown as it is. */
  readonly title: (code: string) => string;
  /** `code`, `text` and the data. */
  readonly json: (reason: Reason) => JsonObject;
}

interface Entry extends Wording<Kind> {
  data?(reason: Kind): JsonObject;
}

export function reasons<Reason extends Kind>(table: ReasonTable<Reason>): Reasons<Reason> {
  const entries: ReadonlyMap<string, Entry> = new Map(Object.entries(table));
  const text = (reason: Reason): string => {
    const entry = entries.get(reason.kind);
    return entry?.text?.(reason) ?? entry?.title ?? reason.kind;
  };
  return {
    codes: [...entries.keys()],
    text,
    title: (code) => entries.get(code)?.title ?? code,
    json: (reason) => ({
      code: reason.kind,
      text: text(reason),
      ...(entries.get(reason.kind)?.data?.(reason) ?? plainData(reason)),
    }),
  };
}

/** The same of a decision, whichever way it went. */
export interface DecisionReasons<Keep extends Kind, Remove extends Kind> {
  text(decision: Decision<Keep, Remove>): string;
  title(decision: Decision<Keep, Remove>): string;
  json(decision: Decision<Keep, Remove>): JsonObject;
}

export const decisionReasons = <Keep extends Kind, Remove extends Kind>(
  keep: Reasons<Keep>,
  remove: Reasons<Remove>,
): DecisionReasons<Keep, Remove> => ({
  text: (it) => (it.kind === "keep" ? keep.text(it.reason) : remove.text(it.reason)),
  title: ({ kind, reason }) => (kind === "keep" ? keep : remove).title(reason.kind),
  json: (it) => (it.kind === "keep" ? keep.json(it.reason) : remove.json(it.reason)),
});

const plainData = ({ kind: _code, ...data }: Kind): JsonObject => data;
