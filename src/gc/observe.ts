/** Takes snapshots of the node for one pass: every list complete, or an error and no snapshot. */

import { mountsImages } from "../cri/runtimes.ts";
import { HostError, messageOf } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import type { DiskReader, HostReader, RuntimeReader } from "../model/ports.ts";
import type { Resolution, Snapshot } from "../model/snapshot.ts";
import { instant } from "../model/time.ts";
import { sameOr } from "../policy/by-object.ts";
import type { Listed } from "../policy/container/ownership.ts";
import { STARTING_SINCE } from "../policy/creations.ts";
import { referencesToResolve } from "../policy/image/usage.ts";
import { askAll } from "./calls.ts";
import { readImageVolumes, volumesOf } from "./details.ts";
import { PodLists } from "./pod-lists.ts";

export interface ObservePorts {
  readonly runtime: RuntimeReader;
  readonly disk: DiskReader;
  readonly host: HostReader;
}

export interface ObserveRequest {
  readonly ledger: Ledger;
  /** Whether to read the log directories too. */
  readonly logs: boolean;
}

/** As last resolved; the same object while nothing changes, so that what is derived from it holds for the next pass. */
const lastResolved = new WeakMap<RuntimeReader, ReadonlyMap<string, Resolution>>();

/** The node as one pass sees it: what one snapshot has shown, the next one expects. */
export class Observer {
  readonly #ports: ObservePorts;
  readonly #imagesListed: (images: Snapshot["images"]) => void;
  readonly pods: PodLists;

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
   * pod source, so that a pod that appears in between does not look deleted.
   */
  async observe(
    { ledger, logs: wantsLogs }: ObserveRequest,
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
    const known = { known: volumesOf(ledger.containers), supported: mountsImages(info) };
    const [imageVolumes, filesystems] = await Promise.all([
      readImageVolumes(runtime, { ...lists, ...known }, signal),
      disk.filesystems(reported),
    ]);
    const pods = await host.pods(signal);
    const facts = { runtime: info, ...lists, imageVolumes, pods };
    const resolutions = await this.#resolve(referencesToResolve(facts), signal);
    const observedAt = host.clocks().wall;
    const found = { clocks, observedAt, filesystems, logs, keep };
    return { ...facts, ...found, resolutions };
  }

  /**
   * Lists again, within one pass, what can have changed since `previous`: images, containers, sandboxes, and what they
   * refer to. Disks, logs, pods, keep rules and clocks are those of the pass, so nothing ages while it runs.
   */
  async refresh(previous: Snapshot, signal: AbortSignal): Promise<Snapshot> {
    const { runtime, host } = this.#ports;
    const lists = await this.#lists(signal);
    const known = { known: previous.imageVolumes, supported: mountsImages(previous.runtime) };
    const imageVolumes = await readImageVolumes(runtime, { ...lists, ...known }, signal);
    const facts = { ...previous, ...lists, imageVolumes };
    const resolutions = await this.#resolve(referencesToResolve(facts), signal);
    return readPodDirectories(host, { ...facts, resolutions });
  }

  async #lists(signal: AbortSignal): Promise<Pick<Snapshot, "images"> & Listed> {
    const images = await this.#ports.runtime.listImages(signal);
    this.#imagesListed(images);
    return { images, ...(await this.pods.read(signal)) };
  }

  /** Returns the previous object if nothing changed, so that results cached by it still hold. */
  async #resolve(
    references: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Resolution>> {
    const { runtime } = this.#ports;
    const before = lastResolved.get(runtime) ?? new Map<string, Resolution>();
    const resolved = new Map<string, Resolution>();
    const note = (reference: string, now: Resolution): void => {
      const known = before.get(reference);
      resolved.set(reference, known !== undefined && isSame(known, now) ? known : now);
    };
    await askAll(
      references,
      async (reference) => {
        const image = await runtime.imageStatus(reference, signal);
        note(reference, image === null ? { kind: "absent" } : { kind: "image", id: image.id });
      },
      (reference, thrown) => {
        if (signal.aborted) throw thrown;
        note(reference, { kind: "unknown", message: messageOf(thrown) });
      },
    );
    const resolutions = sameOr(before, resolved);
    lastResolved.set(runtime, resolutions);
    return resolutions;
  }
}

const isSame = (one: Resolution, other: Resolution): boolean =>
  one.kind === "image"
    ? other.kind === "image" && other.id === one.id
    : one.kind === "absent" && other.kind === "absent";

/** Fails whoever decided without the figures of a filesystem, and went on with the rest; `null`: none lacks them. */
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
