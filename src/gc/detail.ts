/** Details of containers and sandboxes that lists lack: read once each, then taken from the ledger. */

import { messageOf, RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, ImageVolumes, Sandbox, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { byParts, sameOr } from "../policy/by-object.ts";
import { mapBounded } from "./concurrency.ts";

/**
 * Concurrent calls: enough to hide a socket's latency, too few to crowd out a kubelet. On containerd 2.1 and two cores
 * a ContainerStatus takes 0.65 ms with 1 at once, 0.37 with 2, 0.30 with 4, and 0.29 to 0.35 with 8 to 64; a
 * PodSandboxStatus 1.28, 0.81, 0.73, and 0.69 to 0.59.
 */
const CONCURRENCY = 16;

export interface ContainerDetails {
  readonly volumes: ReadonlyMap<ContainerId, ImageVolumes>;
  readonly ends: ReadonlyMap<ContainerId, Instant>;
}

export interface DetailNeed {
  /** Whether the runtime can mount images at all. */
  readonly volumes: boolean;
  /** Whether a rule counts from a container's end. */
  readonly ends: boolean;
}

/** Known details: the ledger's records, or an earlier snapshot of the same pass. */
export interface DetailKnowledge {
  /** `null` if not known. */
  readonly volumesOf: (id: ContainerId) => ImageVolumes | null;
  readonly endOf: (id: ContainerId) => Instant | null;
  /** Of an earlier look, which are taken whole where they are the same now; empty: there is none. */
  readonly volumes: ReadonlyMap<ContainerId, ImageVolumes>;
  readonly sandboxImages: ReadonlyMap<SandboxId, string>;
}

/** Returns the same object for the same records, so that results derived from it can be cached. */
export const knowledgeOfLedger = ({ containers, sandboxImages }: Ledger): DetailKnowledge =>
  knowledgeOfRecords({ containers, sandboxImages });

const knowledgeOfRecords = byParts(
  ({
    containers,
    sandboxImages,
  }: Pick<Ledger, "containers" | "sandboxImages">): DetailKnowledge => ({
    volumesOf: (id) => {
      const references = containers.get(id)?.imageVolumes ?? null;
      return references === null ? null : knownVolumes(references);
    },
    endOf: (id) => containers.get(id)?.finishedAt ?? null,
    volumes: new Map(),
    sandboxImages,
  }),
);

/** A refresh within the pass needs no ends, because the pass has them. */
export const knowledgeOfSnapshot = ({ imageVolumes, sandboxImages }: Snapshot): DetailKnowledge =>
  knowledgeOfLook({ imageVolumes, sandboxImages });

/** The sandboxes that did not answer when these images were read, each with an empty name. */
const silentOf = new WeakMap<ReadonlyMap<SandboxId, string>, ReadonlyMap<SandboxId, string>>();

const knowledgeOfLook = byParts(
  ({
    imageVolumes,
    sandboxImages,
  }: Pick<Snapshot, "imageVolumes" | "sandboxImages">): DetailKnowledge => ({
    volumesOf: (id) => {
      const volumes = imageVolumes.get(id);
      return volumes?.kind === "known" ? volumes : null;
    },
    endOf: () => null,
    volumes: imageVolumes,
    // One that did not answer is asked again by the next pass: the lists of this one would be as old as it is slow.
    sandboxImages: withSilent(sandboxImages),
  }),
);

function withSilent(images: ReadonlyMap<SandboxId, string>): ReadonlyMap<SandboxId, string> {
  const silent = silentOf.get(images);
  return silent === undefined ? images : new Map([...silent, ...images]);
}

/** Nearly every container has none, so they share one object. */
const NO_VOLUMES: ImageVolumes = { kind: "known", references: [] };
const UNSUPPORTED: ImageVolumes = { kind: "unsupported" };

const knownVolumes = (references: readonly string[]): ImageVolumes =>
  references.length === 0 ? NO_VOLUMES : { kind: "known", references };

/** Asks the runtime for containers with unknown details. If a call fails, that container's details stay unknown. */
export async function readContainerDetails(
  runtime: RuntimeReader,
  input: {
    readonly containers: readonly Container[];
    readonly known: DetailKnowledge;
    readonly need: DetailNeed;
  },
  signal: AbortSignal,
): Promise<ContainerDetails> {
  const { containers, known, need } = input;
  const { toAsk, ...details } = knownDetails({ containers, known, ...need });
  if (toAsk.length === 0) return details;
  const volumes = new Map<ContainerId, ImageVolumes>();
  for (const [id, its] of details.volumes) volumes.set(id, its);
  const ends = new Map(details.ends);
  const silence = new Silence();
  await mapBounded(toAsk, CONCURRENCY, async (container) => {
    try {
      silence.throwIfLasting();
      const detail = await runtime.containerDetail(container.id, signal);
      if (detail === null) {
        volumes.set(container.id, { kind: "gone" });
        return;
      }
      volumes.set(container.id, knownVolumes(detail.imageVolumes));
      if (container.state === "exited" && detail.finishedAt !== null)
        ends.set(container.id, detail.finishedAt);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      silence.note(thrown);
      if (!volumes.has(container.id))
        volumes.set(container.id, { kind: "unknown", message: messageOf(thrown) });
    }
  });
  return { volumes, ends };
}

interface KnownDetails extends DetailNeed {
  readonly containers: readonly Container[];
  readonly known: DetailKnowledge;
}

/** The details that are known, and the containers to ask for. */
const knownDetails = byParts(
  (of: KnownDetails): ContainerDetails & { readonly toAsk: readonly Container[] } => {
    const { containers, known } = of;
    const volumes = new Map<ContainerId, ImageVolumes>();
    const ends = new Map<ContainerId, Instant>();
    // By ID: a container announced by events occurs once per reference.
    const toAsk = new Map<ContainerId, Container>();
    for (const container of containers) {
      const volumesKnown = known.volumesOf(container.id);
      if (volumesKnown !== null) volumes.set(container.id, volumesKnown);
      else if (!of.volumes) volumes.set(container.id, UNSUPPORTED);
      const endKnown = container.state === "exited" ? known.endOf(container.id) : null;
      if (endKnown !== null) ends.set(container.id, endKnown);
      const endMissing = of.ends && container.state === "exited" && endKnown === null;
      if ((of.volumes && volumesKnown === null) || endMissing) toAsk.set(container.id, container);
    }
    return { volumes: sameOr(known.volumes, volumes), ends, toAsk: [...toAsk.values()] };
  },
);

/**
 * The images that the sandboxes' own status names. A failed status is skipped and read again next time: this is one of
 * several protections of the sandbox image, and one broken sandbox must not stop collection.
 */
export async function readSandboxImages(
  runtime: RuntimeReader,
  input: { readonly sandboxes: readonly Sandbox[]; readonly known: DetailKnowledge },
  signal: AbortSignal,
): Promise<ReadonlyMap<SandboxId, string>> {
  const { sandboxes, known } = input;
  const { toAsk, images: there } = knownSandboxImages({ sandboxes, known: known.sandboxImages });
  if (toAsk.length === 0) return there;
  const images = new Map(there);
  const silent = new Map<SandboxId, string>();
  const silence = new Silence();
  await mapBounded(toAsk, CONCURRENCY, async (sandbox) => {
    try {
      silence.throwIfLasting();
      images.set(sandbox.id, (await runtime.sandboxImage(sandbox.id, signal)) ?? "");
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      if (silence.note(thrown)) silent.set(sandbox.id, "");
    }
  });
  if (silent.size > 0) silentOf.set(images, silent);
  return images;
}

const knownSandboxImages = byParts(
  ({
    sandboxes,
    known,
  }: {
    readonly sandboxes: readonly Sandbox[];
    readonly known: DetailKnowledge["sandboxImages"];
  }) => {
    const images = new Map<SandboxId, string>();
    const toAsk: Sandbox[] = [];
    for (const sandbox of sandboxes) {
      const image = known.get(sandbox.id);
      if (image === undefined) toAsk.push(sandbox);
      else images.set(sandbox.id, image);
    }
    return { images: sameOr(known, images), toAsk };
  },
);

/** After this many statuses without an answer, no more are requested: each would take its whole deadline. */
const UNANSWERED_MAX = 2;

class NotRequested extends Error {}

class Silence {
  #unanswered = 0;

  /** Whether the call was not answered, or not made because others were not. */
  note(thrown: unknown): boolean {
    if (thrown instanceof NotRequested) return true;
    if (!(thrown instanceof RuntimeError) || thrown.kind !== "deadline") return false;
    this.#unanswered += 1;
    return true;
  }

  throwIfLasting(): void {
    if (this.#unanswered < UNANSWERED_MAX) return;
    throw new NotRequested(`not requested, because ${this.#unanswered} other calls timed out`);
  }
}
