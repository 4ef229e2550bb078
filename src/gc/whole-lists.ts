/** Whether lists are complete: crigc asks by ID for what is missing without having been seen to go. */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import { byId } from "../model/values.ts";
import { byParts } from "../policy/by-object.ts";
import { mapBounded } from "./concurrency.ts";

export interface PodLists {
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
}

type Runtime = Pick<RuntimeReader, "listSandboxes" | "containerDetail" | "sandboxDetail">;

const CONCURRENCY = 16;

/**
 * Lists the sandboxes with those that containers name. A runtime may return an empty or shortened list without an
 * error, which makes live pods look deleted: rejects if the runtime has a sandbox that its list lacks, or does not
 * answer for one.
 */
export async function withSandboxesOfContainers(
  runtime: Runtime,
  { containers, sandboxes }: PodLists,
  signal: AbortSignal,
): Promise<PodLists> {
  if (unlistedSandboxes({ containers, sandboxes }).length === 0) return { containers, sandboxes };
  // A pod may have started between the two lists.
  const newer = await runtime.listSandboxes(signal);
  const newerIds = new Set(newer.map(({ id }) => id));
  const all = [...newer, ...sandboxes.filter(({ id }) => !newerIds.has(id))];
  const unlisted = unlistedSandboxes({ containers, sandboxes: all });
  await expectGone("sandboxes", unlisted, (id) => runtime.sandboxDetail(id, signal));
  return { containers, sandboxes: all };
}

const unlistedSandboxes = byParts(({ containers, sandboxes }: PodLists) =>
  missing(
    containers.flatMap(({ sandboxId }) => (sandboxId === "" ? [] : [sandboxId])),
    sandboxes,
  ),
);

/** Rejects if the runtime still has something that is in the ledger and not in a list, or does not answer for it. */
export async function expectRemembered(
  runtime: Runtime,
  { ledger, lists }: { readonly ledger: Ledger; readonly lists: PodLists },
  signal: AbortSignal,
): Promise<void> {
  const sandboxes = goneSandboxes({ listed: lists.sandboxes, known: ledger.sandboxImages });
  await expectGone("sandboxes", sandboxes, (id) => runtime.sandboxDetail(id, signal));
  const containers = goneContainers({ listed: lists.containers, known: ledger.containers });
  await expectGone("containers", containers, (id) => runtime.containerDetail(id, signal));
}

interface Remembered<Id extends string> {
  readonly listed: readonly { readonly id: Id }[];
  readonly known: ReadonlyMap<Id, unknown>;
}

const knownAndGone = <Id extends string>() =>
  byParts(({ listed, known }: Remembered<Id>) => missing(known.keys(), listed));
const goneSandboxes = knownAndGone<SandboxId>();
const goneContainers = knownAndGone<ContainerId>();

/** Rejects if the runtime still has one of these, or does not answer for it. */
export async function expectGone<Id extends string>(
  what: "containers" | "sandboxes",
  ids: readonly Id[],
  detail: (id: Id) => Promise<unknown>,
): Promise<void> {
  await mapBounded(ids, CONCURRENCY, async (id) => {
    if ((await detail(id)) === null) return;
    throw new RuntimeError(
      "failed",
      `the runtime's list of ${what} is incomplete: it omits ${id}, which still exists; crigc removes nothing on such a list, and the next pass tries again`,
    );
  });
}

export function missing<Id extends string>(
  ids: Iterable<Id>,
  listed: readonly { readonly id: Id }[],
): readonly Id[] {
  const there = byId(listed);
  const gone = new Set<Id>();
  for (const id of ids) if (!there.has(id)) gone.add(id);
  return [...gone];
}
