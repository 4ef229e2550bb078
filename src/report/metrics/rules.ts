/** The rule file that `crigc print prometheus-rules` prints. */

import { type Alert, ALERTS, runbookOf, USED_RATIO } from "./alerts.ts";

export function prometheusRules(): string {
  return [
    "# Rules for the metrics of crigc. Check them with: promtool check rules FILE",
    "groups:",
    "  - name: crigc-recording",
    "    rules:",
    `      - record: ${USED_RATIO.name}`,
    `        expr: ${quoted(USED_RATIO.expression)}`,
    "  - name: crigc-alerts",
    "    rules:",
    ...ALERTS.flatMap(alertLines),
    "",
  ].join("\n");
}

const alertLines = (alert: Alert): readonly string[] => [
  `      - alert: ${alert.name}`,
  `        expr: ${quoted(alert.expression)}`,
  `        for: ${alert.holdsFor}`,
  "        labels:",
  `          severity: ${alert.severity}`,
  "        annotations:",
  `          summary: ${quoted(alert.summary)}`,
  `          description: ${quoted(`What to do: ${alert.action}.`)}`,
  `          runbook: ${runbookOf(alert)}`,
];

/** In YAML's single quotes, everything except a single quote is literal. */
const quoted = (text: string): string => `'${text.replace(/'/g, "''")}'`;
