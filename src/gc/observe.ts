/** Takes snapshots of the node for one pass: every list complete, or an error and no snapshot. */

import { mountsImages } from "../cri/runtimes.ts";
import { HostError, messageOf } from "../model/errors.ts";
import type { ContainerId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { DiskReader, HostReader, RuntimeReader } from "../model/ports.ts";
import type { ImageVolumes, Resolution, Snapshot } from "../model/snapshot.ts";
import { instant } from "../model/time.ts";
import { byObject, sameOr } from "../policy/by-object.ts";
import type { Listed } from "../policy/container/pods.ts";
import { STARTING_SINCE } from "../policy/creations.ts";
import { referencesToResolve } from "../policy/image/usage.ts";
import { askAll } from "./calls.ts";
import { PodLists } from "./pod-lists.ts";

export interface ObservePorts {
  readonly runtime: RuntimeReader;
  readonly disk: DiskReader;
  readonly host: HostReader;
}

/** The node as one pass sees it: what one snapshot has shown, the next one expects. */
export class Observer {
  readonly #ports: ObservePorts;
  readonly #imagesListed: (images: Snapshot["images"]) => void;
  readonly pods: PodLists;
  /** As last resolved; the same object while nothing changes, so that results cached by it still hold. */
  #resolutions = NOTHING_RESOLVED;

  /** `imagesListed`: called with every list of images, even if what comes after it fails. */
  constructor(
    ports: ObservePorts,
    imagesListed: (images: Snapshot["images"]) => void = () => undefined,
  ) {
    this.#ports = ports;
    this.#imagesListed = imagesListed;
    this.pods = new PodLists(ports.runtime);
  }

  /**
   * Rejects with `RuntimeError` or `HostError` if a list or a stat fails. A failed container status, log directory or
   * pod source becomes part of the snapshot, for policy to judge. The runtime and the log directory are read before the
   * pod source, so that a pod that appears in between does not look deleted. `logs`: whether to read that directory.
   */
  async observe(
    { ledger, logs: wantsLogs }: { readonly ledger: Ledger; readonly logs: boolean },
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const { runtime, disk, host } = this.#ports;
    this.pods.expect(ledger);
    const [info, [lists, clocks], reported, logs, keep] = await Promise.all([
      runtime.info(signal),
      // Time is read after the lists: an image that arrived while a slow runtime answered must not count as older than it
      // is.
      this.#lists(signal).then((read) => [read, host.clocks()] as const),
      runtime.reportedFilesystems(signal),
      wantsLogs ? host.logs() : Promise.resolve(null),
      host.keepRules(),
    ]);
    const filesystems = await disk.filesystems(reported);
    const known = volumesOf(ledger.containers);
    const uses = await this.#uses({ ...lists, runtime: info }, known, signal);
    const observedAt = host.clocks().wall;
    return { ...lists, ...uses, runtime: info, clocks, observedAt, filesystems, logs, keep };
  }

  /**
   * Reads again, within one pass, what decides whether an image may go: lists, what they refer to, pods and keep rules.
   * Disks, logs and clocks are those of the pass, so nothing ages while it runs.
   */
  async refresh(previous: Snapshot, signal: AbortSignal): Promise<Snapshot> {
    const keep = await this.#ports.host.keepRules();
    const now = { ...previous, ...(await this.#lists(signal)), keep };
    return { ...now, ...(await this.#uses(now, previous.imageVolumes, signal)) };
  }

  async #lists(signal: AbortSignal): Promise<Pick<Snapshot, "images"> & Listed> {
    const images = await this.#ports.runtime.listImages(signal);
    this.#imagesListed(images);
    return { images, ...(await this.pods.read(signal)) };
  }

  /** The uses of images that the lists do not show. */
  async #uses(
    lists: Pick<Snapshot, "images" | "runtime"> & Listed,
    known: VolumesByContainer,
    signal: AbortSignal,
  ): Promise<Pick<Snapshot, "imageVolumes" | "pods" | "resolutions">> {
    const imageVolumes = await this.#imageVolumes(lists, known, signal);
    const pods = await this.#ports.host.pods(signal);
    const references = referencesToResolve({ ...lists, imageVolumes, pods });
    return { imageVolumes, pods, resolutions: await this.#resolve(references, signal) };
  }

  /** Asks the runtime once for each container. If a call fails, that container's image volumes stay unknown. */
  async #imageVolumes(
    { containers, runtime: info }: Pick<Snapshot, "containers" | "runtime">,
    known: VolumesByContainer,
    signal: AbortSignal,
  ): Promise<VolumesByContainer> {
    const isSupported = mountsImages(info);
    const volumes = new Map<ContainerId, ImageVolumes>();
    for (const { id } of containers) {
      const before = known.get(id);
      if (before?.kind === "known") volumes.set(id, before);
      else if (!isSupported) volumes.set(id, UNSUPPORTED);
    }
    const unknown = containers.flatMap(({ id }) => (volumes.has(id) ? [] : [id]));
    await askAll(unknown, {
      signal,
      ask: async (id) => {
        const detail = await this.#ports.runtime.containerDetail(id, signal);
        volumes.set(id, detail === null ? { kind: "gone" } : knownVolumes(detail.imageVolumes));
      },
      failed: (id, thrown) => volumes.set(id, { kind: "unknown", message: messageOf(thrown) }),
    });
    return sameOr(known, volumes);
  }

  async #resolve(
    references: readonly string[],
    signal: AbortSignal,
  ): Promise<Snapshot["resolutions"]> {
    const { runtime } = this.#ports;
    const before = this.#resolutions;
    const resolved = new Map<string, Resolution>();
    await askAll(references, {
      signal,
      ask: async (reference) => {
        const id = (await runtime.imageStatus(reference, signal))?.id;
        const known = before.get(reference);
        const isSame = known?.kind === "image" && known.id === id;
        const now = id === undefined ? ABSENT : { kind: "image" as const, id };
        resolved.set(reference, isSame ? known : now);
      },
      failed: (reference, thrown) =>
        resolved.set(reference, { kind: "unknown", message: messageOf(thrown) }),
    });
    return (this.#resolutions = sameOr(before, resolved));
  }
}

/** In nearly every pass, so they share one object. */
const NOTHING_RESOLVED: Snapshot["resolutions"] = new Map();
const ABSENT: Resolution = { kind: "absent" };

/** By container: from the ledger, or from an earlier snapshot of the same pass; the same map while nothing changes. */
type VolumesByContainer = Snapshot["imageVolumes"];

const volumesOf = byObject((containers: Ledger["containers"]) => {
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

/** The failure of a pass that went on without the figures of a filesystem; `null`: all were measured. */
export function unmeasuredIn({ filesystems }: Pick<Snapshot, "filesystems">): HostError | null {
  const failures = filesystems.flatMap((filesystem) => filesystem.unmeasured ?? []);
  return failures.length === 0 ? null : new HostError("stat", failures.join("; "));
}

/** With the kubelet's directories of pods; to be read after the lists. */
export async function readPodDirectories(
  host: Pick<HostReader, "clocks" | "podDirectories">,
  snapshot: Snapshot,
): Promise<Snapshot> {
  const podDirectories = await host.podDirectories(instant(host.clocks().wall - STARTING_SINCE));
  return { ...snapshot, podDirectories, observedAt: host.clocks().wall };
}
