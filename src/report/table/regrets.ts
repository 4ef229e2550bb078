/** Images that came back after their removal: a table for `crigc history --regrets`, and a summary line. */

import type { Regret, RegretFigures } from "../../model/history.ts";
import { since } from "../../model/time.ts";
import { counted, humanBytes, humanDuration, secondOf } from "../bytes.ts";
import { shortId } from "../names.ts";
import { clean, type Screen } from "../terminal.ts";
import { text } from "./plan.ts";
import { type Column, tableLines } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { title: "CAME BACK" },
  { title: "AFTER", align: "right" },
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  { title: "REMOVED FOR", minimumWidth: 8 },
];

export function regretsTable(regrets: readonly Regret[], screen: Screen): string {
  if (regrets.length === 0) return "No removed image came back in this selection.\n";
  return text(
    tableLines(
      COLUMNS,
      regrets.map((one) => [
        secondOf(one.at),
        humanDuration(since(one.at, one.removedAt)),
        clean(one.names[0] ?? shortId(one.subject)),
        humanBytes(one.sizeBytes),
        one.signal === null ? one.reason : `${one.reason} ${one.signal}`,
      ]),
      screen,
    ),
  );
}

/** `214 images removed, 3 came back (1.2 GiB), the first after 6h`. */
export function regretWords({ removedImages, returned, soonest }: RegretFigures): string {
  const count = returned.reduce((sum, one) => sum + one.count, 0);
  const sizeBytes = returned.reduce((sum, one) => sum + one.sizeBytes, 0n);
  const back =
    soonest === null
      ? "none came back"
      : `${count} came back (${humanBytes(sizeBytes)}), the first after ${humanDuration(soonest)}`;
  return `${counted(removedImages, "image")} removed, ${back}`;
}
