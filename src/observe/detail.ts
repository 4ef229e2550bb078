/** What a list does not say of containers and sandboxes: read once each, then taken from the ledger. */

import { messageOf, RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, ImageVolumes, Sandbox, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { mapBounded } from "./concurrency.ts";

/**
 * Calls under way at once: enough to hide a socket's latency, few enough not to crowd out a kubelet. On containerd 2.1 and two
 * cores a ContainerStatus takes 0.65 ms with 1 at once, 0.37 with 2, 0.30 with 4, and 0.29 to 0.35 with 8 to 64; a
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
  /** Whether a rule counts from the end of a container. */
  readonly ends: boolean;
}

/** What is already known: the ledger's records, or an earlier snapshot of the same pass. */
export interface DetailKnowledge {
  /** `null`: not known. */
  readonly volumesOf: (id: ContainerId) => ImageVolumes | null;
  readonly endOf: (id: ContainerId) => Instant | null;
  readonly sandboxImages: ReadonlyMap<SandboxId, string>;
}

export const knowledgeOfLedger = (ledger: Ledger): DetailKnowledge => ({
  volumesOf: (id) => {
    const references = ledger.containers.get(id)?.imageVolumes ?? null;
    return references === null ? null : knownVolumes(references);
  },
  endOf: (id) => ledger.containers.get(id)?.finishedAt ?? null,
  sandboxImages: ledger.sandboxImages,
});

/** The ends are those of the pass: a look in the middle of it needs none. */
export const knowledgeOfSnapshot = (snapshot: Snapshot): DetailKnowledge => ({
  volumesOf: (id) => {
    const volumes = snapshot.imageVolumes.get(id);
    return volumes?.kind === "known" ? volumes : null;
  },
  endOf: () => null,
  sandboxImages: snapshot.sandboxImages,
});

/** Nearly every container has none: one object for all of them. */
const NO_VOLUMES: ImageVolumes = { kind: "known", references: [] };
const UNSUPPORTED: ImageVolumes = { kind: "unsupported" };

const knownVolumes = (references: readonly string[]): ImageVolumes =>
  references.length === 0 ? NO_VOLUMES : { kind: "known", references };

/** Asks the runtime for the containers of which something needed is not known yet. A failed call leaves that container unknown. */
export async function readContainerDetails(
  runtime: RuntimeReader,
  input: {
    readonly containers: readonly Container[];
    readonly known: DetailKnowledge;
    readonly need: DetailNeed;
  },
  signal: AbortSignal,
): Promise<ContainerDetails> {
  const { known, need } = input;
  const volumes = new Map<ContainerId, ImageVolumes>();
  const ends = new Map<ContainerId, Instant>();
  // By ID: a container that events announced stands there once for each reference that it names.
  const toAsk = new Map<ContainerId, Container>();
  for (const container of input.containers) {
    const volumesKnown = known.volumesOf(container.id);
    if (volumesKnown !== null) volumes.set(container.id, volumesKnown);
    else if (!need.volumes) volumes.set(container.id, UNSUPPORTED);
    const endKnown = container.state === "exited" ? known.endOf(container.id) : null;
    if (endKnown !== null) ends.set(container.id, endKnown);
    const endMissing = need.ends && container.state === "exited" && endKnown === null;
    if ((need.volumes && volumesKnown === null) || endMissing) toAsk.set(container.id, container);
  }
  const silence = new Silence();
  await mapBounded([...toAsk.values()], CONCURRENCY, async (container) => {
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

/**
 * The images that sandboxes' own status names. A status that fails is left out and asked again next time:
 * this is one protection of the sandbox image among several, and one broken sandbox must not stop collection.
 */
export async function readSandboxImages(
  runtime: RuntimeReader,
  input: { readonly sandboxes: readonly Sandbox[]; readonly known: DetailKnowledge },
  signal: AbortSignal,
): Promise<ReadonlyMap<SandboxId, string>> {
  const images = new Map<SandboxId, string>();
  const toAsk: Sandbox[] = [];
  for (const sandbox of input.sandboxes) {
    const known = input.known.sandboxImages.get(sandbox.id);
    if (known === undefined) toAsk.push(sandbox);
    else images.set(sandbox.id, known);
  }
  const silence = new Silence();
  await mapBounded(toAsk, CONCURRENCY, async (sandbox) => {
    try {
      silence.throwIfLasting();
      images.set(sandbox.id, (await runtime.sandboxImage(sandbox.id, signal)) ?? "");
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      silence.note(thrown);
    }
  });
  return images;
}

/** Statuses without an answer after which no more are asked for: each would take its whole deadline. */
const UNANSWERED_MAX = 2;

class Silence {
  #unanswered = 0;

  note(thrown: unknown): void {
    if (thrown instanceof RuntimeError && thrown.kind === "deadline") this.#unanswered += 1;
  }

  throwIfLasting(): void {
    if (this.#unanswered < UNANSWERED_MAX) return;
    throw new Error(`not asked for, because ${this.#unanswered} others were not answered in time`);
  }
}
