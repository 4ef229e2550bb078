/** `crigc history`: what was removed, when, why, and what it freed. */

import { historyDocument } from "../../report/document/history.ts";
import { printedJson } from "../../report/document/json.ts";
import { historyTable } from "../../report/table/history.ts";
import { ALL_OPTION, type Command, screenFor } from "../command.ts";
import { exit } from "../exit.ts";
import { HISTORY_OPTIONS, historyRequest } from "../read/history-request.ts";
import { readHistory } from "../read/read-history.ts";

export const history: Command = {
  name: "history",
  summary: "what was removed, when, why, and what it freed",
  doc: "Passes with what each removed (freed as reported and as measured), and warnings between them, the oldest first. With --kind, --reason, --result or --image only such removals are shown, each under its pass. Reads the state directory alone, beside a running agent too.",
  operands: [],
  options: [...HISTORY_OPTIONS, ALL_OPTION],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const request = historyRequest(invocation, context.open.now());
    const store = context.open.state(context.config);
    try {
      // It has been said why; an empty answer would say that nothing was removed.
      if (store.failure !== null) return exit.internal;
      const { report, cut } = readHistory(store, request);
      if (cut)
        context.stderr(`crigc: only the newest ${request.limit} are shown; --limit shows more\n`);
      context.stdout(
        invocation.output === "json"
          ? printedJson(historyDocument(report))
          : historyTable(report, screenFor(context, invocation)),
      );
      return exit.done;
    } finally {
      store.close();
    }
  },
};
