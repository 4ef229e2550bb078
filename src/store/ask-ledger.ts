// One request to the state file, with the ledger that its reply brings. Never rejects.

import type { Ledger } from "../model/ledger.ts";
import { storeError } from "./errors.ts";
import { LedgerReading } from "./ledger-rows.ts";
import type { StateChannel, StateReply, StateRequest } from "./state-request.ts";

export type Answer =
  | Exclude<StateReply, { kind: "read" }>
  | (Extract<StateReply, { kind: "read" }> & { readonly ledger: Ledger });

/** Has a file with rows that cannot be understood moved aside. */
export async function askLedger(
  channel: StateChannel,
  directory: string,
  request: StateRequest,
): Promise<Answer> {
  const reading = new LedgerReading();
  let wrong: unknown = null;
  try {
    const reply = await channel.ask(request, (rows) => {
      try {
        if (wrong === null) reading.add(rows);
      } catch (error) {
        wrong = error;
      }
    });
    if (wrong !== null) {
      const { message } = storeError(`read the ledger in ${directory}`, wrong);
      const aside = await channel.ask({ kind: "put-aside", message }, () => undefined);
      if (aside.kind !== "read") return aside;
    }
    return reply.kind === "read" ? { ...reply, ledger: reading.ledger() } : reply;
  } catch (error) {
    const { kind, message } = storeError(`access the ledger in ${directory}`, error);
    return { kind: "failed", error: kind, message };
  }
}
