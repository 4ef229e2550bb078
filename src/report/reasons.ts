/** A table of reasons: one entry per code with its title and sentence, and its data for documents. */

import { type JsonObject, jsonOf } from "./document.ts";

/** A reason by its code. */
export interface Kind {
  readonly kind: string;
}

export type ReasonTable<Reason extends Kind> = {
  readonly [Code in Reason["kind"]]: {
    /** A short title, for a heading or a column. */
    readonly title: string;
    /** A sentence without a full stop; absent: the title. */
    text?(reason: Extract<Reason, { kind: Code }>): string;
    /** Data in documents, if other than the fields of the reason. */
    data?(reason: Extract<Reason, { kind: Code }>): object;
  };
};

export interface Reasons<Reason extends Kind> {
  readonly text: (reason: Reason) => string;
  /** An unknown code, of a later version, is shown as it is. */
  readonly title: (code: string) => string;
  readonly json: (reason: Reason) => ReasonJson;
}

/** With the data of the reason. */
export type ReasonJson = JsonObject & { readonly code: string; readonly text: string };

export function reasons<Reason extends Kind>(table: ReasonTable<Reason>): Reasons<Reason> {
  const entries = new Map<string, ReasonTable<Kind>[string]>(Object.entries(table));
  const title = (code: string): string => entries.get(code)?.title ?? code;
  const text = (reason: Reason): string =>
    entries.get(reason.kind)?.text?.(reason) ?? title(reason.kind);
  return {
    text,
    title,
    json: (reason) => {
      const data = entries.get(reason.kind)?.data?.(reason);
      const other = data === undefined ? dataJson(reason) : jsonOf(data);
      return { code: reason.kind, text: text(reason), ...other };
    },
  };
}

/** The fields of a reason, finding or hold without its code. */
export const dataJson = ({ kind: _code, ...data }: Kind): JsonObject => jsonOf(data);
