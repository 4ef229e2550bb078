/** The output of `crigc plan`: candidates in order of removal, reasons, and what is kept. */

import type { RuntimeInfo } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { secondOf } from "../bytes.ts";
import type { PlanReport } from "../document/plan.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { containerPlanLines } from "./plan-containers.ts";
import { imagePlanLines } from "./plan-images.ts";

export function planTable(report: PlanReport, screen: Screen): string {
  const { containers, images } = report.plan;
  const said = images?.blocks.map(({ kind }) => kind);
  return text([
    nodeLine(report.runtime, report.observedAt, screen),
    "",
    ...(images === null ? [] : imagePlanLines(images, screen, report.sorted)),
    ...(containers === null ? [] : containerPlanLines(containers, screen, said)),
  ]);
}

/** The runtime, and when it was read. */
export const nodeLine = (runtime: RuntimeInfo, observedAt: Instant, screen: Screen): string =>
  paint(
    screen,
    "dim",
    clean(
      `${runtime.name} ${runtime.version} at ${runtime.endpoint}, as of ${secondOf(observedAt)}`,
    ),
  );

/** Joins lines: no two empty ones in a row, none at the end, one final newline. */
export function text(lines: readonly string[]): string {
  const kept = lines.filter((line, index) => line !== "" || (index > 0 && lines[index - 1] !== ""));
  while (kept.at(-1) === "") kept.pop();
  return `${kept.join("\n")}\n`;
}
