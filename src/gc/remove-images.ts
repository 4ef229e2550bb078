/** Removes images by a plan: lists the node before each removal, removes, verifies, measures, and stops by the rules of policy/space.ts. */

import { failureCode, messageOf, wasUnanswered } from "../model/errors.ts";
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
import type { RuntimeReader } from "../model/ports.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import { duration, type Instant } from "../model/time.ts";
import { larger } from "../model/values.ts";
import type { Facts } from "../policy/facts.ts";
import { changed, isRecreated, type Recheck } from "../policy/image/judge.ts";
import { distinctImages } from "../policy/image/reference.ts";
import { layersOf } from "../policy/layers.ts";
import { forgetImages, recallImage } from "../policy/remember.ts";
import {
  gaveNothing,
  isTelling,
  type StopRule,
  type Streak,
  streakAfter,
  type Verdict,
} from "../policy/space.ts";
import { noRoomWords } from "../report/reasons.ts";
import { UNANSWERED_MAX } from "./calls.ts";
import { Meter, type MeterPorts } from "./meter.ts";
import type { Engine } from "./ports.ts";

/** How long the pass looks at what others write. */
const LOOK_MS = 2_000;

export interface ImageExecution
  extends MeterPorts, Pick<Engine, "memory" | "passes" | "policy" | "hold"> {
  readonly runtime: Pick<RuntimeReader, "imageStatus">;
  readonly writer: Pick<Engine["writer"], "removeImage">;
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
  readonly #items: ImageItem[] = [];
  /** Those to announce. */
  readonly #ghosts: Image[] = [];
  readonly #gone = new Set<ImageId>();
  /** The node as last looked at. */
  #node: Snapshot;
  /** What its candidates are judged by, and what its images take at least: made when needed. */
  #recheck: Recheck | null = null;
  #storeBytesMin: bigint | null = null;
  #estimatedBytes = 0n;
  /** Reported sizes of what was removed for the targets. */
  readonly #sizes: bigint[] = [];
  /** Removals in a row without an answer, on which the runtime may still be working. */
  #unanswered = 0;
  #error: string | null = null;
  #nothingFreed: NothingFreed | null = null;

  constructor(execution: ImageExecution) {
    const { plan, facts, policy } = execution;
    this.#execution = execution;
    this.#node = facts.snapshot;
    this.#rule = policy.stopRule(plan);
    this.#meter = new Meter(execution, plan.targets, facts.snapshot);
  }

  get #streak(): Streak | null {
    return this.#execution.passes.streaks.get(this.#meter.stores[0]?.device ?? "") ?? null;
  }

  set #streak(streak: Streak | null) {
    this.#execution.passes.streaks.set(this.#meter.stores[0]?.device ?? "", streak);
  }

  async run(): Promise<ImageEnd> {
    const { plan, stop } = this.#execution;
    if (plan.blocks.length > 0 && plan.candidates.length === 0) return blockedEnd(plan);
    if (plan.candidates.length === 0 && plan.targets.length === 0) return "nothing-to-do";
    try {
      await this.#meter.read();
      for (const candidate of plan.candidates) {
        const end = (await this.#endBefore(candidate)) ?? (await this.#try(candidate));
        if (end !== null) return end;
      }
      return (await this.#endIfNothingFreed()) ?? (await this.#endOfAll());
    } catch (thrown) {
      this.#error = messageOf(thrown);
      return stop.aborted ? "stopped" : "observation-failed";
    }
  }

  /** Looks at the node and its disks; `null` if the candidate's turn has come. */
  async #endBefore(candidate: ImageCandidate): Promise<ImageEnd | null> {
    const { stop, look } = this.#execution;
    const nothingFreed = await this.#endIfNothingFreed();
    if (nothingFreed !== null) return nothingFreed;
    const isForTarget = !isForAge(candidate);
    if (isForTarget && this.#endsOnAgeErrors()) return "age-removal-errors";
    // Removing containers, or the image before, may have been enough.
    if (isForTarget && this.#verdict() === "reached") return "target-reached";
    if (stop.aborted) return "stopped";
    this.#see(await look());
    if (stop.aborted) return "stopped";
    await this.#meter.read();
    const { pathWithoutRoom } = this.#meter;
    if (pathWithoutRoom !== null) {
      this.#error = noRoomWords(pathWithoutRoom);
      return "no-room";
    }
    const end = isForTarget ? await this.#endByDisk() : null;
    return end ?? (stop.aborted ? "stopped" : null);
  }

  #see(node: Snapshot): void {
    if (node !== this.#node) [this.#recheck, this.#storeBytesMin] = [null, null];
    this.#node = node;
  }

  /** Removes a candidate, unless something keeps it now; `null` to go on with the next. */
  async #try(candidate: ImageCandidate): Promise<ImageEnd | null> {
    const { done, now, timer } = this.#execution;
    const keep = this.#keepReason(candidate);
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
    const { image, estimateBytes: estimatedBytes } = candidate;
    const { id, sizeBytes } = image;
    const before = this.#meter.moment;
    const removed = await removeImage(this.#execution, id);
    this.#unanswered = removed.isUnanswered ? this.#unanswered + 1 : 0;
    if (removed.kind !== "gone") return this.#notRemoved(image, removed);
    passes.removed(id);
    policy.imageRemoved(id);
    this.#gone.add(id);
    this.#estimatedBytes += estimatedBytes;
    if (this.#storeBytesMin !== null) this.#storeBytesMin -= sizeBytes;
    if (!isForAge(candidate)) this.#sizes.push(sizeBytes);
    const answer = { kind: "removed", reportedBytes: sizeBytes } as const;
    try {
      await this.#meter.read();
    } catch (thrown) {
      // What the runtime answered is recorded in any case.
      this.#error = messageOf(thrown);
      return { ...answer, measuredBytes: 0n };
    }
    const gainedBytes = this.#meter.moment.freeBytes - before.freeBytes;
    this.#streak = streakAfter(this.#streak, { sizeBytes, estimatedBytes, gainedBytes, before });
    if (this.#streak === null) for (const { device } of this.#meter.stores) passes.gaveBack(device);
    const { availableAfter: availableBytes } = this.#meter.totals();
    return { ...answer, measuredBytes: gainedBytes, availableBytes };
  }

  #notRemoved(image: Image, { kind, failure, error }: ImageRemoved): ImageResult {
    const { passes } = this.#execution;
    if (kind === "busy")
      return { kind: "skipped", reason: changed("another removal of it is in progress") };
    passes.notRemoved(image.id);
    if (kind === "ghost") {
      if (passes.isSecondGhost(image.id)) this.#ghosts.push(image);
      return { kind: "ghost" };
    }
    this.#error = error;
    // Further requests would remove more than needed.
    if (this.#unanswered >= UNANSWERED_MAX)
      this.#error ??= `${this.#unanswered} removals in a row got no answer, and the runtime may still be working on them; the rest is left to the next pass`;
    if (failure === null)
      return { kind: "removed", reportedBytes: image.sizeBytes, measuredBytes: 0n };
    return { kind: "failed", message: messageOf(failure), code: failureCode(failure) };
  }

  /** Why it is kept after all, by the node as it is now and the newest records; `null`: it may be removed. */
  #keepReason(candidate: ImageCandidate): ImageKeepReason | null {
    const { facts, memory, policy, hold } = this.#execution;
    if (hold().kind !== "none") return { kind: "blocked", block: "on-hold" };
    this.#recheck ??= policy.recheckImages({
      ...facts,
      snapshot: this.#node,
      hold: { kind: "none" },
    });
    // Every list counts: a record ends with the first one that lacks its image.
    const isAnother = isRecreated(candidate, facts.ledger, memory.current());
    return (
      this.#recheck(candidate, this.#gone) ??
      (isAnother ? changed("it was removed and created again") : null)
    );
  }

  #verdict(isEnd = false): Verdict {
    return this.#rule.verdict({
      readings: this.#meter.readings,
      storeBytes: this.#storeBytes(),
      estimatedBytes: this.#estimatedBytes,
      sizes: this.#sizes,
      isEnd,
    });
  }

  /** For a budget, added up again only for new lists, or where it may be reached: it takes 6 ms with 10,000 images. */
  #storeBytes(): bigint {
    const { plan, facts } = this.#execution;
    const budget = plan.targets.find((target) => target.kind === "store-bytes");
    if (budget === undefined) return 0n;
    if (this.#storeBytesMin === null || this.#storeBytesMin <= budget.maximumBytes) {
      const { images } = this.#node;
      const left = distinctImages(images, "any").filter(({ id }) => !this.#gone.has(id));
      this.#storeBytesMin = layersOf(images, facts.ledger).sizeOf(left);
    }
    return this.#storeBytesMin;
  }

  /** Whether the targets are reached, or by the estimates should be; `null` to go on. */
  async #endByDisk(isEnd = false): Promise<ImageEnd | null> {
    const verdict = this.#verdict(isEnd);
    if (verdict === "go-on") return null;
    const isReached = () => this.#verdict(isEnd) === "reached";
    if (verdict === "estimated") await this.#wait(isReached);
    return isReached() ? "target-reached" : "estimated";
  }

  #endsOnAgeErrors(): boolean {
    const ofAge = this.#items.filter(({ candidate }) => isForAge(candidate));
    return this.#rule.endsOnAgeErrors && ofAge.some(({ result }) => result.kind === "failed");
  }

  async #endOfAll(): Promise<ImageEnd> {
    const { plan } = this.#execution;
    if (this.#endsOnAgeErrors()) return "age-removal-errors";
    if (plan.blocks.length > 0) return blockedEnd(plan);
    if (plan.targets.length > 0) return (await this.#endByDisk(true)) ?? "candidates-exhausted";
    if (this.#items.some(({ result }) => isFailed(result))) return "candidates-exhausted";
    return this.#items.length > 0 ? "target-reached" : "nothing-to-do";
  }

  /** Removals in a row that gave nothing back, though the pass waited and looked at what others write. */
  async #endIfNothingFreed(): Promise<ImageEnd | null> {
    const { passes, timer, endWaits, stop, facts } = this.#execution;
    const streak = this.#streak;
    if (!this.#rule.endsIfNothingFreed || !isTelling(streak)) return null;
    await this.#wait(() => !gaveNothing(streak, this.#meter.moment));
    const waited = this.#meter.moment;
    if (gaveNothing(streak, waited)) {
      await timer.sleep(LOOK_MS, stop);
      await this.#meter.read();
    }
    // An aborted look proves nothing; the next pass looks again before it removes anything.
    if (stop.aborted || endWaits.aborted) return null;
    this.#streak = null;
    if (!gaveNothing(streak, waited, this.#meter.moment)) return null;
    const { stores, readings } = this.#meter;
    const { imageGcPeriod } = facts.limits.ledger;
    for (const { device } of stores)
      passes.gaveNothing(device, readings.get(device)?.availableBytes ?? 0n, imageGcPeriod);
    const { removals, estimatedBytes, since } = streak;
    const gainedBytes = waited.freeBytes - since.freeBytes;
    const filesystem = stores[0]?.path ?? "";
    this.#nothingFreed = { filesystem, removals, estimatedBytes, gainedBytes };
    return "nothing-freed";
  }

  async #wait(isEnough: () => boolean): Promise<void> {
    const { passes, endWaits } = this.#execution;
    if (!passes.mayWait()) return;
    if (await this.#meter.waitForSpace(isEnough, endWaits)) passes.waitedInVain();
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

const isForAge = ({ triggers }: ImageCandidate): boolean =>
  triggers.some(({ kind }) => kind === "age");

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

function blockedEnd(plan: ImagePlan): ImageEnd {
  const kinds = new Set(plan.blocks.map(({ kind }) => kind));
  if (kinds.has("invalid-capacity")) return "invalid-capacity";
  const end = kinds.has("nothing-freed") ? "nothing-freed" : "futile";
  return [...kinds].every((kind) => kind === end || kind === "futile") ? end : "blocked";
}

// One removal

interface ImageRemoved {
  /** `busy`: another removal of it is in progress. `unseen`: what came of it could not be read. */
  readonly kind: "gone" | "ghost" | "busy" | "failed" | "unseen";
  /** The error of the removal; `null` if it succeeded. */
  readonly failure: unknown;
  readonly isUnanswered: boolean;
  /** Why the pass ends; `null`: it goes on. */
  readonly error: string | null;
}

/**
 * Removes one image. Never rejects, and never ends early: a removal in flight is finished.
 * 1. Its ledger record ends before the call: an image that comes back before the next observation must not count as the old
 *    one, even if this process ends before the runtime answers.
 * 2. The answer proves nothing either way; `ImageStatus` of the ID does. If the image no longer exists, it was removed, but
 *    for a runtime without space: CRI-O loses the image then and keeps its layers.
 * 3. Success, but the image still exists: a ghost. crigc tries no other name of it: CRI-O removes none of a read-only store
 *    by one, and would then list the image twice.
 * 4. Error, and the image still exists: failed, or busy if somebody else is removing it. The record is restored, unless no
 *    answer came: the runtime may still remove it, and what is pulled then is new.
 * 5. Both calls are refused: failed. A corrupt image, for which a runtime does neither, must not keep the others.
 * 6. If `ImageStatus` fails in another way, the result is unknown, and the pass ends.
 */
async function removeImage(
  { memory, writer, runtime }: Pick<ImageExecution, "memory" | "writer" | "runtime">,
  id: ImageId,
): Promise<ImageRemoved> {
  const forget = (): void => memory.replace(forgetImages(memory.current(), [id]));
  const before = memory.current().images.get(id);
  forget();
  const failure: unknown = await writer.removeImage(id).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  const removed = await verified(runtime, id, failure);
  const hasStayed = ["ghost", "failed"].includes(removed.kind) && !removed.isUnanswered;
  // An observation may have happened while the answer was pending.
  if (!hasStayed) forget();
  else if (before !== undefined) memory.replace(recallImage(memory.current(), id, before));
  return removed;
}

async function verified(
  runtime: ImageExecution["runtime"],
  id: ImageId,
  failure: unknown,
): Promise<ImageRemoved> {
  const isUnanswered = wasUnanswered(failure);
  const ended = (kind: ImageRemoved["kind"]) => ({ kind, failure, isUnanswered, error: null });
  if (isForWantOfSpace(failure)) return { ...ended("failed"), error: messageOf(failure) };
  try {
    const isThere = (await runtime.imageStatus(id, new AbortController().signal)) !== null;
    if (!isThere) return ended("gone");
    if (failure === null) return ended("ghost");
    return ended(failureCode(failure) === "busy" ? "busy" : "failed");
  } catch (thrown) {
    if (failure !== null && failureCode(thrown) === "failed") return ended("failed");
    const isSilent = isUnanswered || failureCode(thrown) === "deadline";
    return { ...ended("unseen"), isUnanswered: isSilent, error: messageOf(thrown) };
  }
}

/** As the kernel words it, which runtimes pass on. */
const isForWantOfSpace = (failure: unknown): boolean =>
  failure !== null && /no space left on device/i.test(messageOf(failure));
