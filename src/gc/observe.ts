/** Takes one snapshot of the node: every list complete, or an error and no snapshot. */

import { messageOf } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import type { DiskReader, HostReader, RuntimeReader } from "../model/ports.ts";
import type {
  Container,
  CreationReading,
  Image,
  Resolution,
  Sandbox,
  Snapshot,
} from "../model/snapshot.ts";
import { creationsOf, ListedTimes } from "../policy/image/creations.ts";
import { referencesToResolve } from "../policy/image/usage.ts";
import { imageVolumesSupported } from "../policy/version.ts";
import { mapBounded } from "./concurrency.ts";
import {
  knowledgeOfLedger,
  knowledgeOfSnapshot,
  readContainerDetails,
  readSandboxImages,
} from "./detail.ts";
import { expectRemembered, type PodLists, withSandboxesOfContainers } from "./whole-lists.ts";

export interface ObservePorts {
  readonly runtime: RuntimeReader;
  readonly disk: DiskReader;
  readonly host: HostReader;
}

export interface ObserveRequest {
  readonly ledger: Ledger;
  /** Whether a rule counts from a container's end, so that ends are needed. */
  readonly needEnds: boolean;
  /** Whether to read the log directories too. */
  readonly logs: boolean;
}

const RESOLVE_CONCURRENCY = 8;

/**
 * Rejects with `RuntimeError` or `HostError` if a list or a stat fails. A failed container status, log directory or pod
 * source becomes part of the snapshot, for policy to judge. The runtime and the log directory are read before the pod
 * source, so that a pod that appears in between does not look deleted.
 */
export async function observe(
  ports: ObservePorts,
  request: ObserveRequest,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { runtime, disk, host } = ports;
  const [info, [lists, clocks], reported, logs, keep] = await Promise.all([
    runtime.info(signal),
    // Time is read after the lists: an image that arrived while a slow runtime answered must not count as older than it
    // is.
    readLists(runtime, signal).then((read) => [read, host.clocks()] as const),
    runtime.reportedFilesystems(signal),
    request.logs ? host.logs() : Promise.resolve(null),
    host.keepRules(request.ledger.keepDirectories),
  ]);
  const { images, listed: containers, sandboxes } = lists;
  const { ledger } = request;
  await expectRemembered(runtime, { ledger, lists: { containers, sandboxes } }, signal);
  const need = { volumes: imageVolumesSupported(info), ends: request.needEnds };
  const known = knowledgeOfLedger(ledger);
  const [details, sandboxImages, filesystems] = await Promise.all([
    readContainerDetails(runtime, { containers, known, need }, signal),
    readSandboxImages(runtime, { sandboxes, known }, signal),
    disk.filesystems(reported),
  ]);
  const pods = await host.pods(signal);
  const facts = {
    runtime: info,
    images,
    containers,
    sandboxes,
    imageVolumes: details.volumes,
    sandboxImages,
    pods,
  };
  const resolutions = await resolveReferences(runtime, referencesToResolve(facts), signal);
  return {
    ...facts,
    creations: null,
    clocks,
    observedAt: host.clocks().wall,
    containerEnds: details.ends,
    resolutions,
    filesystems,
    logs,
    keep,
  };
}

/**
 * Lists again, within one pass, what can have changed since `previous`: images, containers, sandboxes, and what they
 * refer to. Disks, logs, pods, keep rules and clocks are those of the pass, so nothing ages while it runs. `announced`
 * is read once the containers are listed.
 */
export async function refresh(
  ports: Pick<ObservePorts, "runtime" | "host">,
  input: { readonly previous: Snapshot; readonly announced: () => readonly Container[] },
  signal: AbortSignal,
): Promise<Snapshot> {
  const { runtime, host } = ports;
  const { previous } = input;
  const { images, listed, sandboxes } = await readLists(runtime, signal);
  const observedAt = host.clocks().wall;
  const containers = withAnnounced(listed, input.announced());
  const known = knowledgeOfSnapshot(previous);
  const need = { volumes: imageVolumesSupported(previous.runtime), ends: false };
  const [details, sandboxImages] = await Promise.all([
    readContainerDetails(runtime, { containers, known, need }, signal),
    readSandboxImages(runtime, { sandboxes, known }, signal),
  ]);
  const facts = {
    runtime: previous.runtime,
    images,
    containers,
    sandboxes,
    imageVolumes: details.volumes,
    sandboxImages,
    ...(await creationsAndPods(host, { previous, containers, sandboxes }, signal)),
  };
  const resolutions = await resolveReferences(runtime, referencesToResolve(facts), signal);
  return { ...previous, ...facts, observedAt, resolutions };
}

/**
 * The containers that are being created. Where the kubelet lists pods and one of them creates a container, the pods are
 * read again, so that they are no older than the lists and name the images of every such pod.
 */
async function creationsAndPods(
  host: HostReader,
  { previous, ...lists }: PodLists & { readonly previous: Snapshot },
  signal: AbortSignal,
): Promise<Pick<Snapshot, "creations" | "pods">> {
  const creations = await readCreations(host, lists);
  const isListed = previous.pods.kind !== "none" && previous.pods.source === "kubelet-api";
  const pods =
    creations.inProgress.length > 0 && isListed ? await host.pods(signal) : previous.pods;
  return { creations, pods };
}

/** To be read after the lists. */
export async function readCreations(
  host: Pick<HostReader, "clocks" | "containerMarks">,
  lists: PodLists,
): Promise<CreationReading> {
  const listed = new ListedTimes(lists, host.clocks().wall);
  const marks = await host.containerMarks(
    listed.pods(),
    (mark) => listed.sandboxFor(mark) !== null,
  );
  return creationsOf(listed, marks, host.clocks());
}

/**
 * Sequential: on a large node the responses take more memory than anything else, and a runtime answers them no faster
 * in parallel. Containers come last, because their freshness matters most.
 */
async function readLists(
  runtime: RuntimeReader,
  signal: AbortSignal,
): Promise<{
  readonly images: readonly Image[];
  readonly listed: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
}> {
  const images = await runtime.listImages(signal);
  const sandboxes = await runtime.listSandboxes(signal);
  const listed = await runtime.listContainers(signal);
  const whole = await withSandboxesOfContainers(runtime, { containers: listed, sandboxes }, signal);
  return { images, listed, sandboxes: whole.sandboxes };
}

/** Announced containers only add uses: if the list has one, the list's entry counts. */
function withAnnounced(
  listed: readonly Container[],
  announced: readonly Container[],
): readonly Container[] {
  if (announced.length === 0) return listed;
  const ids = new Set(listed.map((container) => container.id));
  return [...listed, ...announced.filter((container) => !ids.has(container.id))];
}

async function resolveReferences(
  runtime: RuntimeReader,
  references: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Resolution>> {
  const resolved = await mapBounded(
    references,
    RESOLVE_CONCURRENCY,
    async (reference): Promise<readonly [string, Resolution]> => {
      try {
        const image = await runtime.imageStatus(reference, signal);
        return [reference, image === null ? { kind: "absent" } : { kind: "image", id: image.id }];
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        return [reference, { kind: "unknown", message: messageOf(thrown) }];
      }
    },
  );
  return sameAsBefore(references, new Map(resolved));
}

const answers = new WeakMap<readonly string[], ReadonlyMap<string, Resolution>>();

/** Returns the previous objects where they are equal, so that results cached by them still hold. */
function sameAsBefore(
  references: readonly string[],
  resolved: ReadonlyMap<string, Resolution>,
): ReadonlyMap<string, Resolution> {
  const before = answers.get(references);
  if (before !== undefined && references.every((it) => isSame(before.get(it), resolved.get(it))))
    return before;
  answers.set(references, resolved);
  return resolved;
}

const isSame = (one: Resolution | undefined, other: Resolution | undefined): boolean =>
  one?.kind === "image"
    ? other?.kind === "image" && other.id === one.id
    : one?.kind === "absent" && other?.kind === "absent";
