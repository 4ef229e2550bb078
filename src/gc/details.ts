/** Details of containers and images that lists lack: read once each, then taken from the ledger. */

import { failureCode, messageOf } from "../model/errors.ts";
import type { ContainerId, ImageId } from "../model/ids.ts";
import type { ImageOrigin, Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { LedgerMemory, RuntimeReader } from "../model/ports.ts";
import type { Container, Image, ImageVolumes, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { byObject, sameOr } from "../policy/by-object.ts";
import { rememberOrigins } from "../policy/origins.ts";
import { askAll, type Backoff, NotAsked } from "./calls.ts";

/**
 * Known from the ledger, or from an earlier snapshot of the same pass. The maps are returned again if they have all that is
 * listed, so that results cached by them still hold.
 */
export type Details = Pick<Snapshot, "imageVolumes" | "containerEnds">;

export interface DetailNeed {
  /** Whether the runtime can mount images at all. */
  readonly volumes: boolean;
  /** Whether a rule counts from a container's end. */
  readonly ends: boolean;
}

export const knownFromLedger = ({ containers }: Ledger): Details => ({
  imageVolumes: volumesOf(containers),
  containerEnds: endsOf(containers),
});

const volumesOf = byObject((containers: Ledger["containers"]) => {
  const volumes = new Map<ContainerId, ImageVolumes>();
  for (const [id, { imageVolumes }] of containers)
    if (imageVolumes !== null) volumes.set(id, knownVolumes(imageVolumes));
  return volumes;
});

const endsOf = byObject((containers: Ledger["containers"]) => {
  const ends = new Map<ContainerId, Instant>();
  for (const [id, { finishedAt }] of containers) if (finishedAt !== null) ends.set(id, finishedAt);
  return ends;
});

/** Nearly every container has none, so they share one object. */
const NO_VOLUMES: ImageVolumes = { kind: "known", references: [] };
const UNSUPPORTED: ImageVolumes = { kind: "unsupported" };

const knownVolumes = (references: readonly string[]): ImageVolumes =>
  references.length === 0 ? NO_VOLUMES : { kind: "known", references };

/**
 * Asks the runtime for containers with unknown details. If a call fails, that container's details stay unknown. An end that
 * is not answered keeps that container alone, so crigc asks for it again after five minutes, and delays no pass by it.
 */
export async function readContainerDetails(
  runtime: Pick<RuntimeReader, "containerDetail">,
  {
    containers,
    known,
    need,
    silent,
  }: {
    readonly containers: readonly Container[];
    readonly known: Details;
    readonly need: DetailNeed;
    readonly silent: Backoff;
  },
  signal: AbortSignal,
): Promise<Details> {
  const isKnown = (id: ContainerId) => known.imageVolumes.get(id)?.kind === "known";
  if (!need.ends && containers.every(({ id }) => isKnown(id))) return known;
  const volumes = new Map<ContainerId, ImageVolumes>();
  const ends = new Map<ContainerId, Instant>();
  const toAsk = new Map<ContainerId, Container>();
  for (const container of containers) {
    const { id } = container;
    const before = isKnown(id) ? known.imageVolumes.get(id) : undefined;
    const volumesKnown = before ?? (need.volumes ? undefined : UNSUPPORTED);
    if (volumesKnown !== undefined) volumes.set(id, volumesKnown);
    const endKnown = known.containerEnds.get(id);
    if (endKnown !== undefined) ends.set(id, endKnown);
    const needsEnd = need.ends && container.state === "exited" && endKnown === undefined;
    if (volumesKnown === undefined || (needsEnd && silent.leftAlone(id) === undefined))
      toAsk.set(id, container);
  }
  await askAll(
    [...toAsk.values()],
    async ({ id }) => {
      const detail = await runtime.containerDetail(id, signal);
      volumes.set(id, detail === null ? { kind: "gone" } : knownVolumes(detail.imageVolumes));
      const end = detail?.finishedAt ?? null;
      if (end !== null) ends.set(id, end);
      silent.note(id, false);
    },
    ({ id }, thrown) => {
      if (signal.aborted) throw thrown;
      if (failureCode(thrown) === "deadline") silent.note(id, true);
      if (!volumes.has(id)) volumes.set(id, { kind: "unknown", message: messageOf(thrown) });
    },
  );
  return { imageVolumes: sameOr(known.imageVolumes, volumes), containerEnds: ends };
}

interface OriginsRead {
  readonly origins: ReadonlyMap<ImageId, ImageOrigin>;
  /** Images whose status could not be read. */
  readonly failed: readonly ImageId[];
}

/** After this many failures the rest waits for the next look: a runtime may refuse them all. */
const ORIGIN_FAILURES_MAX = 16;

/** Layers and build date of unknown images, in order. If a call fails, that image stays unknown until the next look. */
export async function readOrigins(
  runtime: Pick<RuntimeReader, "imageOrigin">,
  input: { readonly images: readonly Pick<Image, "id">[]; readonly known: Ledger["origins"] },
  signal: AbortSignal,
): Promise<OriginsRead> {
  const origins = new Map<ImageId, ImageOrigin>();
  const failed: ImageId[] = [];
  const unknown = new Set(input.images.map(({ id }) => id).filter((id) => !input.known.has(id)));
  await askAll(
    [...unknown],
    async (id) => {
      if (failed.length >= ORIGIN_FAILURES_MAX) return;
      const origin = await runtime.imageOrigin(id, signal);
      if (origin !== null) origins.set(id, origin);
    },
    (id, thrown) => {
      if (signal.aborted) throw thrown;
      if (!(thrown instanceof NotAsked)) failed.push(id);
    },
  );
  return { origins, failed };
}

interface LayerPorts {
  readonly limits: () => Limits;
  readonly memory: LedgerMemory;
  readonly observe: { readonly runtime: Pick<RuntimeReader, "imageOrigin"> };
}

/** Reads the layers of new images between passes, so that no removal waits for them. */
export class LayerReader {
  /** Images whose status could not be read last time. */
  #failed: ReadonlySet<ImageId> = new Set();

  /** Asks once per image, and again at the next look if the call fails. The kubelet does not know layers. */
  async read({ limits, memory, observe }: LayerPorts, signal: AbortSignal): Promise<null> {
    if (limits().images.compat === "kubelet") return null;
    const known = memory.current();
    // Images that failed before come last, so that they do not delay others.
    const isLate = (id: ImageId): number => Number(this.#failed.has(id));
    const images = [...known.images.keys()]
      .toSorted((one, other) => isLate(one) - isLate(other))
      .map((id) => ({ id }));
    const { origins, failed } = await readOrigins(
      observe.runtime,
      { images, known: known.origins },
      signal,
    );
    const now = memory.current();
    const listed = [...now.images.keys()].map((id) => ({ id }));
    if (origins.size > 0) memory.replace({ ...now, ...rememberOrigins(now, listed, origins) });
    this.#failed = new Set(
      [...this.#failed, ...failed].filter((id) => now.images.has(id) && !origins.has(id)),
    );
    return null;
  }
}
