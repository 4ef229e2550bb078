/**
 * Pods that are starting: an image that a container is about to use looks unused until the runtime lists the container. The
 * kubelet makes the pod's directory, the sandbox, and then, after its image check, a new file in the directory of the
 * container, just before it asks the runtime to create it.
 */

import type { PodUid, SandboxId } from "../model/ids.ts";
import type { PodDirectory, Sandbox, Snapshot } from "../model/snapshot.ts";
import {
  type Duration,
  duration,
  type Instant,
  instant,
  plus,
  seconds,
  since,
} from "../model/time.ts";
import { compared } from "../model/values.ts";
import { byParts } from "./by-object.ts";

/** A pod whose next container is not listed yet. */
export interface StartingPod {
  /** Of a sandbox that Kubernetes did not make, its ID. */
  readonly uid: PodUid | SandboxId;
  /** "" where crigc knows only the pod. */
  readonly container: string;
  /** How long it may still hold up image removal. */
  readonly remaining: Duration;
}

/** The longest creation that was measured took 131 s; one that fails again and again never ends. */
const STARTING_MAX = seconds(150);
/** Without the kubelet's directories: a quick disk lists the first container within 1.2 s. */
const NEW_SANDBOX_MAX = seconds(10);
/** The wall clock is read in whole milliseconds, and files get the time of the kernel's last tick. */
const CLOCK_GRAIN = seconds(0.01);
const NEVER = instant(0n);

/** How far back a change of the kubelet's directories can matter. */
export const STARTING_SINCE = STARTING_MAX;

type Lists = Pick<Snapshot, "containers" | "sandboxes">;

/** `directories`: read after the lists; `null` without the kubelet's directory of pods. */
export function startingPods(
  lists: Lists,
  directories: readonly PodDirectory[] | null,
  now: Instant,
): readonly StartingPod[] {
  const listed = indexed({ sandboxes: lists.sandboxes, containers: lists.containers });
  const starts =
    directories?.flatMap((directory) => startsOf(directory, listed, now)) ??
    listed.empty.map((sandbox) => ({
      uid: podOf(sandbox) || sandbox.id,
      container: "",
      at: sandbox.createdAt,
    }));
  const most = directories === null ? NEW_SANDBOX_MAX : STARTING_MAX;
  return starts
    .filter(({ at }) => !isFuture(at, now))
    .map(({ at, ...pod }) => ({ ...pod, remaining: duration(most - since(now, at)) }))
    .filter(({ remaining }) => remaining > 0n);
}

const indexed = byParts(({ sandboxes, containers }: Lists) => {
  const ready = sandboxes.filter(({ state }) => state === "ready");
  const oldestFirst = ready.toSorted((one, other) => compared(one.createdAt, other.createdAt));
  const newest = new Map(oldestFirst.map((sandbox) => [podOf(sandbox), sandbox]));
  const bySandbox = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  return { newest, bySandbox, empty: ready.filter(({ id }) => !bySandbox.has(id)) };
});

/** What of the pod is starting, and since when. */
function startsOf(
  { uid, bornAt, files }: PodDirectory,
  { newest, bySandbox }: ReturnType<typeof indexed>,
  now: Instant,
) {
  const sandbox = newest.get(uid);
  if (sandbox === undefined) return [{ uid, container: "", at: bornAt }];
  const latest = (container: string): Instant =>
    [sandbox, ...(bySandbox.get(sandbox.id) ?? []).filter(({ name }) => name === container)]
      .map(({ createdAt }) => createdAt)
      .filter((at) => !isFuture(at, now))
      .toSorted(compared)
      .at(-1) ?? NEVER;
  return [...Map.groupBy(files, ({ container }) => container)].flatMap(([container, those]) => {
    const after = latest(container);
    const births = those.map((file) => file.bornAt);
    const [first] = births.filter((at) => at > after && !isFuture(at, now)).toSorted(compared);
    return first === undefined ? [] : [{ uid, container, at: first }];
  });
}

const isFuture = (at: Instant, now: Instant): boolean => at > plus(now, CLOCK_GRAIN);
const podOf = ({ podUid, metadataUid }: Sandbox): PodUid => (podUid === "" ? metadataUid : podUid);
