/** The container half of a plan: containers, sandboxes and pod logs that would be removed, and what is kept. */

import type { ContainerPlan, Decision } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import { capitalised } from "../model/values.ts";
import { counted } from "./bytes.ts";
import {
  containerReasons,
  logReasons,
  logsErrorWords,
  podSourceWords,
  sandboxReasons,
} from "./container-reasons.ts";
import { imageBlock } from "./image-reasons.ts";
import { containerName, sandboxName, shortId } from "./names.ts";
import type { Kind, Reasons } from "./reasons.ts";
import { column, grouped, groupLines, itemLines, painted, wrapped } from "./table.ts";
import { clean, present, type Screen } from "./terminal.ts";

/** `explained`: blocks that the image half has explained. */
export function containerPlanLines(
  plan: ContainerPlan,
  screen: Screen,
  explained: readonly ImageBlock["kind"][] = [],
): readonly string[] {
  const alarms = [
    ...plan.blocks.map((it) =>
      explained.includes(it.kind)
        ? "No container, sandbox or log is removed now either."
        : `No container, sandbox or log is removed now: ${imageBlock.text(it)}.`,
    ),
    ...(plan.logsError === null ? [] : [`${capitalised(logsErrorWords(plan.logsError))}.`]),
  ];
  const rest = present([
    plan.links.length > 0 &&
      `${counted(plan.links.length, "dangling log link")}: a pass checks each with the runtime.`,
    plan.strays.length > 0 && `Not pod logs, kept: ${plan.strays.map(clean).join(", ")}.`,
  ]);
  return [
    ...alarms.flatMap((it) => painted(screen, "red", it)),
    ...wrapped(`${capitalised(podSourceWords(plan.podSource))}.`, screen),
    ...decisionLines(containerDecisions(plan), screen),
    ...decisionLines(sandboxDecisions(plan), screen),
    ...decisionLines(logDecisions(plan), screen),
    "",
    ...rest.flatMap((line) => wrapped(line, screen)),
    "",
  ];
}

/** Containers, sandboxes or logs: rows for what is removed, titles for what is kept. */
interface Decisions<Reason extends Kind> {
  readonly one: string;
  readonly many: string;
  readonly reasons: Reasons<Reason>;
  readonly items: readonly {
    readonly decision: Decision<Reason, Reason>;
    readonly name: string;
    /** Absent for logs. */
    readonly id?: string;
    readonly state?: string;
  }[];
}

function decisionLines<Reason extends Kind>(
  { one, many, reasons, items }: Decisions<Reason>,
  screen: Screen,
): readonly string[] {
  const removed = items.filter(({ decision }) => decision.kind === "remove");
  const kept = items.filter(({ decision }) => decision.kind === "keep");
  type Item = (typeof items)[number];
  const why = ({ decision }: Item): string => reasons.text(decision.reason);
  const name = (title: string) =>
    column<Item>(title, (it) => it.name, { minimumWidth: 12, cut: "middle" });
  const columns = [
    ...(items[0]?.id === undefined
      ? [name("DIRECTORY")]
      : [
          column<Item>("ID", ({ id = "" }) => shortId(id)),
          name("NAME"),
          column<Item>("STATE", ({ state = "" }) => state),
        ]),
    column("WHY", why, { minimumWidth: 12 }),
  ];
  const groups = grouped(
    kept,
    ({ decision }) => reasons.title(decision.reason.kind),
    (it) => it.name,
  );
  return [
    ...(removed.length === 0
      ? []
      : [
          "",
          `${removed.length} of ${counted(items.length, one, many)} would be removed:`,
          ...itemLines({ columns, items: removed, groupOf: why }, screen),
        ]),
    ...(kept.length === 0
      ? []
      : ["", `${counted(kept.length, one, many)} kept:`, ...groupLines(groups, screen)]),
  ];
}

const containerDecisions = ({ containers }: ContainerPlan) => ({
  one: "container",
  many: "containers",
  reasons: containerReasons,
  items: containers.map(({ container, decision, stopFirst }) => ({
    decision,
    name: containerName(container),
    id: container.id,
    state: stopFirst ? `${container.state}, stopped first` : container.state,
  })),
});

const sandboxDecisions = ({ sandboxes }: ContainerPlan) => ({
  one: "sandbox",
  many: "sandboxes",
  reasons: sandboxReasons,
  items: sandboxes.map(({ sandbox, decision }) => ({
    decision,
    name: sandboxName(sandbox),
    id: sandbox.id,
    state: sandbox.state,
  })),
});

const logDecisions = ({ podLogs }: ContainerPlan) => ({
  one: "pod log directory",
  many: "pod log directories",
  reasons: logReasons,
  items: podLogs.map(({ directory, decision }) => ({ decision, name: clean(directory.entry) })),
});
