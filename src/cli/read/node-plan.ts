/** The plan of this node or of a recorded one, for plan, images, explain and dry runs. */

import * as v from "valibot";

import type { Config } from "../../config/config.ts";
import { type Prepared, prepareRecorded, type SinglePassEvictions } from "../../gc/prepare.ts";
import { assumingSeen, type ReadOnlyPass, readOnlyPass, withMemory } from "../../gc/read-only.ts";
import { withUsedLogs } from "../../gc/used-logs.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { Purpose } from "../../model/plan.ts";
import type { Duration } from "../../model/time.ts";
import type { Parts } from "../../policy/decide.ts";
import { clean } from "../../report/terminal.ts";
import type { RecordedNode } from "../../store/snapshot-file.ts";
import { type CommandContext, type Invocation, option, textOf } from "../command.ts";

export const SNAPSHOT = option(
  "snapshot FILE",
  "read FILE, written by crigc snapshot, instead of the node",
  { completes: "file" },
);

export const IMAGES_ONLY: Parts = { containers: "none", images: true };

/** By default plans everything, as a periodic pass does. */
export interface PlanRequest {
  readonly purpose?: Purpose;
  readonly parts?: Parts;
  /** Instead of the context's. */
  readonly config?: Config;
  /** Plans as if every image had been first seen this much earlier. */
  readonly assumeSeen?: Duration | null;
  /** Whether to read the layers of all images, for commands that show them. */
  readonly allLayers?: boolean;
}

/** The file of `crigc snapshot` to read; `null`: the node itself. */
export const snapshotFileOf = (invocation: Invocation): string | null =>
  textOf(invocation, SNAPSHOT.name);

/** Rejects if the runtime, a list or a stat fails. Opens no writer. */
export async function planNode(
  context: CommandContext,
  invocation: Invocation,
  request: PlanRequest = {},
): Promise<Prepared> {
  return (await openedPlan(context, invocation, request)).prepared;
}

/**
 * For commands that show the ledger's records: with `compat: kubelet`, a plan is that of a kubelet that has just
 * started, to which every image is new, but these commands still show the records.
 */
export async function shownNode(
  context: CommandContext,
  invocation: Invocation,
  request: PlanRequest = {},
): Promise<Prepared> {
  const { prepared, ledger } = await openedPlan(context, invocation, request);
  if (ledger === null || context.config.compat === "none") return prepared;
  context.stderr(
    "crigc: first seen and last used come from the ledger; with --compat kubelet, plans ignore it\n",
  );
  return withMemory(prepared, ledger);
}

interface Opened {
  readonly prepared: Prepared;
  /** The ledger on disk; `null` for a recorded node, which has its own. */
  readonly ledger: Ledger | null;
}

async function openedPlan(
  context: CommandContext,
  invocation: Invocation,
  request: PlanRequest,
): Promise<Opened> {
  const { config = context.config, assumeSeen = null, allLayers = assumeSeen !== null } = request;
  const { purpose = { kind: "periodic" }, parts = { containers: "all", images: true } } = request;
  const assumed = (prepared: Prepared): Prepared =>
    assumeSeen === null ? prepared : assumingSeen(prepared, assumeSeen);
  const file = snapshotFileOf(invocation);
  if (file !== null) {
    const node = await recordedNode(context, file);
    const asked = { purpose, parts, hold: { kind: "none" }, startedAt: null } as const;
    const { limits } = config;
    const prepared = prepareRecorded(node, { ...asked, limits });
    return { prepared: assumed(prepared), ledger: null };
  }
  using node = await context.open.node(config, context.signal);
  for (const notice of node.notices) context.stderr(`crigc: ${clean(notice)}\n`);
  const evictions = await dueEvictions(context);
  const pass: ReadOnlyPass = { purpose, parts, allLayers, evictions };
  const first = await readOnlyPass(node.engine, pass, context.signal);
  const prepared =
    assumeSeen === null ? first : await withUsedLogs(node.engine, assumed(first), context.signal);
  return { prepared, ledger: node.ledger };
}

/**
 * The eviction thresholds for which a single pass removes images too. With a running agent a soft one counts once the
 * agent has found it due, and without one at once: nothing else would act on it.
 */
export async function dueEvictions({
  config,
  open,
}: Pick<CommandContext, "config" | "open">): Promise<SinglePassEvictions> {
  const isSoft = config.limits.pressure.thresholds.some(({ grace }) => grace > 0n);
  if (!isSoft) return { softDue: null };
  try {
    const status = v.parse(STATUS, JSON.parse(await open.askAgent(config, "/status")));
    const due = status.pressure.filter((it) => it.due);
    return { softDue: new Set(due.map(({ signal }) => signal)) };
  } catch {
    return { softDue: null };
  }
}

const STATUS = v.object({ pressure: v.array(v.object({ signal: v.string(), due: v.boolean() })) });

/** The snapshot's own rules, and those of this command line. */
async function recordedNode(context: CommandContext, file: string): Promise<RecordedNode> {
  const { snapshot, ledger } = await context.open.recorded(file);
  const tried = context.given().keepPatterns.map((pattern) => ({ pattern, source: "--keep" }));
  const keep = { ...snapshot.keep, rules: [...tried, ...snapshot.keep.rules] };
  return { snapshot: { ...snapshot, keep }, ledger };
}
