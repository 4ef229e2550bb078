/** What an observation says for the trace: which images are there, and which are in use under which names. */

import type { ContainerId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type TracedNode, type TraceKey, useKey } from "../model/trace.ts";
import { byParts } from "../policy/by-object.ts";
import type { Usage } from "../policy/image/usage.ts";
import { forestOf, type Origins } from "../policy/layer/origins.ts";
import type { ReadEngine } from "./ports.ts";

interface Observed {
  readonly snapshot: Snapshot;
  readonly usage: Usage;
  /** After the snapshot. */
  readonly ledger: Ledger;
}

export function trace(
  { trace: told, limits }: Pick<ReadEngine, "trace" | "limits">,
  { snapshot, usage, ledger }: Observed,
): void {
  const { images, containers, clocks } = snapshot;
  const { origins, layers } = ledger;
  told?.({
    at: clocks.wall,
    precision: limits().memory.detectionPeriod,
    node: tracedNode({ images, containers, users: usage.users, origins, layers }),
    isComplete: usage.unknown.length === 0,
  });
}

type Parts = Pick<Snapshot, "images" | "containers"> & Pick<Usage, "users"> & Origins;

const tracedNode = byParts(({ images, containers, users, ...origins }: Parts): TracedNode => {
  const names = new Map<ContainerId, string>(containers.map((it) => [it.id, it.imageName]));
  const keys = new Set<TraceKey>();
  for (const { id } of images) {
    keys.add(id);
    for (const user of users.get(id) ?? []) {
      const name = user.kind === "container" ? (names.get(user.id) ?? "") : "";
      keys.add(useKey(id, isId(name) ? "" : name));
    }
  }
  const chainOf: TracedNode["chainOf"] = (id) =>
    forestOf(images, origins)
      .layersOf(id)
      ?.map(({ chain }) => chain) ?? null;
  return { keys, images, chainOf };
});

/** A container may have been created by the ID of its image. */
const isId = (name: string): boolean => /^(?:sha256:)?[0-9a-f]{64}$/.test(name);
