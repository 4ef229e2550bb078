/** Removes images by a plan: refreshes the lists before each removal, removes, measures, and stops as soon as enough is free. */

import { HostError, messageOf } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { ImageLimits } from "../model/limits.ts";
import {
  type ImageEnd,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  isFailed,
  reportedOf,
} from "../model/pass.ts";
import type { ImageCandidate, ImagePlan, ImageTarget } from "../model/plan.ts";
import type { DiskReader } from "../model/ports.ts";
import type { ImageTrigger } from "../model/reason.ts";
import type { Image } from "../model/snapshot.ts";
import { duration, type Instant } from "../model/time.ts";
import { changed } from "../policy/image/judge.ts";
import { childStillThere, withListed } from "../policy/layer/layer-order.ts";
import { OthersRemovals, silentWords, UNANSWERED_MAX } from "./calls.ts";
import { freshJudgement, type FreshNode, type JudgementInput } from "./fresh-view.ts";
import { Meter } from "./meter.ts";
import {
  failedResult,
  type ImageRemoved,
  lossWords,
  removeImage,
  type Removing,
  unseen,
} from "./remove-image.ts";
import { StopRule, type StopRuleInput } from "./stop-rule.ts";

/** A local filesystem answers in microseconds; after this, the lists count as old. */
const MEASURE_NS_MAX = 250_000_000n;
const MEASURE_ATTEMPTS = 3;
/** After a pause or lists of this length, a pass under pressure takes the targets of the disks as they are then. */
const RETARGET_NS = 1_000_000_000n;

export interface ImageExecution
  extends StopRuleInput, JudgementInput, Pick<Removing, "runtime" | "writer"> {
  readonly disk: Pick<DiskReader, "measure">;
  readonly now: () => Instant;
  /** The node as it is now. Rejects if a list fails. */
  readonly look: () => Promise<FreshNode>;
  /** On abort, the removal in flight is finished. */
  readonly signal: AbortSignal;
  /** For a pass under pressure: the targets as the disks are now; none ends the pass. */
  readonly retarget?: (() => Promise<readonly ImageTarget[]>) | undefined;
  /** Called with each item as soon as it is done. */
  readonly done: (item: ImageItem) => void;
  /** Called before each removal. */
  readonly starting?: (() => void) | undefined;
}

/** Never rejects: failures are in the outcome. */
export async function removeImages(execution: ImageExecution) {
  const removals = new ImageRemovals(execution);
  return removals.executed(await removals.run());
}

class ImageRemovals {
  readonly #execution: ImageExecution;
  readonly #limits: ImageLimits;
  readonly #signal: AbortSignal;
  readonly #meter: Meter;
  readonly #stopRule: StopRule;
  readonly #recheck: ReturnType<typeof freshJudgement>;
  /** Removals in a row without an answer, on which the runtime may still be working. */
  #silent = 0;
  /** Since when the pass has waited, for its next removal. */
  #idleNs = 0n;
  readonly #removing: Removing;
  readonly #items: ImageItem[] = [];
  /** Measured for the items so far. */
  #itemsBytes = 0n;
  readonly #ghosts: Image[] = [];
  readonly #removed = new Set<ImageId>();
  #error: string | null = null;

  constructor(execution: ImageExecution) {
    const { facts, timer, signal } = execution;
    const { snapshot } = facts;
    const limits = facts.limits.images;
    this.#execution = execution;
    this.#limits = limits;
    this.#signal = signal;
    this.#meter = new Meter(execution);
    this.#stopRule = new StopRule(execution, this.#meter);
    this.#recheck = freshJudgement(execution);
    const others = new OthersRemovals(timer, signal);
    this.#removing = { ...execution, info: snapshot.runtime, others };
  }

  async run(): Promise<ImageEnd> {
    const { plan } = this.#execution;
    // The kubelet removes for age before it looks at the disk, so there can be candidates although the disk's figures
    // are invalid.
    if (plan.blocks.length > 0 && plan.candidates.length === 0) return blockedEnd(plan);
    if (plan.candidates.length === 0 && plan.targets.length === 0) return "nothing-to-do";
    try {
      await this.#meter.start();
      this.#stopRule.begin();
      const aged = plan.candidates.filter(isAged);
      if (plan.blocks.length > 0) return (await this.#removeAged(aged)) ?? blockedEnd(plan);
      const rest = plan.candidates.filter((candidate) => !isAged(candidate));
      return (await this.#removeAged(aged)) ?? (await this.#removeForTargets(rest));
    } catch (thrown) {
      this.#error = messageOf(thrown);
      return this.#signal.aborted ? "stopped" : "observation-failed";
    }
  }

  async #removeAged(aged: readonly ImageCandidate[]): Promise<ImageEnd | null> {
    for (const candidate of aged) {
      const end = await this.#step(candidate, { kind: "age" });
      if (end !== null) return end;
    }
    const failed = this.#items.some((item) => item.result.kind === "failed");
    return failed && this.#limits.compat === "kubelet" ? "age-removal-errors" : null;
  }

  async #removeForTargets(candidates: readonly ImageCandidate[]): Promise<ImageEnd> {
    const { plan } = this.#execution;
    if (plan.targets.length === 0) {
      // What is over the maximum age and could not be removed is what such a pass has to reach.
      if (this.#items.some(({ result }) => isFailed(result))) return "candidates-exhausted";
      return this.#items.length > 0 ? "target-reached" : "nothing-to-do";
    }
    if (this.#limits.accounting === "reported") {
      this.#meter.countForTargets();
      if (this.#items.length > 0) this.#stopRule.begin(await this.#meter.targetsNow());
    }
    if (this.#items.length > 0) await this.#stopRule.settleAged();
    for (const candidate of candidates) {
      const reached = this.#stopRule.reached();
      if (reached !== null) return reached;
      if (this.#stopRule.isFutile(this.#items)) return "futile";
      const trigger = candidate.triggers[0] ?? { kind: "space" };
      const end = await this.#step(candidate, trigger);
      if (end !== null) return end;
    }
    return this.#stopRule.reachedAfterAll() ?? "candidates-exhausted";
  }

  /** Processes one candidate; `null` to continue with the next. */
  async #step(planned: ImageCandidate, trigger: ImageTrigger): Promise<ImageEnd | null> {
    const { timer, facts } = this.#execution;
    this.#idleNs = timer.monotonicNs();
    if (this.#signal.aborted) return "stopped";
    const { fresh, loss } = await this.#listAndMeasure();
    this.#creditLate();
    if (this.#signal.aborted) return "stopped";
    // Others may have freed space while this pass waited or listed.
    const relieved = trigger.kind === "age" ? null : this.#stopRule.reached();
    if (relieved !== null) return relieved;
    this.#error = loss;
    if (loss !== null) return "nothing-freed";
    const candidate = withListed(planned, fresh.snapshot.images, facts.ledger);
    const startedAt = this.#execution.now();
    const startNs = timer.monotonicNs();
    const keep =
      this.#recheck(candidate, fresh) ??
      childStillThere(candidate, this.#removed, fresh.snapshot.images);
    const result: ImageResult =
      keep === null ? await this.#remove(candidate, trigger) : { kind: "skipped", reason: keep };
    const took = duration(timer.monotonicNs() - startNs);
    const item: ImageItem = { candidate, trigger, result, startedAt, took };
    this.#items.push(item);
    if (result.kind === "removed") this.#itemsBytes += result.measuredBytes;
    if (result.kind === "removed") this.#removed.add(candidate.image.id);
    this.#execution.done(item);
    if (this.#error !== null) return this.#signal.aborted ? "stopped" : "observation-failed";
    // What blocks one image blocks the rest of the pass: a hold that began, a use that could not be read.
    if (keep?.kind === "blocked") return "blocked";
    return this.#stopRule.end();
  }

  /** What appeared since the last removal is its own, so that the items add up to the total. */
  #creditLate(): void {
    const bytes = this.#meter.totals().measuredFreedBytes - this.#itemsBytes;
    const at = this.#items.findLastIndex(({ result }) => result.kind === "removed");
    const last = this.#items[at];
    if (bytes <= 0n || last === undefined) return;
    this.#items[at] = { ...last, lateBytes: (last.lateBytes ?? 0n) + bytes };
    this.#itemsBytes += bytes;
  }

  /** Others wrote or deleted while this pass waited for a list or a container. */
  async #retarget(): Promise<void> {
    const { retarget, timer } = this.#execution;
    if (retarget === undefined || timer.monotonicNs() - this.#idleNs < RETARGET_NS) return;
    await this.#stopRule.retarget(await retarget());
    this.#idleNs = timer.monotonicNs();
  }

  /** Measures last, so that nothing comes between it and the removal; if it hangs, the lists are too old. */
  async #listAndMeasure() {
    const { timer, disk } = this.#execution;
    for (let attempt = 1; ; attempt += 1) {
      const fresh = await this.#execution.look();
      const startNs = timer.monotonicNs();
      await this.#retarget();
      const loss = this.#limits.compat === "none" ? await lossWords(fresh.snapshot, disk) : null;
      await this.#meter.beforeRemoval();
      if (timer.monotonicNs() - startNs < MEASURE_NS_MAX) return { fresh, loss };
      if (attempt === MEASURE_ATTEMPTS)
        throw new HostError("stat", `cannot measure the disks: ${attempt} attempts took too long`);
    }
  }

  async #remove(candidate: ImageCandidate, trigger: ImageTrigger): Promise<ImageResult> {
    this.#execution.starting?.();
    const removed = await removeImage(this.#removing, candidate, this.#signal);
    try {
      return await this.#resultOf(candidate, removed, trigger);
    } catch (thrown) {
      // The runtime's answer is recorded in any case, but its effect can no longer be measured, so the pass ends.
      this.#error = messageOf(thrown);
      return unseen(candidate.image);
    }
  }

  async #resultOf(
    candidate: ImageCandidate,
    removed: ImageRemoved,
    trigger: ImageTrigger,
  ): Promise<ImageResult> {
    const isSilent = removed.kind === "failed" && removed.isUnanswered;
    this.#silent = isSilent ? this.#silent + 1 : 0;
    switch (removed.kind) {
      case "gone":
        return await this.#stopRule.removed(candidate, trigger);
      case "ghost":
        this.#ghosts.push(candidate.image);
        await this.#meter.afterGhost();
        return { kind: "ghost" };
      case "busy":
        return { kind: "skipped", reason: changed("another removal of it is in progress") };
      case "failed":
        // Further requests would remove more than needed.
        if (this.#silent >= UNANSWERED_MAX) this.#error = silentWords(this.#silent);
        return failedResult(removed.failure);
      case "unseen":
        this.#error = removed.message;
        return removed.failure === null ? unseen(candidate.image) : failedResult(removed.failure);
    }
  }

  executed(end: ImageEnd) {
    this.#creditLate();
    const reportedFreedBytes = this.#items.reduce((sum, item) => sum + reportedOf(item), 0n);
    // What was cancelled on request has not failed.
    const error = end === "stopped" ? null : this.#error;
    const nothingFreed = this.#stopRule.nothingFreed();
    const why = end === "nothing-freed" && nothingFreed !== undefined ? { nothingFreed } : {};
    const lists = { items: this.#items, ghosts: this.#ghosts, reportedFreedBytes };
    const outcome: ImageOutcome = { end, error, ...lists, ...why, ...this.#meter.totals() };
    return { outcome, freed: this.#stopRule.freed() };
  }
}

const isAged = (candidate: ImageCandidate): boolean =>
  candidate.triggers.some((trigger) => trigger.kind === "age");

function blockedEnd(plan: ImagePlan): ImageEnd {
  const kinds = new Set(plan.blocks.map(({ kind }) => kind));
  if (kinds.has("invalid-capacity")) return "invalid-capacity";
  const end = kinds.has("nothing-freed") ? "nothing-freed" : "futile";
  return [...kinds].every((kind) => kind === end || kind === "futile") ? end : "blocked";
}
