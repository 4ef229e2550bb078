/** The container half of a plan: containers, sandboxes and pod logs that would be removed, and what is kept. */

import type { ContainerPlan, Decision } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import { capitalised } from "../../model/values.ts";
import { counted } from "../bytes.ts";
import {
  containerReasons,
  logReasons,
  logsErrorWords,
  podSourceWords,
  sandboxReasons,
} from "../container-reasons.ts";
import { imageBlock } from "../image-reasons.ts";
import { containerName, sandboxName, shortId } from "../names.ts";
import type { DecisionReasons, Kind } from "../reasons.ts";
import { clean, present, type Screen } from "../terminal.ts";
import { grouped, groupLines, hiddenLines, shortened } from "./groups.ts";
import { type Column, painted, tableLines, wrapped } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "NAME", minimumWidth: 12, cut: "middle" },
  { title: "STATE" },
  { title: "WHY", minimumWidth: 12 },
];

const LOG_COLUMNS: readonly Column[] = [
  { title: "DIRECTORY", minimumWidth: 12, cut: "middle" },
  { title: "WHY", minimumWidth: 12 },
];

/** `said`: blocks that the image half has explained. */
export function containerPlanLines(
  plan: ContainerPlan,
  screen: Screen,
  said: readonly ImageBlock["kind"][] = [],
): readonly string[] {
  const { blocks, logsError } = plan;
  const alarms = [
    ...blocks.map((it) =>
      said.includes(it.kind)
        ? "No container, sandbox or log is removed now either."
        : `No container, sandbox or log is removed now: ${imageBlock.text(it)}.`,
    ),
    ...(logsError === null ? [] : [`${capitalised(logsErrorWords(logsError))}.`]),
  ];
  return [
    ...alarms.flatMap((it) => painted(screen, "red", it)),
    ...wrapped(`${capitalised(podSourceWords(plan.podSource))}.`, screen),
    ...half(containerHalf(plan), screen),
    ...half(sandboxHalf(plan), screen),
    ...half(logHalf(plan), screen),
    ...strayLines(plan, screen),
    "",
  ];
}

/** Containers, sandboxes or logs: rows for what is removed, titles for what is kept. */
interface Half<Keep extends Kind, Remove extends Kind> {
  readonly columns: readonly Column[];
  readonly one: string;
  readonly many: string;
  readonly reasons: DecisionReasons<Keep, Remove>;
  readonly items: readonly {
    readonly decision: Decision<Keep, Remove>;
    readonly name: string;
    /** Its row without the reason. */
    readonly cells: readonly string[];
  }[];
}

function half<Keep extends Kind, Remove extends Kind>(
  { columns, one, many, reasons, items }: Half<Keep, Remove>,
  screen: Screen,
): readonly string[] {
  if (items.length === 0) return [];
  const removed = items
    .filter(({ decision }) => decision.kind === "remove")
    .map(({ decision, cells }) => [...cells, reasons.text(decision)]);
  const total = counted(items.length, one, many);
  const { shown, hidden } = shortened(removed, screen);
  const groups = grouped(
    items.filter(({ decision }) => decision.kind === "keep"),
    ({ decision }) => reasons.title(decision),
    ({ name }) => name,
  );
  const kept = counted(items.length - removed.length, one, many);
  return [
    ...(removed.length === 0
      ? []
      : [
          "",
          `${removed.length} of ${total} would be removed:`,
          ...tableLines(columns, shown, screen),
          ...hiddenLines(hidden, (row) => row.at(-1) ?? "", screen),
        ]),
    ...(groups.length === 0 ? [] : ["", `${kept} kept:`, ...groupLines(groups, screen)]),
  ];
}

const containerHalf = ({ containers }: ContainerPlan) => ({
  columns: COLUMNS,
  one: "container",
  many: "containers",
  reasons: containerReasons,
  items: containers.map(({ container, decision, stopFirst }) => {
    const name = containerName(container);
    const state = stopFirst ? `${container.state}, stopped first` : container.state;
    return { decision, name, cells: [shortId(container.id), name, state] };
  }),
});

const sandboxHalf = ({ sandboxes }: ContainerPlan) => ({
  columns: COLUMNS,
  one: "sandbox",
  many: "sandboxes",
  reasons: sandboxReasons,
  items: sandboxes.map(({ sandbox, decision }) => {
    const name = sandboxName(sandbox);
    return { decision, name, cells: [shortId(sandbox.id), name, sandbox.state] };
  }),
});

const logHalf = ({ podLogs }: ContainerPlan) => ({
  columns: LOG_COLUMNS,
  one: "pod log directory",
  many: "pod log directories",
  reasons: logReasons,
  items: podLogs.map(({ directory, decision }) => {
    const name = clean(directory.entry);
    return { decision, name, cells: [name] };
  }),
});

function strayLines(plan: ContainerPlan, screen: Screen): readonly string[] {
  const words = present([
    plan.links.length > 0 &&
      `${counted(plan.links.length, "dangling log link")}: a pass checks each with the runtime.`,
    plan.strays.length > 0 && `Not pod logs, kept: ${plan.strays.map(clean).join(", ")}.`,
  ]);
  const lines = words.flatMap((line) => wrapped(line, screen));
  return lines.length === 0 ? [] : ["", ...lines];
}
