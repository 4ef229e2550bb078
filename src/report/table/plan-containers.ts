/** The container half of a plan: containers, sandboxes and pod logs that would be removed, and what is kept. */

import type { ContainerPlan, Decision } from "../../model/plan.ts";
import { counted } from "../bytes.ts";
import {
  containerKeep,
  containerRemove,
  logKeep,
  logRemove,
  logsErrorWords,
  podSourceWords,
  sandboxKeep,
  sandboxRemove,
} from "../container-reasons.ts";
import { imageBlock } from "../image-reasons.ts";
import { containerName, sandboxName, shortId } from "../names.ts";
import type { Reasons } from "../reasons.ts";
import { capitalised, clean, paint, type Screen } from "../terminal.ts";
import { grouped, groupLines, hiddenLines, shortened } from "./groups.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

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

export function containerPlanLines(plan: ContainerPlan, screen: Screen): readonly string[] {
  const blocks = plan.blocks.flatMap((block) =>
    wrapped(`No container, sandbox or log is removed now: ${imageBlock.text(block)}.`, screen),
  );
  const unread =
    plan.logsError === null
      ? []
      : wrapped(`${capitalised(logsErrorWords(plan.logsError))}.`, screen);
  return [
    ...[...blocks, ...unread].map((line) => paint(screen, "red", line)),
    ...wrapped(`${capitalised(podSourceWords(plan.podSource))}.`, screen),
    ...half(containerHalf(plan), screen),
    ...half(sandboxHalf(plan), screen),
    ...half(logHalf(plan), screen),
    ...strayLines(plan, screen),
    "",
  ];
}

/** Rows for what is removed, titles for what is kept. */
interface Half {
  readonly columns: readonly Column[];
  readonly one: string;
  readonly many: string;
  readonly removed: readonly (readonly string[])[];
  readonly kept: readonly { readonly title: string; readonly name: string }[];
}

function half(it: Half, screen: Screen): readonly string[] {
  const total = it.removed.length + it.kept.length;
  if (total === 0) return [];
  const title = `${it.removed.length === 0 ? "None" : it.removed.length} of ${counted(total, it.one, it.many)} would be removed${it.removed.length === 0 ? "." : ":"}`;
  const { shown, hidden } = shortened(it.removed, screen);
  const groups = grouped(
    it.kept,
    (kept) => kept.title,
    (kept) => kept.name,
  );
  return [
    "",
    title,
    ...(it.removed.length === 0 ? [] : tableLines(it.columns, shown, screen)),
    ...hiddenLines(hidden, (row) => row.at(-1) ?? "", screen),
    ...(groups.length === 0 ? [] : ["Kept:", ...groupLines(groups, screen)]),
  ];
}

function containerHalf(plan: ContainerPlan): Half {
  return {
    columns: COLUMNS,
    one: "container",
    many: "containers",
    removed: plan.containers.flatMap(({ container, decision, stopFirst }) =>
      decision.kind === "remove"
        ? [
            [
              shortId(container.id),
              containerName(container),
              stopFirst ? `${container.state}, stopped first` : container.state,
              containerRemove.text(decision.reason),
            ],
          ]
        : [],
    ),
    kept: plan.containers.flatMap(({ container, decision }) =>
      kept(decision, containerKeep, containerName(container)),
    ),
  };
}

function sandboxHalf(plan: ContainerPlan): Half {
  return {
    columns: COLUMNS,
    one: "sandbox",
    many: "sandboxes",
    removed: plan.sandboxes.flatMap(({ sandbox, decision }) =>
      decision.kind === "remove"
        ? [
            [
              shortId(sandbox.id),
              sandboxName(sandbox),
              sandbox.state,
              sandboxRemove.text(decision.reason),
            ],
          ]
        : [],
    ),
    kept: plan.sandboxes.flatMap(({ sandbox, decision }) =>
      kept(decision, sandboxKeep, sandboxName(sandbox)),
    ),
  };
}

function logHalf(plan: ContainerPlan): Half {
  return {
    columns: LOG_COLUMNS,
    one: "pod log directory",
    many: "pod log directories",
    removed: plan.podLogs.flatMap(({ directory, decision }) =>
      decision.kind === "remove" ? [[clean(directory.entry), logRemove.text(decision.reason)]] : [],
    ),
    kept: plan.podLogs.flatMap(({ directory, decision }) =>
      kept(decision, logKeep, clean(directory.entry)),
    ),
  };
}

const kept = <Keep extends { readonly kind: string }, Remove>(
  decision: Decision<Keep, Remove>,
  words: Reasons<Keep>,
  name: string,
): readonly { readonly title: string; readonly name: string }[] =>
  decision.kind === "keep" ? [{ title: words.title(decision.reason.kind), name }] : [];

function strayLines(plan: ContainerPlan, screen: Screen): readonly string[] {
  const links =
    plan.links.length === 0
      ? []
      : [
          `${counted(plan.links.length, "dangling log link")}: the pass asks the runtime about each.`,
        ];
  const strays =
    plan.strays.length === 0 ? [] : [`Not pod logs, kept: ${plan.strays.map(clean).join(", ")}.`];
  const lines = [...links, ...strays].flatMap((line) => wrapped(line, screen));
  return lines.length === 0 ? [] : ["", ...lines];
}
