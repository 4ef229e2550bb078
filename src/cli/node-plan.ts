/** The plan of this node as it is now, or of a recorded one: what plan, images, explain and a dry run are made from. */

import { type Prepared, prepareRecorded } from "../loop/prepare.ts";
import { type ReadOnlyPass, readOnlyPass } from "../loop/read-only.ts";
import type { Purpose } from "../model/plan.ts";
import type { Parts } from "../policy/decide.ts";
import { clean } from "../report/terminal.ts";
import type { CommandContext } from "./context.ts";

export interface PlanRequest {
  readonly purpose: Purpose;
  readonly parts: Parts;
  /** A file of `crigc snapshot`; `null`: the node itself. */
  readonly snapshotFile: string | null;
}

/** Rejects where the runtime, a list or a stat fails. Opens no writer. */
export async function planNode(context: CommandContext, request: PlanRequest): Promise<Prepared> {
  const { purpose, parts, snapshotFile } = request;
  if (snapshotFile !== null) return recordedPlan(context, request, snapshotFile);
  const node = await context.open.node(context.config, context.signal);
  try {
    for (const notice of node.notices) context.stderr(`crigc: ${clean(notice)}\n`);
    const pass: ReadOnlyPass = { purpose, parts };
    return await readOnlyPass(node.engine, pass, context.signal);
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
  const { limits } = context.config;
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
