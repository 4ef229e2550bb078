/** The kubelet's image manager: detection, order, age pass, space pass, reclaim. Quoted are functions of its `image_gc_manager.go`. */
import type { ImageId } from "../../model/ids.ts";
import type { Thresholds } from "../../model/limits.ts";
import type {
  ImageCandidate,
  ImagePlan,
  ImageTarget,
  KeptImage,
  PlanNote,
} from "../../model/plan.ts";
import type { ImageKeepReason, ImageTrigger, RemovalBlock } from "../../model/reason.ts";
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { type Duration, duration } from "../../model/time.ts";
import { compared, smaller } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import { distinctTriggers, type GoneBefore, withExpected } from "../image/images.ts";
import { blockedBy, changed, judgeImages, type Judgement, type Recheck } from "../image/judge.ts";
import { type Protection, protectionOf, type Rule } from "../image/protect.ts";
import { type Ranked, unusedFor } from "../image/rank.ts";
import { distinctImages } from "../image/reference.ts";
import { usageOf } from "../image/usage.ts";
import { selectionOf } from "../selection.ts";
import {
  type DiskJudgement,
  freeTargets,
  inodesUsedPercent,
  invalidCapacity,
  NO_STORE,
  type StopRule,
  watchesSpace,
} from "../space.ts";

/** By the uptime of the machine, which does not jump. */
interface Detected {
  readonly firstDetected: Duration;
  /** `null`: never seen in use. */
  readonly lastUsed: Duration | null;
}

type Detection = Pick<Snapshot, "clocks"> & Parameters<typeof usageOf>[0];

/** One for each process: nothing is persisted. */
export class ImageManager {
  /** When the loop of image GC began; `null`: there is none, only a single pass. */
  readonly #beganAt: Duration | null;
  #records: ReadonlyMap<ImageId, Detected>;

  constructor(beganAt: Duration | null, records: ReadonlyMap<ImageId, Detected> = new Map()) {
    this.#beganAt = beganAt;
    this.#records = records;
  }

  /** `detectImages`. */
  detect(snapshot: Detection): void {
    const { users } = usageOf(snapshot);
    const now = snapshot.clocks.uptime;
    const records = snapshot.images.map(({ id }) => {
      const { firstDetected, lastUsed } = this.#recordOf(id, now);
      return [id, { firstDetected, lastUsed: users.has(id) ? now : lastUsed }] as const;
    });
    this.#records = new Map(records);
  }

  /** `freeImage` drops the record of what it removed. */
  removed(id: ImageId): void {
    this.#records = new Map([...this.#records].filter(([other]) => other !== id));
  }

  #recordOf(id: ImageId, now: Duration): Detected {
    return this.#records.get(id) ?? { firstDetected: now, lastUsed: null };
  }

  /** `GarbageCollect`, `DeleteUnusedImages`, or a removal by hand. */
  decide(facts: Facts, before: GoneBefore): ImagePlan {
    const { snapshot, purpose } = facts;
    const judgement = judgeImages(facts, before, selectionOf(purpose));
    const isPeriodic = purpose.kind === "periodic";
    const disk = judgeDisk(snapshot, facts.limits.images);
    const targets = isPeriodic
      ? [
          ...freeTargets(snapshot, purpose.freeBytes ?? 0n),
          ...(this.#watchesSpace(facts) ? disk.targets : []),
        ]
      : everythingFor(purpose);
    const order = this.#evictionOrder(facts, judgement);
    const aged = this.#aged(order, { facts, judgement });
    // `DeleteUnusedImages` ignores the disk.
    const blocks = [...judgement.blocks, ...(isPeriodic ? disk.blocks : [])];
    return {
      purpose: purpose.kind,
      now: snapshot.clocks.wall,
      triggers: [...(aged.size > 0 ? [AGE] : []), ...distinctTriggers(targets)],
      targets,
      blocks,
      futility: [],
      usage: disk.usage,
      notes: isPeriodic ? this.#notes(facts) : [],
      ...this.#choice({ facts, judgement, order, aged, targets, blocks }),
    };
  }

  /** With a high threshold of 100 and no maximum age the loop is not started, but a maximum age may have been set since. */
  #watchesSpace({ limits }: Facts): boolean {
    return watchesSpace(limits.images) || this.#beganAt !== null;
  }

  #notes({ limits: { images } }: Facts): readonly PlanNote[] {
    const needsAgent = images.maximumAge > 0n && this.#beganAt === null;
    return [
      ...(watchesSpace(images) ? [] : [{ kind: "space-off" as const }]),
      ...(needsAgent ? [{ kind: "maximum-age-needs-agent" as const }] : []),
    ];
  }

  /** `imagesInEvictionOrder`: never used first; equal ones larger first, then by ID, where the kubelet has no order. */
  #evictionOrder({ snapshot }: Facts, judgement: Judgement): readonly Ranked[] {
    const { uptime } = snapshot.clocks;
    const records = judgement.byId();
    const ranked = distinctImages(snapshot.images, "last").flatMap((image) => {
      const record = records.get(image.id)?.record;
      return record === undefined ? [] : [{ image, record, ...this.#recordOf(image.id, uptime) }];
    });
    return ranked.toSorted(
      (one, other) =>
        compared(one.lastUsed ?? -1n, other.lastUsed ?? -1n) ||
        compared(one.firstDetected, other.firstDetected) ||
        compared(other.image.sizeBytes, one.image.sizeBytes) ||
        compared<string>(one.image.id, other.image.id),
    );
  }

  /** `freeOldImages`: none before the loop has run for one maximum age; minimum age and time of detection do not count. */
  #aged(order: readonly Ranked[], { facts, judgement }: Judged): ReadonlySet<ImageId> {
    const { maximumAge } = facts.limits.images;
    const { uptime } = facts.snapshot.clocks;
    const isOff = facts.purpose.kind !== "periodic" || maximumAge <= 0n;
    if (isOff || this.#beganAt === null || uptime - this.#beganAt <= maximumAge) return new Set();
    const old = order.filter(({ image }) => {
      const { lastUsed } = this.#recordOf(image.id, uptime);
      return lastUsed === null || uptime - lastUsed > maximumAge;
    });
    const due = old.filter(
      (subject) => protectionOf(subject, judgement.context(), []).reason === null,
    );
    return new Set(due.map(({ image }) => image.id));
  }

  /** `freeOldImages`, then `freeSpace`; an invalid capacity stops only the second. */
  #choice(choosing: Choosing): Pick<ImagePlan, "candidates" | "kept"> {
    const { facts, judgement, order, aged, targets, blocks } = choosing;
    const context = judgement.context();
    const isAgeBlocked = blocks.some(({ kind }) => kind !== "invalid-capacity");
    const triggers = blocks.length > 0 ? [] : distinctTriggers(targets);
    const forAge: ImageCandidate[] = [];
    const forSpace: ImageCandidate[] = [];
    const kept: KeptImage[] = [];
    for (const subject of order) {
      const { reason, tried } = this.#protection(subject, { facts, judgement });
      const candidate = {
        ...subject,
        unusedFor: unusedFor(subject.record, facts.ledger.totalUptime),
      };
      if (!isAgeBlocked && aged.has(subject.image.id)) {
        const { tried: triedForAge } = protectionOf(subject, context, []);
        forAge.push(candidateOf(candidate, [AGE], triedForAge));
      } else if (reason === null && triggers.length > 0) {
        forSpace.push(candidateOf(candidate, triggers, tried));
      } else {
        const why = reason ?? unprotectedReason(choosing);
        kept.push({
          image: subject.image,
          record: subject.record,
          reason: why,
          tried: reason === null ? [...tried, why.kind] : tried,
        });
      }
    }
    return { candidates: withExpected([...forAge, ...forSpace], targets), kept };
  }

  #protection(subject: Ranked, { facts, judgement }: Judged, isPlanned = false): Protection {
    const { uptime } = facts.snapshot.clocks;
    const { minimumAge } = facts.limits.images;
    const { firstDetected, lastUsed } = this.#recordOf(subject.image.id, uptime);
    const ageRules: readonly Rule[] = [
      {
        code: "just-used",
        // The pass after its removal would not have seen the use by a container that this plan removes.
        judge: ({ image }, { released }) => {
          const isReleased = isPlanned || released.has(image.id);
          const isUsed = lastUsed !== null && (isReleased ? lastUsed > uptime : lastUsed >= uptime);
          return isUsed ? { kind: "just-used" } : null;
        },
      },
      {
        code: "too-young",
        judge: () => {
          const age = duration(uptime - firstDetected);
          return age < minimumAge ? { kind: "too-young", age, minimumAge } : null;
        },
      },
    ];
    return protectionOf(subject, judgement.context(), ageRules);
  }

  /** Before each removal, as crigc does; the kubelet removes by ID whatever the names are. */
  recheck(facts: Facts): Recheck {
    const judgement = judgeImages(facts);
    const [block] = judgement.blocks;
    if (block !== undefined) return () => blockedBy(block);
    const order = this.#evictionOrder(facts, judgement);
    const listed = new Map(order.map((subject) => [subject.image.id, subject]));
    return ({ image, triggers }) => {
      const subject = listed.get(image.id);
      if (subject === undefined) return changed("it is no longer listed");
      return triggers.some(({ kind }) => kind === "age")
        ? protectionOf(subject, judgement.context(), []).reason
        : this.#protection(subject, { facts, judgement }, true).reason;
    };
  }
}

interface Judged {
  readonly facts: Facts;
  readonly judgement: Judgement;
}

interface Choosing extends Judged {
  readonly order: readonly Ranked[];
  readonly aged: ReadonlySet<ImageId>;
  readonly targets: readonly ImageTarget[];
  readonly blocks: readonly RemovalBlock[];
}

const AGE: ImageTrigger = { kind: "age" };

/** No target: every eligible image is removed, whatever removing containers freed. */
function everythingFor(purpose: Exclude<Facts["purpose"], { kind: "periodic" }>) {
  const triggers: readonly ImageTrigger[] =
    purpose.kind === "pressure"
      ? purpose.signals.map((signal) => ({ kind: "pressure", signal }))
      : [{ kind: "all-unused" }];
  return triggers.map((trigger): ImageTarget => ({ kind: "everything", trigger }));
}

/** It adds up the sizes that the runtime reports. */
const candidateOf = (
  { image, record, unusedFor: unused }: Ranked & Pick<ImageCandidate, "unusedFor">,
  triggers: readonly ImageTrigger[],
  tried: Protection["tried"],
): ImageCandidate => ({
  image,
  record,
  triggers,
  tried,
  unusedFor: unused,
  estimateBytes: image.sizeBytes,
  expected: false,
});

function unprotectedReason({ targets, aged, blocks }: Choosing): ImageKeepReason {
  const [first] = blocks;
  const isTriggered =
    targets.length + aged.size > 0 || blocks.some(({ kind }) => kind === "invalid-capacity");
  return first === undefined || !isTriggered
    ? { kind: "no-trigger" }
    : { kind: "blocked", block: first.kind };
}

/** The kubelet reads only the first image filesystem. */
function judgeDisk(
  { filesystems }: Pick<Snapshot, "filesystems">,
  limits: Thresholds,
): DiskJudgement {
  const first = filesystems.find(({ roles }) => roles.includes("imagefs"));
  if (first === undefined) return { usage: [], targets: [], blocks: [NO_STORE] };
  const { capacityBytes, availableBytes } = first;
  if (capacityBytes <= 0n) return { usage: [], targets: [], blocks: [invalidCapacity(first)] };
  return { ...spaceOf(first, smaller(availableBytes, capacityBytes), limits), blocks: [] };
}

/** In whole numbers, multiplied before they are divided, as in `GarbageCollect`. */
function spaceOf(
  filesystem: Filesystem,
  available: bigint,
  { highPercent, lowPercent }: Thresholds,
) {
  const { path, device, capacityBytes: capacity } = filesystem;
  const usedPercent = Number(100n - (100n * available) / capacity);
  const inodesUsed = inodesUsedPercent(filesystem);
  const figures = { usedPercent, inodesUsedPercent: inodesUsed, highPercent, lowPercent };
  const usage = [{ filesystem, ...figures, evictions: [] }];
  if (usedPercent < highPercent) return { usage, targets: [] };
  const availableBytes = (capacity * BigInt(100 - lowPercent)) / 100n;
  const target: ImageTarget = {
    kind: "available-bytes",
    trigger: { kind: "space" },
    device,
    path,
    availableBytes,
    wantedBytes: availableBytes - available,
    relievedBytes: (capacity * BigInt(101 - highPercent) + 99n) / 100n,
  };
  return { usage, targets: [target] };
}

/** `freeSpace`: starts from the disk as the age pass left it, adds up sizes, and compares only after a removal. */
export function stopRule({ targets }: Pick<ImagePlan, "targets">): StopRule {
  let wanted: readonly (bigint | null)[] | null = null;
  return {
    verdict: ({ readings, sizes, isEnd }) => {
      wanted ??= targets.flatMap((target) => wantedNow(target, readings));
      const freed = sizes.reduce((sum, size) => sum + size, 0n);
      const isFreed = (bytes: bigint | null): boolean => bytes !== null && freed >= bytes;
      const isAsked = wanted.length === 0 || sizes.length > 0 || isEnd;
      return isAsked && wanted.every(isFreed) ? "reached" : "go-on";
    },
    endsOnAgeErrors: true,
    endsIfNothingFreed: false,
  };
}

/** `null`: everything; empty: the disk triggers no longer. */
function wantedNow(
  target: ImageTarget,
  readings: Parameters<StopRule["verdict"]>[0]["readings"],
): readonly (bigint | null)[] {
  if (target.kind !== "available-bytes") return [null];
  const reading = readings.get(target.device);
  if (reading === undefined) return [target.wantedBytes];
  const available = smaller(reading.availableBytes, reading.capacityBytes);
  return available >= target.relievedBytes ? [] : [target.availableBytes - available];
}
