/** Whether lists are complete: crigc asks by ID for what is missing without having been seen to go. */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
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
  await expectGoneSandboxes(runtime, unlistedSandboxes({ containers, sandboxes: all }), signal);
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
  const { containers, sandboxes } = lists;
  await expectGoneSandboxes(
    runtime,
    goneSandboxes({ listed: sandboxes, known: ledger.sandboxImages }),
    signal,
  );
  await expectGoneContainers(
    runtime,
    goneContainers({ listed: containers, known: ledger.containers }),
    signal,
  );
}

interface Remembered<Id extends string> {
  readonly listed: readonly { readonly id: Id }[];
  readonly known: ReadonlyMap<Id, unknown>;
}

const goneSandboxes = byParts(({ listed, known }: Remembered<SandboxId>) =>
  missing(known.keys(), listed),
);
const goneContainers = byParts(({ listed, known }: Remembered<ContainerId>) =>
  missing(known.keys(), listed),
);

export async function expectGoneSandboxes(
  runtime: Runtime,
  ids: readonly SandboxId[],
  signal: AbortSignal,
): Promise<void> {
  await mapBounded(ids, CONCURRENCY, async (id) => {
    if ((await runtime.sandboxDetail(id, signal)) !== null) throw notWhole("sandboxes", id);
  });
}

export async function expectGoneContainers(
  runtime: Runtime,
  ids: readonly ContainerId[],
  signal: AbortSignal,
): Promise<void> {
  await mapBounded(ids, CONCURRENCY, async (id) => {
    if ((await runtime.containerDetail(id, signal)) !== null) throw notWhole("containers", id);
  });
}

export function missing<Id extends string>(
  ids: Iterable<Id>,
  listed: readonly { readonly id: Id }[],
): readonly Id[] {
  const there = new Set(listed.map(({ id }) => id));
  const gone = new Set<Id>();
  for (const id of ids) if (!there.has(id)) gone.add(id);
  return [...gone];
}

const notWhole = (what: "containers" | "sandboxes", id: string): RuntimeError =>
  new RuntimeError(
    "failed",
    `the runtime's list of ${what} is incomplete: it omits ${id}, which still exists; crigc removes nothing on such a list, and the next pass tries again`,
  );
