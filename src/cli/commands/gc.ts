/** `crigc gc` and `crigc rm`: run one pass, print a report, exit. */

import type { Config } from "../../config/config.ts";
import type { OpenCollector } from "../../engine/openers.ts";
import type { Event, Pass } from "../../model/pass.ts";
import type { KeptImage } from "../../model/plan.ts";
import { gcDocument, gcTable } from "../../report/gc.ts";
import { plural } from "../../report/words.ts";
import { command, type CommandContext, DOCUMENT, operand, print } from "../command.ts";
import { exit, passExit } from "../exit.ts";
import { IMAGES_ONLY } from "../node-plan.ts";
import { forced, imageNamed, type Selected, selectedBy, SELECTION_OPTIONS } from "../selection.ts";

export const gc = command({
  name: "gc",
  summary: "run one pass now: containers, sandboxes, logs, then images",
  doc: "Removes what the agent would, also for a met eviction threshold, a soft one at once. Waits up to --runtime-request-timeout for another pass. --filter removes the selected unused images that no rule keeps, at any disk usage.",
  options: SELECTION_OPTIONS,
  formats: DOCUMENT,
  changes: true,
  inAgent: true,
  run: async (context) => {
    const selected = selectedBy(context);
    const config = forced(context.config, context);
    await using collector = await opened(context, config);
    return await pass(context, collector, selected);
  },
});

export const rm = command({
  name: "rm",
  summary: "remove the named images, if no rule keeps them",
  doc: "REF is an ID, its first 6 or more digits, a tag or digest; an image is removed with all its names, at any disk usage. The report names the rule that keeps an image (exit 5; 4 if only too young).",
  operands: [operand("REF...", "an image", { completes: "images" })],
  formats: DOCUMENT,
  changes: true,
  inAgent: true,
  run: async (context) => {
    await using collector = await opened(context, context.config);
    const images = await collector.engine.observe.runtime.listImages(context.signal);
    const named = context.operands.map((text) => ({ text, id: imageNamed(images, text) }));
    const unknown = named.filter(({ id }) => id === null);
    for (const { text } of unknown)
      context.note(
        `unknown image ${text}; crigc images lists them, crigc gc --filter reference=GLOB removes several`,
      );
    if (unknown.length > 0) return exit.unknown;
    const only = named.flatMap(({ id }) => (id === null ? [] : [{ kind: "id" as const, id }]));
    const purpose = { kind: "all-unused", only, isByName: true } as const;
    return await pass(context, collector, { purpose, parts: IMAGES_ONLY });
  },
});

const opened = (context: CommandContext, config: Config): Promise<OpenCollector> =>
  context.open.collector(config, context.signal, isBrief(context));

/** On a terminal, at the default verbosity, a line a removal comes before the report. */
const isBrief = ({ config: { values }, output, screen }: CommandContext): boolean =>
  output === "table" &&
  screen.width !== null &&
  values["logging.format"] === "text" &&
  values["logging.verbosity"] <= 2;

/** `crigc gc --filter untagged, user alice`. */
function requestedBy({ options, operands, user }: CommandContext): string {
  const given = ["all-unused", "filter", "free"].flatMap((name) => {
    const values = options.get(name);
    return values?.length === 0 ? [`--${name}`] : (values ?? []).map((it) => `--${name} ${it}`);
  });
  return `${["crigc", operands.length > 0 ? "rm" : "gc", ...given].join(" ")}, user ${user}`;
}

/** Runs the pass, prints its report, and returns its exit code. */
async function pass(
  context: CommandContext,
  collector: OpenCollector,
  { purpose, parts }: Selected,
): Promise<number> {
  const end = await collector.pass({
    purpose,
    requestedBy: requestedBy(context),
    ...parts,
  });
  const refused = refusals(end.pass);
  const lost = await collector.recorded();
  const told = lost === 0 ? end.pass : withLost(end.pass, lost, collector);
  await print(context, {
    document: gcDocument(told),
    table: (report, screen) => gcTable(report, screen, isBrief(context)),
  });
  if (lost > 0) return exit.internal;
  const code = passExit(end.pass, end.failure);
  const isGraver = code !== exit.done && code !== exit.shortfall;
  if (isGraver || context.operands.length === 0 || refused.length === 0) return code;
  return refused.every(({ reason }) => WAITS.includes(reason.kind)) ? exit.shortfall : exit.partial;
}

/** The disk took no records until the end. */
function withLost(ended: Pass, lost: number, { engine }: OpenCollector): Pass {
  const message = `the records of ${plural(lost, "removal")} could not be written to the state directory, and the history lacks them`;
  const at = engine.observe.host.clocks().wall;
  const event: Event = { reason: "RecordsLost", message, at, passId: ended.id };
  engine.journal.event(event);
  const error = ended.error === null ? message : `${ended.error}; ${message}`;
  return { ...ended, error, events: [...ended.events, event] };
}

/** Reasons that pass by themselves. */
const WAITS: readonly string[] = ["too-young", "blocked"];

/** Selected images that a rule keeps. */
const refusals = ({ purpose, plan }: Pass): readonly KeptImage[] =>
  purpose.kind === "all-unused" && purpose.only !== undefined
    ? (plan.images?.kept ?? []).filter(({ reason }) => reason.kind !== "not-selected")
    : [];
