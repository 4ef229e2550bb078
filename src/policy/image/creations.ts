/** Containers that are being created: which there are, what is recorded of them, and which of them hold up removal. */
import { type CreationId, creationId, type PodUid, type SandboxId } from "../../model/ids.ts";
import type {
  ContainerCreation,
  ContainerMark,
  CreationRecord,
  Ledger,
  MarkReading,
} from "../../model/ledger.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { CreationReading, Sandbox } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  type Instant,
  instant,
  type ObservedTime,
  plus,
  seconds,
  watchedSince,
} from "../../model/time.ts";
import { ageNow } from "../age-clock.ts";
import { sameOr } from "../by-object.ts";
import type { Listed } from "../container/ownership.ts";
import type { CreationPatience, Facts } from "../facts.ts";

/** A slow disk took 131 s for a container; a creation that fails again and again would otherwise never end. */
const CREATION_MAX = seconds(150);
/** Without marks, a new sandbox counts: on a fast disk it is without a container for 1.2 s at most. */
const NEW_SANDBOX_MAX = seconds(10);
/** The wall clock is read in whole milliseconds, and files get the time of the kernel's last tick. */
const CLOCK_GRAIN = seconds(0.01);

/** The latest times in the runtime's lists, by which a mark is new. A time in the future does not count. */
export class ListedTimes {
  readonly #now: Instant;
  readonly #ready = new Map<PodUid, Sandbox>();
  readonly #newest = new Map<CreationId, Instant>();
  readonly #populated = new Set<SandboxId>();
  readonly #sandboxes: readonly Sandbox[];

  constructor({ sandboxes, containers }: Listed, now: Instant) {
    this.#now = now;
    this.#sandboxes = sandboxes.filter(({ state }) => state === "ready");
    for (const sandbox of this.#sandboxes) {
      const other = this.#ready.get(podOf(sandbox));
      if (other === undefined || other.createdAt < sandbox.createdAt)
        this.#ready.set(podOf(sandbox), sandbox);
    }
    const ready = new Set(this.#sandboxes.map(({ id }) => id));
    for (const container of containers) {
      if (!ready.has(container.sandboxId)) continue;
      this.#populated.add(container.sandboxId);
      const id = creationId(container);
      const at = this.#counted(container.createdAt);
      if (at > (this.#newest.get(id) ?? NEVER)) this.#newest.set(id, at);
    }
  }

  /** Pods with a ready sandbox. */
  pods(): readonly PodUid[] {
    return [...this.#ready.keys()];
  }

  /** The sandbox in which the marked container is being created; `null`: it is listed, or will not be created. */
  sandboxFor({ podUid, name, at }: ContainerMark): Sandbox | null {
    const sandbox = this.#ready.get(podUid);
    if (sandbox === undefined || at <= this.#counted(sandbox.createdAt)) return null;
    return at > this.listedAt({ sandboxId: sandbox.id, name }) ? sandbox : null;
  }

  /** When the newest listed container of this name was created. */
  listedAt(of: Pick<ContainerCreation, "sandboxId" | "name">): Instant {
    return this.#newest.get(creationId(of)) ?? NEVER;
  }

  /** Ready sandboxes without a container. */
  empty(): readonly Sandbox[] {
    return this.#sandboxes.filter(({ id }) => !this.#populated.has(id));
  }

  #counted(at: Instant): Instant {
    return isFuture(at, this.#now) ? NEVER : at;
  }
}

const NEVER = instant(0n);
const isFuture = (at: Instant, now: Instant): boolean => at > plus(now, CLOCK_GRAIN);
const podOf = ({ podUid, metadataUid }: Sandbox): PodUid => (podUid === "" ? metadataUid : podUid);

/** The creations that the marks show; `listed` is older than they are. */
export function creationsOf(
  listed: ListedTimes,
  { marks, unreadable }: MarkReading,
  clocks: CreationReading["clocks"],
): CreationReading {
  const marked = marks.flatMap((mark): readonly ContainerCreation[] => {
    const sandbox = isFuture(mark.at, clocks.wall) ? null : listed.sandboxFor(mark);
    const { podUid, name, at } = mark;
    return sandbox === null ? [] : [{ podUid, name, sandboxId: sandbox.id, markedAt: at }];
  });
  const unmarked = listed.empty().flatMap((sandbox): readonly ContainerCreation[] => {
    const podUid = podOf(sandbox);
    if (!unreadable.has(podUid)) return [];
    return [{ podUid, name: "", sandboxId: sandbox.id, markedAt: sandbox.createdAt }];
  });
  return { clocks, inProgress: [...marked, ...unmarked] };
}

/**
 * The records after these lists. An unbroken row of marks counts from its first one, and ends once a container is
 * listed that is newer than it. New sandboxes are recorded by every observation, so that each counts from when crigc
 * first saw it. `creations`: `null` if the marks were not read.
 */
export function rememberCreations(
  ledger: Pick<Ledger, "creations" | "sandboxImages">,
  seen: Listed & { readonly now: Instant; readonly creations: CreationReading | null },
  watched: ObservedTime,
): Ledger["creations"] {
  const before = ledger.creations;
  const inProgress = seen.creations?.inProgress ?? null;
  const isNew = ({ id, state }: Sandbox): boolean =>
    state === "ready" && !ledger.sandboxImages.has(id);
  // Nearly always nothing is being created, and no container has to be looked at.
  if (before.size === 0 && (inProgress ?? []).length === 0 && !seen.sandboxes.some(isNew))
    return before;
  const listed = new ListedTimes(seen, seen.now);
  const after = new Map<CreationId, CreationRecord>();
  for (const sandbox of listed.empty()) {
    const its = { sandboxId: sandbox.id, name: "", markedAt: sandbox.createdAt };
    const known = before.get(creationId(its));
    if (known !== undefined) after.set(creationId(its), known);
    else if (isNew(sandbox)) after.set(creationId(its), recordOf(its, watched));
  }
  const marked = inProgress ?? [...before.values()];
  for (const { sandboxId, name, markedAt } of marked) {
    if (name === "") continue;
    const key = creationId({ sandboxId, name });
    const known = before.get(key);
    const isSame = known !== undefined && listed.listedAt(known) < known.markedAt;
    if (isSame) after.set(key, known);
    else if (inProgress !== null) after.set(key, recordOf({ sandboxId, name, markedAt }, watched));
  }
  return sameOr(before, after);
}

const recordOf = (
  creation: Pick<CreationRecord, "sandboxId" | "name" | "markedAt">,
  firstSeenWatched: ObservedTime,
): CreationRecord => ({ ...creation, firstSeenWatched, awaited: false });

/** Of a pass that has not waited yet, and of a plan. */
export const FULL_PATIENCE: CreationPatience = { isOver: false, own: null };

/** The block by containers that are being created; empty if they hold up nothing. */
export function creationBlock(
  facts: Pick<Facts, "ledger" | "creationPatience"> & {
    readonly snapshot: Pick<Facts["snapshot"], "creations">;
  },
): readonly ImageBlock[] {
  const { ledger, snapshot } = facts;
  const { creations } = snapshot;
  const { isOver, own } = facts.creationPatience;
  if (creations === null || isOver) return [];
  const now = ageNow(ledger, creations.clocks);
  const holding = creations.inProgress.flatMap((creation) => {
    const id = creationId(creation);
    const record = ledger.creations.get(id);
    const awaited = own !== null && record?.awaited === true && !own.has(id);
    if (awaited) return [];
    const left = timeLeft(creation, record, now);
    return left > 0n ? [{ creation, left }] : [];
  });
  if (holding.length === 0) return [];
  const remaining = holding.reduce((most, { left }) => (left > most ? left : most), duration(0n));
  const containers = holding.map(({ creation }) => creation);
  return [
    {
      kind: "pod-starting",
      containers: containers.map(({ sandboxId, name }) => ({ sandboxId, name })),
      remaining,
      until: plus(creations.clocks.wall, remaining),
    },
  ];
}

function timeLeft(
  { name }: ContainerCreation,
  record: CreationRecord | undefined,
  now: ObservedTime,
): Duration {
  const most = name === "" ? NEW_SANDBOX_MAX : CREATION_MAX;
  // Of sandboxes, those without a record were known before they were empty.
  if (record === undefined) return name === "" ? duration(0n) : most;
  return duration(most - watchedSince(now, record.firstSeenWatched));
}

/** The ledger once a pass under pressure waits for these. */
export function rememberAwaited(ledger: Ledger, ids: Iterable<CreationId>): Ledger {
  const creations = new Map(ledger.creations);
  let isNew = false;
  for (const id of ids) {
    const record = creations.get(id);
    if (record === undefined || record.awaited) continue;
    creations.set(id, { ...record, awaited: true });
    isNew = true;
  }
  return isNew ? { ...ledger, creations } : ledger;
}
