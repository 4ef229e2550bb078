/** The plan of this node or of a recorded one, for plan, images, explain and dry runs. */

import type { Config } from "../../config/config.ts";
import { type Prepared, prepareRecorded } from "../../loop/pass/prepare.ts";
import {
  assumingSeen,
  type ReadOnlyPass,
  readOnlyPass,
  withMemory,
} from "../../loop/pass/read-only.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { Purpose } from "../../model/plan.ts";
import type { Duration } from "../../model/time.ts";
import type { Parts } from "../../policy/decide.ts";
import { clean } from "../../report/terminal.ts";
import type { CommandContext, CommandOption } from "../command.ts";

export const SNAPSHOT: CommandOption = {
  name: "snapshot",
  placeholder: "FILE",
  completes: "file",
  help: "read FILE, written by crigc snapshot, instead of the node",
};

export interface PlanRequest {
  readonly purpose: Purpose;
  readonly parts: Parts;
  /** Instead of that of the context. */
  readonly config?: Config;
  /** Plans as if every image had been first seen so much earlier. */
  readonly assumeSeen?: Duration | null;
  /** A file of `crigc snapshot`; `null`: the node itself. */
  readonly snapshotFile: string | null;
  /** Whether the layers of all images are read, for a command that shows them. */
  readonly allLayers?: boolean;
}

/** Rejects if the runtime, a list or a stat fails. Opens no writer. */
export async function planNode(context: CommandContext, request: PlanRequest): Promise<Prepared> {
  return (await openedPlan(context, request)).prepared;
}

/**
 * The same for commands that show the ledger's records. With `compat: kubelet`, a plan is that of a kubelet that has just
 * started, to which every image is new; these commands still show the records.
 */
export async function shownNode(context: CommandContext, request: PlanRequest): Promise<Prepared> {
  const { prepared, ledger } = await openedPlan(context, request);
  if (ledger === null || context.config.compat === "none") return prepared;
  context.stderr(
    "crigc: first seen and last used come from the ledger; with --compat kubelet, plans ignore it\n",
  );
  return withMemory(prepared, ledger);
}

interface Opened {
  readonly prepared: Prepared;
  /** What is remembered on disk; `null`: the node is a recorded one, with the memory that it was recorded with. */
  readonly ledger: Ledger | null;
}

async function openedPlan(context: CommandContext, request: PlanRequest): Promise<Opened> {
  const { purpose, parts, snapshotFile, assumeSeen = null } = request;
  const assumed = (prepared: Prepared): Prepared =>
    assumeSeen === null ? prepared : assumingSeen(prepared, assumeSeen);
  if (snapshotFile !== null)
    return { prepared: assumed(await recordedPlan(context, request, snapshotFile)), ledger: null };
  const node = await context.open.node(request.config ?? context.config, context.signal);
  try {
    for (const notice of node.notices) context.stderr(`crigc: ${clean(notice)}\n`);
    const allLayers = request.allLayers === true || assumeSeen !== null;
    const pass: ReadOnlyPass = { purpose, parts, allLayers };
    const prepared = assumed(await readOnlyPass(node.engine, pass, context.signal));
    return { prepared, ledger: node.ledger };
  } finally {
    node.close();
  }
}

async function recordedPlan(
  context: CommandContext,
  request: PlanRequest,
  file: string,
): Promise<Prepared> {
  const { snapshot, ledger } = await context.open.recorded(file);
  const { limits } = request.config ?? context.config;
  // The rules of the node were recorded with it; those of this command line are tried out on it.
  const { rules } = snapshot.keep;
  const tried = context.given().keepPatterns.map((pattern) => ({ pattern, source: "--keep" }));
  const keep = { ...snapshot.keep, rules: [...tried, ...rules] };
  return prepareRecorded(
    { snapshot: { ...snapshot, keep }, ledger },
    {
      limits,
      purpose: request.purpose,
      parts: request.parts,
      hold: { kind: "none" },
      startedAt: null,
      pressureTargets: [],
    },
  );
}
