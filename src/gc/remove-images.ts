/** Removes images by a plan: lists the node before each removal, removes, verifies, measures, and stops by the rules of policy/space.ts. */

import { runtimeOf } from "../cri/runtimes.ts";
import { failureCode, messageOf } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import {
  type ImageEnd,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  isFailed,
  type NothingFreed,
  reportedOf,
} from "../model/pass.ts";
import type { ImageCandidate, ImagePlan } from "../model/plan.ts";
import type { CommitFilesystem, DiskReader, RuntimeReader, Timer } from "../model/ports.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { Filesystem, Image, Snapshot } from "../model/snapshot.ts";
import { duration, type Instant } from "../model/time.ts";
import { larger } from "../model/values.ts";
import type { Facts } from "../policy/facts.ts";
import { changed, isRecreated, type Recheck } from "../policy/image/judge.ts";
import { distinctImages } from "../policy/image/reference.ts";
import { layersOf } from "../policy/layers.ts";
import {
  gaveNothing,
  isTelling,
  lacksRoom,
  type StopRule,
  type Streak,
  streakAfter,
  type Verdict,
} from "../policy/space.ts";
import { noRoomWords } from "../report/reasons.ts";
import { UNANSWERED_MAX } from "./calls.ts";
import { Meter, type Place } from "./meter.ts";
import type { Engine } from "./ports.ts";
import { type ImageRemoved, isForWantOfSpace, removeImage } from "./remove-image.ts";

/** How long the pass looks at what others write. */
const LOOK_MS = 2_000;

export interface ImageExecution extends Pick<Engine, "memory" | "passes" | "policy" | "hold"> {
  readonly runtime: Pick<RuntimeReader, "imageStatus">;
  readonly writer: Pick<Engine["writer"], "removeImage">;
  readonly disk: Pick<DiskReader, "measure">;
  readonly commit: CommitFilesystem;
  readonly timer: Timer;
  readonly plan: ImagePlan;
  /** What the plan was decided from. */
  readonly facts: Facts;
  readonly now: () => Instant;
  /** The node as it is now, once no pod is starting for which the pass waits. Rejects if a list fails. */
  readonly look: () => Promise<Snapshot>;
  /** On abort, the removal in flight is finished. */
  readonly stop: AbortSignal;
  /** Ends waits for space. */
  readonly endWaits: AbortSignal;
  /** Called with each item as soon as it is done. */
  readonly done: (item: ImageItem) => void;
}

/** Never rejects: failures are in the outcome. */
export async function removeImages(execution: ImageExecution): Promise<ImageOutcome> {
  const removals = new ImageRemovals(execution);
  return removals.outcome(await removals.run());
}

class ImageRemovals {
  readonly #execution: ImageExecution;
  readonly #rule: StopRule;
  readonly #meter: Meter;
  /** The disks on which removals must free something: those with a target, else those that hold images. */
  readonly #stores: readonly Place[];
  readonly #items: ImageItem[] = [];
  /** Those to announce. */
  readonly #ghosts: Image[] = [];
  readonly #gone = new Set<ImageId>();
  #judged: { readonly snapshot: Snapshot; readonly recheck: Recheck } | null = null;
  #estimatedBytes = 0n;
  /** What the images of these lists take at least: a removal frees at most the size of its image. */
  #store: { readonly node: Snapshot; leastBytes: bigint } | null = null;
  /** Reported sizes of what was removed for the targets. */
  readonly #sizes: bigint[] = [];
  /** Removals in a row without an answer, on which the runtime may still be working. */
  #unanswered = 0;
  #error: string | null = null;
  #nothingFreed: NothingFreed | null = null;

  constructor(execution: ImageExecution) {
    const { plan, facts, policy } = execution;
    this.#execution = execution;
    this.#rule = policy.stopRule(plan);
    const wanted = plan.targets.filter((target) => "device" in target);
    this.#stores =
      wanted.length > 0
        ? wanted.filter(({ device }, at) => wanted.findIndex((it) => it.device === device) === at)
        : facts.snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
    const { targets } = plan;
    const rooms = roomsOf(facts.snapshot);
    this.#meter = new Meter({ ...execution, stores: this.#stores, targets, rooms });
  }

  get #streak(): Streak | null {
    return this.#execution.passes.streaks.get(this.#stores[0]?.device ?? "") ?? null;
  }

  set #streak(streak: Streak | null) {
    this.#execution.passes.streaks.set(this.#stores[0]?.device ?? "", streak);
  }

  async run(): Promise<ImageEnd> {
    const { plan, stop } = this.#execution;
    if (plan.blocks.length > 0 && plan.candidates.length === 0) return blockedEnd(plan);
    if (plan.candidates.length === 0 && plan.targets.length === 0) return "nothing-to-do";
    try {
      await this.#meter.read();
      // Removing containers may have been enough.
      if (this.#needsNone()) return "target-reached";
      for (const candidate of plan.candidates) {
        const end = await this.#step(candidate);
        if (end !== null) return end;
      }
      return (await this.#endIfNothingFreed()) ?? (await this.#endOfAll());
    } catch (thrown) {
      this.#error = messageOf(thrown);
      return stop.aborted ? "stopped" : "observation-failed";
    }
  }

  /** One candidate; `null` to go on with the next. */
  async #step(candidate: ImageCandidate): Promise<ImageEnd | null> {
    const { stop, look, done, now, timer } = this.#execution;
    const nothingFreed = await this.#endIfNothingFreed();
    if (nothingFreed !== null) return nothingFreed;
    if (stop.aborted) return "stopped";
    const node = await look();
    if (stop.aborted) return "stopped";
    await this.#meter.read();
    if (this.#hasNoRoom()) return "no-room";
    const forAge = candidate.triggers.some(({ kind }) => kind === "age");
    if (!forAge && this.#endsOnAgeErrors()) return "age-removal-errors";
    const end = forAge ? null : await this.#endByDisk(node);
    if (end !== null) return end;
    if (stop.aborted) return "stopped";
    const keep = this.#keepReason(candidate, node);
    const [startedAt, startNs] = [now(), timer.monotonicNs()];
    const result: ImageResult =
      keep === null ? await this.#remove(candidate) : { kind: "skipped", reason: keep };
    const item: ImageItem = {
      candidate,
      // The history names only the first.
      trigger: candidate.triggers[0] ?? { kind: "space" },
      result,
      startedAt,
      took: duration(timer.monotonicNs() - startNs),
    };
    this.#items.push(item);
    done(item);
    if (this.#error !== null)
      return isForWantOfSpace(this.#error) ? "no-room" : "observation-failed";
    // What blocks one image blocks the rest of the pass: a hold that began, a use that could not be read.
    return keep?.kind === "blocked" ? "blocked" : null;
  }

  async #remove(candidate: ImageCandidate): Promise<ImageResult> {
    const { passes, policy } = this.#execution;
    const { image, estimateBytes } = candidate;
    const { freeBytes: freeBefore, ns: startNs } = this.#meter;
    const removed = await removeImage(this.#execution, candidate);
    this.#unanswered = removed.isUnanswered ? this.#unanswered + 1 : 0;
    if (removed.kind !== "gone") return this.#notRemoved(candidate, removed);
    passes.removed(image.id);
    policy.imageRemoved(image.id);
    this.#gone.add(image.id);
    this.#estimatedBytes += estimateBytes;
    if (this.#store !== null) this.#store.leastBytes -= image.sizeBytes;
    if (!candidate.triggers.some(({ kind }) => kind === "age")) this.#sizes.push(image.sizeBytes);
    // What the runtime answered is recorded in any case.
    const isMeasured = await this.#meter.read().then(
      () => true,
      (thrown: unknown) => {
        this.#error = messageOf(thrown);
        return false;
      },
    );
    const gainedBytes = isMeasured ? this.#meter.freeBytes - freeBefore : 0n;
    this.#streak = streakAfter(this.#streak, {
      sizeBytes: image.sizeBytes,
      estimatedBytes: estimateBytes,
      gainedBytes,
      freeBefore,
      startNs,
    });
    if (isMeasured && this.#streak === null)
      for (const { device } of this.#stores) passes.gaveBack(device);
    const { availableAfter: availableBytes } = this.#meter.totals();
    const reportedBytes = image.sizeBytes;
    return { kind: "removed", reportedBytes, measuredBytes: gainedBytes, availableBytes };
  }

  #notRemoved({ image }: ImageCandidate, removed: ImageRemoved): ImageResult {
    const { passes } = this.#execution;
    if (removed.kind === "busy")
      return { kind: "skipped", reason: changed("another removal of it is in progress") };
    passes.notRemoved(image.id);
    if (removed.kind === "ghost") {
      if (passes.isSecondGhost(image.id)) this.#ghosts.push(image);
      return { kind: "ghost" };
    }
    if (removed.kind === "unseen") this.#error = removed.message;
    if (isForWantOfSpace(removed.failure)) this.#error = messageOf(removed.failure);
    // Further requests would remove more than needed.
    if (this.#unanswered >= UNANSWERED_MAX)
      this.#error ??= `${this.#unanswered} removals in a row got no answer, and the runtime may still be working on them; the rest is left to the next pass`;
    if (removed.failure === null)
      return { kind: "removed", reportedBytes: image.sizeBytes, measuredBytes: 0n };
    return {
      kind: "failed",
      message: messageOf(removed.failure),
      code: failureCode(removed.failure),
    };
  }

  /** Why it is kept after all, by the node as it is now and the newest records; `null`: it may be removed. */
  #keepReason(candidate: ImageCandidate, node: Snapshot): ImageKeepReason | null {
    const { facts, memory, policy, hold } = this.#execution;
    if (hold().kind !== "none") return { kind: "blocked", block: "on-hold" };
    if (this.#judged?.snapshot !== node) {
      const now = {
        ...facts,
        snapshot: node,
        hold: { kind: "none" } as const,
      };
      this.#judged = { snapshot: node, recheck: policy.recheckImages(now) };
    }
    // Every list counts: a record ends with the first one that lacks its image.
    const isAnother = isRecreated(candidate, facts.ledger, memory.current());
    return (
      this.#judged.recheck(candidate, this.#gone) ??
      (isAnother ? changed("it was removed and created again") : null)
    );
  }

  #verdict(node: Snapshot, isEnd = false): Verdict {
    return this.#rule.verdict({
      readings: this.#meter.readings,
      storeBytes: this.#storeBytes(node),
      estimatedBytes: this.#estimatedBytes,
      sizes: this.#sizes,
      isEnd,
    });
  }

  /** Whether the targets are reached before the first removal for them. */
  #needsNone(): boolean {
    const { plan, facts } = this.#execution;
    const isForAge = plan.candidates[0]?.triggers.some(({ kind }) => kind === "age") === true;
    return plan.targets.length > 0 && !isForAge && this.#verdict(facts.snapshot) === "reached";
  }

  /** For a budget, added up again only for new lists, or where it may be reached: it takes 6 ms with 10,000 images. */
  #storeBytes(node: Snapshot): bigint {
    const { plan, facts } = this.#execution;
    const budget = plan.targets.find((target) => target.kind === "store-bytes");
    if (budget === undefined) return 0n;
    if (this.#store?.node !== node || this.#store.leastBytes <= budget.maximumBytes) {
      const left = distinctImages(node.images, "any").filter(({ id }) => !this.#gone.has(id));
      this.#store = { node, leastBytes: layersOf(node.images, facts.ledger).sizeOf(left) };
    }
    return this.#store.leastBytes;
  }

  /** Whether the targets are reached, or by the estimates should be; `null` to go on. */
  async #endByDisk(node: Snapshot, isEnd = false): Promise<ImageEnd | null> {
    const verdict = this.#verdict(node, isEnd);
    if (verdict === "reached") return "target-reached";
    if (verdict === "go-on") return null;
    await this.#wait(() => this.#verdict(node, isEnd) === "reached");
    return this.#verdict(node, isEnd) === "reached" ? "target-reached" : "estimated";
  }

  #endsOnAgeErrors(): boolean {
    const ofAge = this.#items.filter(({ trigger }) => trigger.kind === "age");
    return this.#rule.endsOnAgeErrors && ofAge.some(({ result }) => result.kind === "failed");
  }

  async #endOfAll(): Promise<ImageEnd> {
    const { plan, facts } = this.#execution;
    if (this.#endsOnAgeErrors()) return "age-removal-errors";
    if (plan.blocks.length > 0) return blockedEnd(plan);
    if (plan.targets.length > 0) {
      const node = this.#judged?.snapshot ?? facts.snapshot;
      return (await this.#endByDisk(node, true)) ?? "candidates-exhausted";
    }
    if (this.#items.some(({ result }) => isFailed(result))) return "candidates-exhausted";
    return this.#items.length > 0 ? "target-reached" : "nothing-to-do";
  }

  /** Removals in a row that gave nothing back, though the pass waited and looked at what others write. */
  async #endIfNothingFreed(): Promise<ImageEnd | null> {
    const { passes, timer, endWaits, stop, facts } = this.#execution;
    const streak = this.#streak;
    if (!this.#rule.endsIfNothingFreed || !isTelling(streak)) return null;
    const gaveBack = (): boolean =>
      !gaveNothing(
        streak,
        { freeBytes: this.#meter.freeBytes, ns: this.#meter.ns },
        { writtenBytes: 0n, ns: 1n },
      );
    await this.#wait(gaveBack);
    const [freeBytes, ns] = [this.#meter.freeBytes, this.#meter.ns];
    if (!gaveBack()) {
      await timer.sleep(LOOK_MS, stop);
      await this.#meter.read();
    }
    const look = { writtenBytes: freeBytes - this.#meter.freeBytes, ns: this.#meter.ns - ns || 1n };
    // An aborted look proves nothing; the next pass looks again before it removes anything.
    if (stop.aborted || endWaits.aborted) return null;
    this.#streak = null;
    if (!gaveNothing(streak, { freeBytes, ns }, look)) return null;
    for (const { device } of this.#stores)
      passes.gaveNothing(
        device,
        this.#meter.readings.get(device)?.availableBytes ?? 0n,
        facts.limits.ledger.imageGcPeriod,
      );
    const { removals, estimatedBytes } = streak;
    const filesystem = this.#stores[0]?.path ?? "";
    this.#nothingFreed = {
      filesystem,
      removals,
      estimatedBytes,
      gainedBytes: freeBytes - streak.freeBefore,
    };
    return "nothing-freed";
  }

  async #wait(isEnough: () => boolean): Promise<void> {
    const { passes, endWaits } = this.#execution;
    if (!passes.mayWait()) return;
    if (await this.#meter.waitForSpace(isEnough, endWaits)) passes.waitedInVain();
  }

  #hasNoRoom(): boolean {
    const { readings } = this.#meter;
    const full = roomsOf(this.#execution.facts.snapshot).find((filesystem) => {
      const reading = readings.get(filesystem.device);
      return reading !== undefined && lacksRoom(filesystem, reading);
    });
    if (full !== undefined) this.#error = noRoomWords(full.path);
    return full !== undefined;
  }

  outcome(end: ImageEnd): ImageOutcome {
    const { plan, stop } = this.#execution;
    return {
      ...noImages(plan, end),
      // What was cancelled on request has not failed.
      error: stop.aborted && end === "stopped" ? null : this.#error,
      items: this.#items,
      ghosts: this.#ghosts,
      reportedFreedBytes: this.#items.reduce((sum, item) => sum + reportedOf(item), 0n),
      ...(this.#nothingFreed !== null && { nothingFreed: this.#nothingFreed }),
      ...this.#meter.totals(),
    };
  }
}

/** The outcome of a pass that has not begun to remove images. */
export function noImages(plan: ImagePlan | null, end: ImageEnd): ImageOutcome {
  const wanted = (plan?.targets ?? []).flatMap((target) =>
    "wantedBytes" in target ? [target.wantedBytes] : [],
  );
  const filesystem = plan?.usage[0]?.filesystem;
  return {
    end,
    items: [],
    wantedBytes: wanted.length === 0 ? null : wanted.reduce(larger),
    reportedFreedBytes: 0n,
    measuredFreedBytes: 0n,
    availableBefore: filesystem?.availableBytes ?? null,
    availableAfter: filesystem?.availableBytes ?? null,
    capacityBytes: filesystem?.capacityBytes ?? null,
    error: null,
    ghosts: [],
  };
}

/** Where the runtime needs room for a removal. */
const roomsOf = ({ runtime, filesystems }: Snapshot): readonly Filesystem[] =>
  runtimeOf(runtime).removalNeedsRoom
    ? filesystems.filter(({ roles }) => roles.includes("imagefs") || roles.includes("containerfs"))
    : [];

function blockedEnd(plan: ImagePlan): ImageEnd {
  const kinds = new Set(plan.blocks.map(({ kind }) => kind));
  if (kinds.has("invalid-capacity")) return "invalid-capacity";
  const end = kinds.has("nothing-freed") ? "nothing-freed" : "futile";
  return [...kinds].every((kind) => kind === end || kind === "futile") ? end : "blocked";
}
