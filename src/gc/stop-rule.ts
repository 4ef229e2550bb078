/** Decides after each removal whether the pass goes on: what is reached, in reach, still to appear, or held elsewhere. */

import type { ImageEnd, ImageItem, ImageResult, NothingFreed, Settled } from "../model/pass.ts";
import {
  expectedBytes,
  type ImageCandidate,
  type ImagePlan,
  type ImageTarget,
} from "../model/plan.ts";
import type { CommitFilesystem, Timer } from "../model/ports.ts";
import type { ImageTrigger } from "../model/reason.ts";
import type { Facts } from "../policy/facts.ts";
import { type FreedHere, givesNothing, noStreak, TELLING_BYTES } from "../policy/space/freed.ts";
import { targetReach } from "../policy/space/futility.ts";
import { lackedBytes, type Met, metAfterAll, targetsMet } from "../policy/space/targets.ts";
import type { Meter } from "./meter.ts";
import { DRIFT_NS, type PassDisk } from "./pass-disk.ts";
import type { Steps } from "./steps.ts";

type Removed = Extract<ImageResult, { readonly kind: "removed" }>;

export interface StopRuleInput {
  readonly timer: Timer;
  readonly commit: CommitFilesystem;
  readonly steps: Pick<Steps, "wait">;
  readonly plan: ImagePlan;
  readonly facts: Facts;
  readonly signal: AbortSignal;
}

export class StopRule {
  readonly #input: StopRuleInput;
  readonly #meter: Meter;
  readonly #isMeasured: boolean;
  #canReachTargets: ReturnType<typeof targetReach>;
  #targets: readonly ImageTarget[];
  /** What each target lacked when the estimates began to count, and what was expected of removals since. */
  #lacked: ReadonlyMap<ImageTarget, bigint | null> = new Map();
  #expectedBytes = 0n;
  #hasRemoved = false;
  /** Devices on which removals gave nothing back, if that ended the pass. */
  #noGainDevices: readonly string[] = [];
  #end: ImageEnd | null = null;
  /** All waits of the pass for space that appears only after its removal was answered. */
  #waitedMs = 0;
  /** A wait showed that nothing comes late. */
  #isPrompt = false;

  constructor(input: StopRuleInput, meter: Meter) {
    const { facts, plan } = input;
    this.#input = input;
    this.#meter = meter;
    this.#isMeasured = facts.limits.images.accounting === "measured";
    this.#targets = plan.targets;
    this.#canReachTargets = this.#reachOf(plan.targets);
    // Removals by hand count only those of the same command.
    if (facts.purpose.kind === "all-unused") return;
    for (const disk of meter.disks) {
      const { knownSharers, removals } = facts.ledger.nothingFreed.get(disk.path) ?? noStreak;
      disk.streak = { ...noStreak, knownSharers, removals };
    }
  }

  #reachOf(targets: readonly ImageTarget[]): ReturnType<typeof targetReach> {
    const { facts, plan } = this.#input;
    if (facts.limits.images.whenFutile === "collect") return () => true;
    return targetReach(facts, { targets, candidates: plan.candidates });
  }

  /** From here on these are the targets; what was removed before shows in the measurement. */
  begin(targets: readonly ImageTarget[] = this.#targets): void {
    this.#targets = targets;
    const progress = this.#meter.progress();
    this.#expectedBytes = 0n;
    this.#lacked = new Map(targets.map((target) => [target, lackedBytes(target, progress)]));
  }

  /** Takes the targets of disks that changed while the pass waited. */
  async retarget(targets: readonly ImageTarget[]): Promise<void> {
    const fromStart = await this.#meter.retarget(targets);
    this.#canReachTargets = this.#reachOf(fromStart);
    this.begin(fromStart);
  }

  reached(): Met | null {
    return targetsMet(this.#targets, this.#meter.progress());
  }

  reachedAfterAll(): Met | null {
    return metAfterAll(this.#targets, this.#meter.progress());
  }

  isFutile(items: readonly ImageItem[]): boolean {
    return !this.#canReachTargets(this.#meter.progress(), items);
  }

  /** Measures what the removal freed; waits if more should have appeared. */
  async removed(candidate: ImageCandidate, trigger: ImageTrigger): Promise<Removed> {
    const { sizeBytes: reportedBytes } = candidate.image;
    const meter = this.#meter;
    const gained = await meter.afterRemoval(expectedBytes(candidate), this.#input.signal);
    if (this.#isMeasured) await this.#countRemoval(candidate);
    const atOnceBytes = meter.credit(reportedBytes, candidate.unscaled?.estimateBytes);
    const result = { kind: "removed", reportedBytes } as const;
    if (!this.#isMeasured) return { ...result, measuredBytes: atOnceBytes, settled: "not-waited" };
    const isDue = trigger.kind !== "age" && this.#isDue();
    const isCommitted = meter.committed().length > 0;
    if (!isDue && !this.#givesNothing()) {
      const settled = settledAtOnce(candidate, gained, isCommitted);
      return { ...result, measuredBytes: atOnceBytes, settled };
    }
    const laterBytes = await this.#wait(isDue);
    const settled = laterBytes > 0n ? "afterwards" : isCommitted ? "not-seen" : "at-once";
    return { ...result, measuredBytes: atOnceBytes + laterBytes, settled };
  }

  async #countRemoval(candidate: ImageCandidate): Promise<void> {
    const { timer, steps, signal } = this.#input;
    this.#hasRemoved = true;
    const estimatedBytes = expectedBytes(candidate);
    this.#expectedBytes += estimatedBytes;
    const leastBytes =
      candidate.sharersKnown === true ? (candidate.frees?.lowerBytes ?? null) : null;
    const removed = { estimatedBytes, leastBytes };
    const countsInodes = ({ device }: PassDisk): boolean =>
      this.#targets.some((target) => target.kind === "free-inodes" && target.device === device);
    const { disks } = this.#meter;
    // What others wrote during a long removal hides its gain.
    if (disks.some((disk) => disk.isUnsure(removed, countsInodes(disk)))) {
      await steps.wait("space", () => timer.sleep(Number(DRIFT_NS / 1_000_000n), signal));
      await this.#meter.read();
      for (const disk of disks) disk.noteOthers(true);
    }
    for (const disk of disks) disk.removed(removed, countsInodes(disk));
  }

  /** Removals for age are not waited for, but their space counts. */
  async settleAged(): Promise<void> {
    if (this.#isMeasured && this.#isDue()) await this.#wait(true);
  }

  /** Why the pass ends although candidates are left; `null` to go on. */
  end(): ImageEnd | null {
    return this.#end === null ? null : (this.reached() ?? this.#end);
  }

  /** For the ledger; empty if the pass has removed nothing. */
  freed(): readonly FreedHere[] {
    if (!this.#hasRemoved) return [];
    return this.#meter.disks.flatMap(({ device, path, streak, gaveBack, reading }) =>
      reading === null
        ? []
        : [{ path, streak, gaveBack, reading, ended: this.#noGainDevices.includes(device) }],
    );
  }

  /** What ended a pass that gave nothing back. */
  nothingFreed(): NothingFreed | undefined {
    const disk = this.#meter.disks.find(({ device }) => this.#noGainDevices.includes(device));
    if (disk === undefined) return undefined;
    const { removals, estimatedBytes, gainedBytes } = disk.streak;
    const before = this.#input.facts.ledger.nothingFreed.get(disk.path);
    const isNew = (before?.pauses ?? 0) === 0;
    return { filesystem: disk.path, removals, estimatedBytes, gainedBytes, isNew };
  }

  async #wait(isDue: boolean): Promise<bigint> {
    const before = availableOf(this.#meter.disks);
    if (this.#waitedMs < WAIT_PASS_MS) {
      const startNs = this.#input.timer.monotonicNs();
      const isEnough = (): boolean => isDue && this.reached() !== null;
      await this.#input.steps.wait("space", () => this.#untilStill(isEnough));
      this.#waitedMs += this.#sinceMs(startNs);
    }
    for (const [disk, bytes] of before) disk.appeared(disk.availableBytes - bytes);
    const laterBytes = this.#meter.creditRest();
    this.begin();
    // A wait that was cut short shows nothing.
    if (!this.#input.signal.aborted && this.#givesNothing()) {
      this.#end = "nothing-freed";
      this.#noGainDevices = this.#relevantDevices();
    }
    return laterBytes;
  }

  /** Whether by the estimates enough was removed for every target, while the disks say otherwise. */
  #isDue(): boolean {
    if (this.#isPrompt) return false;
    const open = this.#openTargets();
    const lacked = open.map((target) => this.#lacked.get(target) ?? null);
    return open.length > 0 && lacked.every((it) => it !== null && this.#expectedBytes >= it);
  }

  #givesNothing(): boolean {
    return this.#relevantDevices().every((device) =>
      givesNothing(this.#meter.disk(device)?.streak ?? noStreak),
    );
  }

  #openTargets(): readonly ImageTarget[] {
    const progress = this.#meter.progress();
    return this.#targets.filter((target) => targetsMet([target], progress) === null);
  }

  /** Devices of the targets that are not met, and those of the store if others than a disk's are. */
  #relevantDevices(): readonly string[] {
    const open = this.#openTargets();
    const devices = open.flatMap((target) => ("device" in target ? [target.device] : []));
    const isOfDisks = open.length > 0 && devices.length === open.length;
    return isOfDisks ? devices : [...devices, ...this.#meter.stores.map(({ device }) => device)];
  }

  /** Waits while space appears and it is not enough. */
  async #untilStill(isEnough: () => boolean): Promise<void> {
    const { timer, commit, signal } = this.#input;
    const meter = this.#meter;
    const endNs = timer.monotonicNs() + BigInt(WAIT_PASS_MS - this.#waitedMs) * 1_000_000n;
    const first = availableOf(meter.disks);
    const committed = meter.committed();
    for (const path of committed) await commit(path);
    await meter.read();
    while (!isEnough()) {
      const before = availableOf(meter.disks);
      const stepNs = timer.monotonicNs();
      while (this.#sinceMs(stepNs) < STEP_MS) {
        if (signal.aborted) return;
        await timer.sleep(POLL_MS, signal);
        await meter.read();
        if (isEnough() || this.#roseSince(before) <= -TELLING_BYTES) return;
      }
      if (this.#roseSince(before) < TELLING_BYTES) {
        this.#isPrompt = committed.length === 0 && this.#roseSince(first) < TELLING_BYTES;
        return;
      }
      if (timer.monotonicNs() >= endNs) {
        this.#end = "settle-exhausted";
        return;
      }
    }
  }

  /** On the filesystem where most appeared. */
  #roseSince(before: ReadonlyMap<PassDisk, bigint>): bigint {
    return greatest([...before].map(([disk, bytes]) => disk.availableBytes - bytes));
  }

  #sinceMs(ns: bigint): number {
    return Number((this.#input.timer.monotonicNs() - ns) / 1_000_000n);
  }
}

/** Files take whole blocks, and the runtime's database grows: this part of the least that was expected is all of it. */
function settledAtOnce(
  { frees, image }: ImageCandidate,
  gained: bigint,
  isCommitted: boolean,
): Settled {
  // What a commit shows is that of earlier removals too.
  if (isCommitted) return "not-seen";
  const expected = frees === undefined ? image.sizeBytes / 2n : (frees.lowerBytes * 3n) / 4n;
  return gained >= expected ? "at-once" : "not-waited";
}

/** The rest is left to the next pass. */
const WAIT_PASS_MS = 60_000;
/** Each of these has to bring something, or the wait ends. */
const STEP_MS = 500;
const POLL_MS = 100;

/** What each disk has available, as last measured. */
const availableOf = (disks: readonly PassDisk[]): ReadonlyMap<PassDisk, bigint> =>
  new Map(disks.map((disk) => [disk, disk.availableBytes]));

const greatest = (values: readonly bigint[]): bigint =>
  values.reduce((most, one) => (one > most ? one : most));
