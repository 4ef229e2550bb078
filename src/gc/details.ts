/** Details of containers and images that lists lack: read once each, then taken from the ledger. */

import { messageOf } from "../model/errors.ts";
import type { ContainerId, ImageId } from "../model/ids.ts";
import type { ImageOrigin, Ledger } from "../model/ledger.ts";
import type { LedgerMemory, RuntimeReader } from "../model/ports.ts";
import type { Container, Image, ImageVolumes } from "../model/snapshot.ts";
import { byObject, sameOr } from "../policy/by-object.ts";
import { rememberOrigins } from "../policy/origins.ts";
import type { Policy } from "../policy/policy.ts";
import { askAll, NotAsked } from "./calls.ts";

/**
 * By container: from the ledger, or from an earlier snapshot of the same pass. The map is returned again if it has all that
 * is listed, so that results cached by it still hold.
 */
type VolumesByContainer = ReadonlyMap<ContainerId, ImageVolumes>;

export const volumesOf = byObject((containers: Ledger["containers"]) => {
  const volumes = new Map<ContainerId, ImageVolumes>();
  for (const [id, { imageVolumes }] of containers)
    if (imageVolumes !== null) volumes.set(id, knownVolumes(imageVolumes));
  return volumes;
});

/** Nearly every container has none, so they share one object. */
const NO_VOLUMES: ImageVolumes = { kind: "known", references: [] };
const UNSUPPORTED: ImageVolumes = { kind: "unsupported" };

const knownVolumes = (references: readonly string[]): ImageVolumes =>
  references.length === 0 ? NO_VOLUMES : { kind: "known", references };

/** Asks the runtime once for each container. If a call fails, that container's image volumes stay unknown. */
export async function readImageVolumes(
  runtime: Pick<RuntimeReader, "containerDetail">,
  {
    containers,
    known,
    supported,
  }: {
    readonly containers: readonly Container[];
    readonly known: VolumesByContainer;
    /** Whether the runtime can mount images at all. */
    readonly supported: boolean;
  },
  signal: AbortSignal,
): Promise<VolumesByContainer> {
  const isKnown = (id: ContainerId) => known.get(id)?.kind === "known";
  if (containers.every(({ id }) => isKnown(id))) return known;
  const volumes = new Map<ContainerId, ImageVolumes>();
  const toAsk: Container[] = [];
  for (const container of containers) {
    const before = isKnown(container.id) ? known.get(container.id) : undefined;
    const answer = before ?? (supported ? undefined : UNSUPPORTED);
    if (answer === undefined) toAsk.push(container);
    else volumes.set(container.id, answer);
  }
  await askAll(
    toAsk,
    async ({ id }) => {
      const detail = await runtime.containerDetail(id, signal);
      volumes.set(id, detail === null ? { kind: "gone" } : knownVolumes(detail.imageVolumes));
    },
    ({ id }, thrown) => {
      if (signal.aborted) throw thrown;
      volumes.set(id, { kind: "unknown", message: messageOf(thrown) });
    },
  );
  return sameOr(known, volumes);
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
  readonly policy: Pick<Policy, "knowsLayers">;
  readonly memory: LedgerMemory;
  readonly observe: { readonly runtime: Pick<RuntimeReader, "imageOrigin"> };
}

/** Reads the layers of new images between passes, so that no removal waits for them. */
export class LayerReader {
  /** Images whose status could not be read last time. */
  #failed: ReadonlySet<ImageId> = new Set();

  /** Asks once per image, and again at the next look if the call fails. */
  async read({ policy, memory, observe }: LayerPorts, signal: AbortSignal): Promise<null> {
    if (!policy.knowsLayers) return null;
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
