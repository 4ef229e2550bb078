/** `crigc simulate`: replay traces under other settings, and compare what each would have cost. */

import type { Config } from "../../config/config.ts";
import { dashed } from "../../config/field.ts";
import { fieldByFlag } from "../../config/fields.ts";
import type { FlagText } from "../../config/settings.ts";
import { parseDuration, parseSize } from "../../config/units.ts";
import { quoted } from "../../config/words.ts";
import { FieldError, list } from "../../model/codec.ts";
import { ConfigError, usageError } from "../../model/errors.ts";
import { parseExactJson } from "../../model/exact-json.ts";
import { type SimulatedRun, simulatedRun } from "../../model/reports.ts";
import { type Duration, minutes, toMs } from "../../model/time.ts";
import type { NodeTrace } from "../../model/trace.ts";
import { simulationPage } from "../../report/html/simulation.ts";
import { simulationDocument, simulationTable } from "../../report/simulation.ts";
import { replay, type Scenario } from "../../simulate/replay.ts";
import { type Replayable, replayable } from "../../simulate/replayed-trace.ts";
import {
  command,
  type CommandContext,
  type CommandOption,
  has,
  option,
  TABLE_OR_JSON,
  textOf,
} from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../output.ts";
import { filesAt, matching, parsed, valueOf, type ValueType } from "../values.ts";
import { recordedTrace } from "./plan.ts";

/** Of each replay. */
export const SCENARIO_OPTIONS: readonly CommandOption[] = [
  option("capacity SIZE", "size of the disk, or a percentage of all images [as in the trace]"),
  option("vary FLAG=A,B,C", "compare these values of a flag; repeatable"),
  option("restart-every DURATION", "the agent restarts so often; 0s: never [0s]"),
  option(
    "flush-every DURATION",
    "everything unused is removed so often, as by cron; 0s: never [0s]",
  ),
  option("layers known|unknown", "whether the agent can read which layers images share [known]"),
  option("bound", "compare with removing first what is used farthest in the future"),
];

/** These options, as they were given. */
export const scenarioArguments = ({ options }: CommandContext): readonly string[] =>
  SCENARIO_OPTIONS.flatMap(({ name }) => {
    const values = options.get(name);
    return values?.length === 0 ? [`--${name}`] : (values ?? []).map((it) => `--${name}=${it}`);
  });

export const simulate = command({
  name: "simulate",
  summary: "compare what other settings would have cost",
  doc: "Replays when images were on a node and in use: this node's own history, or traces that crigc snapshot --trace wrote (also with gzip, or directories of them: .trace, .jsonl, also .gz), one for each node, side by side on all processors. An image that is used and not there is pulled; what is removed is decided by the same rules as in crigc gc, under the settings given. Each --vary FLAG=A,B,C adds a row for each value (values that contain commas are separated by semicolons); several give all combinations, and those that contradict each other are left out with a note. FLAG is any flag, or capacity, restart-every, flush-every or layers. With --compat kubelet, each --restart-every forgets what the agent saw, and pressure removes everything unused. The same traces and settings always give the same figures.",
  options: [
    option("trace FILE", "a trace, or a directory of traces; repeatable [this node's history]", {
      completes: "file",
    }),
    option("share I/N", "every Nth of the traces, from the Ith on, counted from 0"),
    option("result FILE", "add up what simulate -o json wrote (file or directory); repeatable", {
      completes: "file",
    }),
    ...SCENARIO_OPTIONS,
    option("html FILE", "also write a page with a chart", { completes: "file" }),
  ],
  formats: TABLE_OR_JSON,
  changes: true,
  run: async (context) => {
    const path = textOf(context, "html");
    if (path === "-") throw usageError("--html", path, "the table goes to stdout; name a file");
    const runs = await runsOf(context);
    if (runs === null) return exit.unknown;
    if (path !== null && context.dryRun) context.note(`dry run: would write the page to ${path}`);
    else if (path !== null)
      context.open.writeFile(path, simulationPage(runs, context.build.version));
    await print(context, {
      document: simulationDocument(runs),
      table: (_, screen) => simulationTable(runs, screen),
    });
    return exit.done;
  },
});

const TRACES = /\.(?:trace|jsonl)(?:\.gz)?$/;

/** `null`: this node has no history, and stderr says so. */
async function runsOf(context: CommandContext): Promise<readonly SimulatedRun[] | null> {
  const { open, options } = context;
  if (options.has("result") && options.has("trace"))
    throw usageError("--result", "", "results take the place of traces; leave out --trace");
  if (options.has("share") && !options.has("trace"))
    throw usageError("--share", "", "traces are shared out; name them with --trace");
  const filesOf = (name: string, wanted: RegExp): readonly string[] =>
    (options.get(name) ?? []).flatMap((path) =>
      filesAt(context, { source: dashed(name), path, wanted }),
    );
  const results = filesOf("result", /\.json$/);
  if (options.has("result") && results.length === 0)
    throw usageError("--result", "", "no results there: they are named *.json");
  if (results.length > 0)
    return addedUp(
      await Promise.all(results.map(async (path) => parsedRuns(await open.resultText(path), path))),
    );
  const files = filesOf("trace", TRACES);
  if (options.has("trace") && files.length === 0)
    throw usageError("--trace", "", "no traces there: they are named *.trace or *.jsonl, or .gz");
  const { index, count } = valueOf(context, "share", SHARE) ?? { index: 0, count: 1 };
  // Each share's files are spread over the whole list.
  const paths = files.filter((_, at) => at % count === index);
  const combinations = combinationsOf(context);
  if (paths.length === 0 && options.has("trace"))
    return combinations.map(({ settings }) => ({ settings, nodes: [] }));
  if (paths.length <= 1) {
    const [path] = paths;
    const trace = path === undefined ? recordedTrace(context) : await open.trace(path);
    return trace === null ? null : runsOn(trace, context, combinations);
  }
  const flags = context.flags.map(({ written, text }) => `${written}=${text}`);
  const args = [...scenarioArguments(context), ...flags];
  const jobs = paths.map((path) => ({
    subject: path,
    args: ["simulate", `--trace=${path}`, ...args, "--output=json"],
  }));
  const answers = await open.sideBySide(jobs, context.signal);
  return addedUp(answers.map((text, at) => parsedRuns(text, paths[at] ?? "")));
}

const SHARE: ValueType<{ readonly index: number; readonly count: number }> = {
  what: "share",
  use: "I/N, such as 0/8",
  read: (text) => {
    const [, index, count] = (/^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? []).map(Number);
    return index === undefined || count === undefined || index >= count ? null : { index, count };
  },
};

/** By their settings, in the order of the first. */
function addedUp(all: readonly (readonly SimulatedRun[])[]): readonly SimulatedRun[] {
  const groups = Map.groupBy(all.flat(), ({ settings }) => JSON.stringify(settings));
  return Array.from(groups.values(), (runs) => ({
    settings: runs[0]?.settings ?? [],
    nodes: runs.flatMap(({ nodes }) => nodes),
  }));
}

function parsedRuns(text: string, path: string): readonly SimulatedRun[] {
  try {
    return list(simulatedRun).read(Object(parseExactJson(text)).runs);
  } catch (thrown) {
    if (!(thrown instanceof FieldError) && !(thrown instanceof SyntaxError)) throw thrown;
    throw usageError("--result", path, `${quoted(path)} was not written by crigc simulate -o json`);
  }
}

interface Combination {
  readonly settings: SimulatedRun["settings"];
  readonly config: Config;
}

const COMBINATIONS_MAX = 1000;
/** Options of this command that vary like flags. */
const OWN = ["capacity", "restart-every", "flush-every", "layers"] as const;
type Own = (typeof OWN)[number];

/** All combinations of the varied values that do not contradict each other. */
function combinationsOf(context: CommandContext): readonly Combination[] {
  let all: readonly SimulatedRun["settings"][] = [[]];
  for (const text of context.options.get("vary") ?? []) {
    const { name, values } = variedOf(text);
    if (all[0]?.some((one) => one.name === name) === true)
      throw usageError("--vary", text, `${name} is varied twice; use ${name}=A,B,C`);
    all = all.flatMap((settings) => values.map((value) => [...settings, { name, value }]));
    if (all.length > COMBINATIONS_MAX)
      throw usageError("--vary", text, `more than ${COMBINATIONS_MAX} combinations; vary less`);
  }
  const found = all.flatMap((settings) => {
    try {
      return [{ settings, config: context.varied(flagsOf(settings)) }];
    } catch (thrown) {
      if (!(thrown instanceof ConfigError) || all.length === 1) throw thrown;
      const words = settings.map(({ name, value }) => `${name}=${value}`).join(" ");
      const why = thrown.issues.map(({ message }) => message).join("; ");
      context.note(`note: left out ${words}: ${why}`);
      return [];
    }
  });
  if (found.length > 0) return found;
  throw usageError("--vary", "", "no combination is valid; the notes say why");
}

function variedOf(text: string) {
  const at = text.indexOf("=");
  const name = text.slice(0, at).replace(/^--/, "");
  const values = text.slice(at + 1).split(text.includes(";") ? ";" : ",");
  if (at <= 0 || values.includes(""))
    throw usageError("--vary", text, `${quoted(text)} is not FLAG=A,B,C`);
  if (!fieldByFlag.has(name) && !isOwn(name))
    throw usageError("--vary", text, `unknown flag ${dashed(name)}; use a flag, ${OWN.join(", ")}`);
  return { name, values };
}

const isOwn = (name: string): name is Own => OWN.some((own) => own === name);

const flagsOf = (settings: SimulatedRun["settings"]): readonly FlagText[] =>
  settings.flatMap(({ name, value: text }) => {
    const field = fieldByFlag.get(name);
    return field === undefined ? [] : [{ name: field, written: dashed(name), text }];
  });

async function runsOn(
  recorded: NodeTrace,
  context: CommandContext,
  combinations: readonly Combination[],
): Promise<readonly SimulatedRun[]> {
  // A replay does not give way to what would listen to signals.
  context.stopAtOnce();
  const trace = replayable(recorded);
  const runs: SimulatedRun[] = [];
  for (const { settings, config } of combinations) {
    const { limits } = config;
    const scenario = await scenarioOf({ trace, recorded, settings, config }, context);
    const figures = replay(scenario).figures;
    const offline: Scenario = {
      ...scenario,
      limits: { ...limits, images: { ...limits.images, compat: "none", accounting: "measured" } },
      restartEveryMs: null,
      flushEveryMs: null,
      order: "offline",
    };
    const bound = has(context, "bound") ? replay(offline).figures : null;
    runs.push({ settings, nodes: [{ node: trace.node, ...figures, bound }] });
  }
  return runs;
}

interface Case extends Combination {
  readonly trace: Replayable;
  readonly recorded: NodeTrace;
}

async function scenarioOf(given: Case, context: CommandContext): Promise<Scenario> {
  const { trace, recorded, settings, config } = given;
  const textFor = (name: Own): string | null =>
    settings.findLast((one) => one.name === name)?.value ?? textOf(context, name);
  const everyMs = (name: Own): number | null =>
    toMs(parsed(PERIOD, textFor(name) ?? "0s", `--${name}`)) || null;
  const layers = parsed(LAYERS, textFor("layers") ?? "known", "--layers");
  const otherBytes = recorded.otherBytes ?? 0n;
  return {
    trace,
    otherBytes,
    capacityBytes: capacityOf(textFor("capacity"), { trace, recorded, otherBytes }),
    limits: config.limits,
    periods: config.periods,
    keep: await context.open.keepRules(config),
    restartEveryMs: everyMs("restart-every"),
    flushEveryMs: everyMs("flush-every"),
    readsLayers: layers === "known",
    order: "policy",
  };
}

const PERIOD: ValueType<Duration> = {
  what: "duration",
  use: "1m or more, or 0s",
  read: (text) => {
    const span = parseDuration(text);
    return span === 0n || (span !== null && span >= minutes(1)) ? span : null;
  },
};
const LAYERS = matching("value", "known or unknown", /^(?:known|unknown)$/);

function capacityOf(
  text: string | null,
  { trace, recorded, otherBytes }: Pick<Case, "trace" | "recorded"> & Pick<Scenario, "otherBytes">,
): bigint {
  const recordedBytes = recorded.capacityBytes ?? 0n;
  if (text === null && recordedBytes > 0n) return recordedBytes;
  if (text === null)
    throw usageError(
      "--capacity",
      "",
      `missing: the trace of ${quoted(recorded.node)} has no size of the disk`,
    );
  const read = (words: string): bigint | null => {
    const percent = /^(\d{1,4}(?:\.\d{1,3})?)%$/.exec(words)?.[1];
    const size =
      percent === undefined
        ? parseSize(words)
        : otherBytes + (trace.allBytes * BigInt(Math.round(Number(percent) * 1000))) / 100_000n;
    return size !== null && size > 0n ? size : null;
  };
  return parsed({ what: "size", use: "100Gi, or 40% of all images", read }, text, "--capacity");
}
