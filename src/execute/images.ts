/** Walks an image plan: looks again before each removal, removes, measures, and stops as soon as enough is free. */

import { failureCode, HostError, messageOf } from "../model/errors.ts";
import type { ImageEnd, ImageItem, ImageOutcome, ImageResult } from "../model/outcome.ts";
import type { ImageCandidate, ImagePlan, ImageTarget } from "../model/plan.ts";
import type { ImageTrigger } from "../model/reason.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import { type Duration, duration, toMs } from "../model/time.ts";
import { podPause, podStarting } from "../policy/blocks.ts";
import type { ImageExecuted, ImageExecution } from "./image-execution.ts";
import { Meter } from "./meter.ts";
import { type Progress, targetsMet } from "./progress.ts";
import { Settler } from "./settler.ts";
import { Stall } from "./stall.ts";

/** A local filesystem answers in microseconds; after this a look counts as old. */
const MEASURE_NS_MAX = 250_000_000n;
const MEASURE_ATTEMPTS = 3;
/** Executes the plan. Never rejects: whatever goes wrong is in the outcome. An abort finishes the removal in flight. */
export async function executeImages(
  execution: ImageExecution,
  signal: AbortSignal,
): Promise<ImageExecuted> {
  const walk = new Walk(execution, signal);
  const end = await walk.run();
  return walk.executed(end);
}

class Walk {
  readonly #execution: ImageExecution;
  readonly #signal: AbortSignal;
  readonly #meter: Meter;
  readonly #items: ImageItem[] = [];
  readonly #ghosts: Image[] = [];
  #error: string | null = null;
  #calls = 0;
  readonly #settler: Settler;
  readonly #stall = new Stall();
  #waited: Duration;

  constructor(execution: ImageExecution, signal: AbortSignal) {
    this.#execution = execution;
    this.#signal = signal;
    this.#waited = execution.waitedForPods;
    this.#meter = new Meter({
      disk: execution.disk,
      targets: execution.plan.targets,
      store: execution.store,
      storeBytes: execution.store?.usedBytes ?? null,
      imageCount: execution.imageCount,
      accounting: execution.limits.accounting,
    });
    this.#settler = new Settler(execution, { meter: this.#meter, signal });
  }

  async run(): Promise<ImageEnd> {
    const { plan } = this.#execution;
    // The kubelet removes for age before it looks at the disk, so candidates can stand beside a disk whose figures are wrong.
    if (plan.blocks.length > 0 && plan.candidates.length === 0) return blockedEnd(plan);
    if (plan.candidates.length === 0 && plan.targets.length === 0) return "nothing-to-do";
    try {
      await this.#meter.start();
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
    return failed && this.#execution.limits.compat === "kubelet" ? "age-removal-errors" : null;
  }

  async #removeForTargets(candidates: readonly ImageCandidate[]): Promise<ImageEnd> {
    const { plan, limits } = this.#execution;
    if (plan.targets.length === 0)
      return this.#items.length > 0 ? "target-reached" : "nothing-to-do";
    if (limits.accounting === "reported") {
      this.#meter.countForTargets();
      if (this.#items.length > 0 && !(await this.#meter.stillAsks())) return "target-reached";
    }
    // What went for its age was not waited for, and its space counts.
    if (this.#settler.release() === "delayed" && this.#items.length > 0 && this.#mayWait())
      await this.#settler.settle(this.#meter.totals().reportedFreedBytes, true);
    for (const [index, candidate] of candidates.entries()) {
      const reached = this.#reached();
      if (reached !== null) return reached;
      if (!this.#execution.stillUseful(candidates.slice(index), this.#meter)) return "futile";
      const trigger = candidate.triggers[0] ?? { kind: "space" };
      const end = await this.#step(candidate, trigger);
      if (end !== null) return end;
      if (this.#mayGainElsewhere() && this.#stall.gainsNothing())
        return this.#reached() ?? "no-gain";
    }
    return this.#reached() ?? "candidates-exhausted";
  }

  /** Whether removals may gain nothing for ever where it is full; what else asks (a count, a budget) is not about a disk. */
  #mayGainElsewhere(): boolean {
    const { plan, severalStores } = this.#execution;
    return plan.targets.every(isOfDisk) && (severalStores || this.#meter.measuresSeveral());
  }

  #reached(): ImageEnd | null {
    return targetsMet(this.#execution.plan.targets, this.#progress());
  }

  /** One candidate: `null` to go on with the next. */
  async #step(candidate: ImageCandidate, trigger: ImageTrigger): Promise<ImageEnd | null> {
    const { limits, timer } = this.#execution;
    if (this.#signal.aborted) return "stopped";
    if (limits.maximumRemovals !== null && this.#calls >= limits.maximumRemovals)
      return "removal-limit";
    if (this.#calls > 0 && limits.removalInterval > 0n) {
      await timer.sleep(Number(limits.removalInterval / 1_000_000n), this.#signal);
      if (this.#signal.aborted) return "stopped";
    }
    const fresh = await this.#lookAndMeasure();
    if (this.#signal.aborted) return "stopped";
    const relieved = this.#relievedMeanwhile(trigger);
    if (relieved !== null) return relieved;
    const startedAt = this.#execution.now();
    const startNs = timer.monotonicNs();
    const keep = this.#execution.reconsider(candidate, fresh, this.#waited);
    const result: ImageResult =
      keep === null ? await this.#remove(candidate, trigger) : { kind: "skipped", reason: keep };
    const item: ImageItem = {
      candidate,
      trigger,
      result,
      startedAt,
      took: duration(timer.monotonicNs() - startNs),
    };
    this.#items.push(item);
    this.#execution.done(item);
    if (this.#error !== null) return "observation-failed";
    // What stops one image stops all of this pass: a hold that began, a use that could not be read.
    if (keep?.kind === "blocked") return "blocked";
    return this.#settler.isExhausted() && trigger.kind !== "age" && this.#mayWait()
      ? (this.#reached() ?? "settle-exhausted")
      : null;
  }

  /** Others may have made room while this pass waited, paused or looked. */
  #relievedMeanwhile(trigger: ImageTrigger): ImageEnd | null {
    const measured = this.#execution.limits.accounting === "measured";
    return measured && trigger.kind !== "age" ? this.#reached() : null;
  }

  /** Measured after the look, so that nothing lies between them and the removal; a measurement that hung makes the look too old. */
  async #lookAndMeasure(): Promise<Snapshot> {
    const { timer } = this.#execution;
    for (let attempt = 1; ; attempt += 1) {
      const fresh = await this.#look();
      const startNs = timer.monotonicNs();
      await this.#meter.beforeRemoval();
      if (timer.monotonicNs() - startNs < MEASURE_NS_MAX) return fresh;
      if (attempt === MEASURE_ATTEMPTS)
        throw new HostError(
          "stat",
          `measuring the image filesystem took too long ${attempt} times`,
        );
    }
  }

  /** Fresh facts, and patience with pods that are only just starting: they may pull what no container uses yet. */
  async #look(): Promise<Snapshot> {
    const { look, timer } = this.#execution;
    for (;;) {
      const fresh = await look(this.#signal);
      const starting = podStarting({ snapshot: fresh, waitedForPods: this.#waited });
      if (starting.length === 0 || this.#signal.aborted) return fresh;
      const pause = podPause(this.#waited);
      await timer.sleep(toMs(pause), this.#signal);
      this.#waited = duration(this.#waited + pause);
    }
  }

  async #remove(candidate: ImageCandidate, trigger: ImageTrigger): Promise<ImageResult> {
    const { image } = candidate;
    this.#execution.starting?.(candidate, this.#meter);
    this.#calls += 1;
    let failure: unknown = null;
    try {
      await this.#execution.writer.removeImage(image.id);
    } catch (thrown) {
      failure = thrown;
    }
    try {
      return await this.#verify(image, { trigger, failure });
    } catch (thrown) {
      // What the runtime did is recorded whatever happens; what came of it can no longer be seen, so the pass ends.
      this.#error = messageOf(thrown);
      return failure === null ? unseen(image) : failedResult(failure);
    }
  }

  /** The runtime's answer is no proof, in either direction: the list is. */
  async #verify(image: Image, { trigger, failure }: Answered): Promise<ImageResult> {
    const images = await this.#execution.runtime.listImages(new AbortController().signal);
    const ids = new Set(images.map(({ id }) => id));
    this.#meter.listed(ids.size);
    const listed = ids.has(image.id);
    this.#stall.noteAnswer(listed ? failure : null);
    this.#error = this.#stall.unanswered();
    if (listed && failure !== null) return failedResult(failure);
    if (!listed) return await this.#credit(image, trigger);
    this.#ghosts.push(image);
    await this.#meter.afterGhost();
    return { kind: "ghost" };
  }

  async #credit(image: Image, trigger: ImageTrigger): Promise<ImageResult> {
    if (this.#execution.limits.accounting === "reported") {
      const measuredBytes = await this.#meter.afterRemoval(image.sizeBytes);
      return {
        kind: "removed",
        reportedBytes: image.sizeBytes,
        measuredBytes,
        settled: "not-waited",
      };
    }
    const settled = await this.#settler.settle(
      image.sizeBytes,
      trigger.kind !== "age" && this.#mayWait(),
    );
    const gained = await this.#meter.afterRemoval(image.sizeBytes);
    this.#stall.noteGain(this.#meter.gainedOnTargets());
    return {
      kind: "removed",
      reportedBytes: image.sizeBytes,
      measuredBytes: gained,
      settled,
    };
  }

  /** Only space on a disk is worth waiting for: a count is there at once, and a budget goes by what is told of the removal. */
  #mayWait(): boolean {
    const ofDisks = this.#execution.plan.targets.filter(isOfDisk);
    return ofDisks.length > 0 && targetsMet(ofDisks, this.#progress()) === null;
  }

  #progress(): Progress {
    return this.#meter.progress(this.#settler.release());
  }

  executed(end: ImageEnd): ImageExecuted {
    const outcome: ImageOutcome = {
      end,
      items: this.#items,
      ghosts: this.#ghosts,
      error: this.#error,
      ...this.#meter.totals(),
    };
    return { outcome, release: this.#settler.learned };
  }
}

interface Answered {
  readonly trigger: ImageTrigger;
  /** What the call threw; `null`: it was answered with success. */
  readonly failure: unknown;
}

const isOfDisk = ({ kind }: ImageTarget): boolean =>
  kind === "available-bytes" || kind === "free-inodes";

const isAged = (candidate: ImageCandidate): boolean =>
  candidate.triggers.some((trigger) => trigger.kind === "age");

function blockedEnd(plan: ImagePlan): ImageEnd {
  if (plan.blocks.some((block) => block.kind === "invalid-capacity")) return "invalid-capacity";
  return plan.blocks.every((block) => block.kind === "futile") ? "futile" : "blocked";
}

/** Removed by the runtime's word alone; nothing of its space was seen. */
const unseen = (image: Image): ImageResult => ({
  kind: "removed",
  reportedBytes: image.sizeBytes,
  measuredBytes: 0n,
  settled: "not-seen",
});

function failedResult(thrown: unknown): ImageResult {
  return {
    kind: "failed",
    message: messageOf(thrown),
    code: failureCode(thrown),
  };
}
