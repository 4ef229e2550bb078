/** `crigc gc` and `crigc rm`: run one pass, print a report, exit. */

import type { OpenCollector } from "../../agent/openers.ts";
import { Announcer } from "../../gc/announcer.ts";
import { runPass } from "../../gc/pass.ts";
import type { Event, Pass } from "../../model/pass.ts";
import type { KeptImage, Plan } from "../../model/plan.ts";
import { type Duration, duration, TIMER_MS_MAX, toMs } from "../../model/time.ts";
import { metTargets } from "../../policy/pressure/thresholds.ts";
import { gcDocument, gcTable } from "../../report/gc.ts";
import { counted, humanDuration } from "../../report/words.ts";
import { command, type CommandContext, operand, TABLE_OR_JSON } from "../command.ts";
import { exit, passExit } from "../exit.ts";
import { dueEvictions, IMAGES_ONLY } from "../node-plan.ts";
import { ALL_OPTION, print } from "../output.ts";
import {
  FORCE_YOUNG,
  forced,
  imageNamed,
  type Selected,
  selectedBy,
  SELECTION_OPTIONS,
} from "../selection.ts";

/** How often a pass beside an agent looks whether an eviction threshold is met. */
const LOOK_MS = 1_000;

export const gc = command({
  name: "gc",
  summary: "run one pass now: containers, sandboxes, logs, then images",
  doc: "Removes what the agent would, also for a met eviction threshold (without an agent, a soft one at once). Waits up to --runtime-request-timeout for another pass. --filter removes the selected unused images that no rule keeps, at any disk usage. Without an agent, each gc adds at most twice the detection period to any age, so --image-maximum-gc-age, --dead-pod-ttl and a long --minimum-image-ttl-duration are reached late.",
  options: [...SELECTION_OPTIONS, ALL_OPTION],
  formats: TABLE_OR_JSON,
  changes: true,
  run: async (context) => {
    const config = forced(context.config, context);
    await using collector = await context.open.collector(config);
    return await pass(context, collector, selectedBy(context));
  },
});

export const rm = command({
  name: "rm",
  summary: "remove the named images, if no rule keeps them",
  doc: "REF is an ID, ID prefix, tag or digest; an image is removed with all its names, at any disk usage. The report names the rule that keeps an image (exit 5; 4 if only too young). If a REF matches nothing, removes nothing (exit 8).",
  operands: [operand("REF…", "an image")],
  options: [FORCE_YOUNG, ALL_OPTION],
  formats: TABLE_OR_JSON,
  changes: true,
  run: async (context) => {
    const config = forced(context.config, context);
    await using collector = await context.open.collector(config);
    const images = await collector.engine.observe.runtime.listImages(context.signal);
    const named = context.operands.map((text) => ({ text, id: imageNamed(images, text) }));
    const unknown = named.filter(({ id }) => id === null);
    for (const { text } of unknown) context.note(`unknown image ${text}; crigc images lists them`);
    if (unknown.length > 0) return exit.unknown;
    const only = named.flatMap(({ id }) => (id === null ? [] : [{ kind: "id" as const, id }]));
    const purpose = { kind: "all-unused", only } as const;
    return await pass(context, collector, { purpose, parts: IMAGES_ONLY });
  },
});

/** Runs the pass, prints its report, and returns its exit code. */
async function pass(
  context: CommandContext,
  collector: OpenCollector,
  { purpose, parts }: Selected,
): Promise<number> {
  const { config } = context;
  const announcer = new Announcer(collector.engine.journal);
  const evictions = purpose.kind === "periodic" ? dueEvictions(context) : undefined;
  using disks = watchBesideAgent(context, collector);
  const end = await runPass(
    collector.engine,
    {
      kind: "gc",
      purpose,
      ...parts,
      evictions,
      soonest: disks.short,
      dryRun: config.values.dryRun,
      lockWaitMs: toMs(config.values.runtimeRequestTimeout),
      announcer,
    },
    context.signal,
  );
  if (end.seen !== null) announcer.unmatchedKeepRules(end.seen.unmatchedKeepRules);
  const isNamed = purpose.kind === "all-unused" && purpose.only?.[0]?.kind === "id";
  if (!isNamed)
    for (const notice of ageNotices(context, end.pass.plan)) collector.log.warning(notice);
  const refused = refusals(end.pass);
  const patience = AbortSignal.timeout(
    Math.min(toMs(config.values.runtimeRequestTimeout), TIMER_MS_MAX),
  );
  const lost = await collector.recorded(AbortSignal.any([context.signal, patience]));
  const told = lost === 0 ? end.pass : withLost(end.pass, lost, collector);
  await print(context, {
    document: gcDocument(told),
    table: gcTable,
  });
  if (lost > 0) return exit.internal;
  const code = passExit(end.pass, end.failure);
  const isGraver = code !== exit.done && code !== exit.shortfall;
  if (isGraver || !isNamed || refused.length === 0) return code;
  return refused.every(({ reason }) => WAITS.includes(reason.kind)) ? exit.shortfall : exit.partial;
}

/** Aborts once an eviction threshold is met: an agent cannot relieve the disk while this pass waits for containers. */
function watchBesideAgent(context: CommandContext, { engine }: OpenCollector) {
  const [met, over] = [new AbortController(), new AbortController()];
  const { runtime, disk } = engine.observe;
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted && !met.signal.aborted) {
      const filesystems = await disk.filesystems(await runtime.reportedFilesystems(over.signal));
      const input = { limits: engine.limits().pressure, compat: "none", filesystems } as const;
      if (metTargets(input, dueEvictions(context).softDue).length > 0) met.abort();
      await engine.timer.sleep(LOOK_MS, over.signal);
    }
  };
  if (context.agent !== null) void watch().catch(() => null);
  return { short: met.signal, [Symbol.dispose]: () => over.abort() };
}

/** The disk took no records until the end. */
function withLost(ended: Pass, lost: number, { engine }: OpenCollector): Pass {
  const message = `the records of ${counted(lost, "removal")} could not be written to the state directory: history lacks them, and the minimum age of all images restarts`;
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

/** Explains ages that a single pass reaches late or never. */
function ageNotices(
  { agent, config: { limits, values } }: CommandContext,
  { containers }: Plan,
): readonly string[] {
  const { minimumAge, maximumAge } = limits.images;
  const { deadPodTtl, detectionPeriod } = limits.memory;
  const kubelet =
    "the maximum image age has no effect: like the kubelet's, it needs an agent that has run for this long";
  const ours =
    "the maximum image age counts observed time, which hardly grows without a running agent";
  const isKubelets = values.compat === "kubelet";
  const ofMaximum = maximumAge > 0n && (isKubelets || agent === null);
  const most = duration(2n * detectionPeriod);
  const late = (what: string, age: Duration): readonly string[] =>
    agent === null && age > most
      ? [
          `without a running agent, each crigc gc adds at most ${humanDuration(most)} to any age: the ${what} of ${humanDuration(age)} is reached late`,
        ]
      : [];
  const source = containers?.podSource;
  const isCri = source !== undefined && source.kind !== "none" && source.source === "cri";
  return [
    ...(ofMaximum ? [isKubelets ? kubelet : ours] : []),
    ...late("minimum image age", minimumAge),
    ...(isCri ? late("TTL of dead pods", deadPodTtl) : []),
  ];
}
