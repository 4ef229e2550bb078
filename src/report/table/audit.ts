/** The output of `crigc audit`: findings by kind, with advice and commands. */

import { counted } from "../bytes.ts";
import { adviceWords, auditCommands, type AuditReport, findingWords } from "../document/audit.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { hiddenLines, shortened } from "./groups.ts";
import { nodeLine, text } from "./plan.ts";
import { wrapped } from "./table.ts";

export function auditTable(report: AuditReport, screen: Screen): string {
  const head = [nodeLine(report.runtime, report.observedAt, screen), ""];
  if (report.findings.length === 0) return text([...head, "No findings."]);
  const kinds = Map.groupBy(report.findings, ({ kind }) => kind);
  return text([
    ...head,
    ...Array.from(kinds).flatMap(([kind, findings]) => [
      paint(screen, "bold", `${counted(findings.length, "finding")}: ${kind}`),
      ...shortened(findings, screen).shown.flatMap((it) =>
        wrapped(`${findingWords(it)}.`, screen, "  "),
      ),
      ...hiddenLines(shortened(findings, screen).hidden, () => kind, screen),
      ...wrapped(`What to do: ${adviceWords(kind)}.`, screen, "  ").map((line) =>
        paint(screen, "dim", line),
      ),
      // Commands of the first finding, never truncated, so that they can be copied.
      ...findings
        .slice(0, 1)
        .flatMap((it) => auditCommands(it, report.runtime).map((line) => `    ${clean(line)}`)),
      "",
    ]),
  ]);
}
