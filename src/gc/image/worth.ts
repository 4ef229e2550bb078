/** Decides after each removal whether it is worth going on: what is reached, in reach, still to appear, or held elsewhere. */

import type {
  ImageEnd,
  ImageItem,
  ImageResult,
  NothingFreed,
  Settled,
} from "../../model/outcome.ts";
import type { ImageCandidate, ImageTarget } from "../../model/plan.ts";
import type { ImageTrigger } from "../../model/reason.ts";
import { expectedBytes } from "../../policy/image/images.ts";
import type { FreedHere } from "../../policy/space/nothing-freed.ts";
import { type Met, metAfterAll, targetReach, targetsMet } from "../../policy/space/progress.ts";
import { FreedSpace } from "./freed-space.ts";
import type { ImageExecution } from "./image-execution.ts";
import type { Meter } from "./meter.ts";
import { Settler } from "./settle.ts";

type Removed = Extract<ImageResult, { readonly kind: "removed" }>;

export class Worth {
  readonly #meter: Meter;
  readonly #settler: Settler;
  readonly #freed: FreedSpace;
  /** Devices that hold images. */
  readonly #stores: readonly string[];
  readonly #isMeasured: boolean;
  readonly #canReachTargets: ReturnType<typeof targetReach>;
  #targets: readonly ImageTarget[];
  #end: ImageEnd | null = null;
  nothingFreed: NothingFreed | undefined;

  constructor(execution: ImageExecution, meter: Meter, signal: AbortSignal) {
    const { facts, plan } = execution;
    const { accounting, whenFutile } = facts.limits.images;
    this.#meter = meter;
    this.#stores = facts.snapshot.filesystems.flatMap(({ roles, device }) =>
      roles.includes("imagefs") ? [device] : [],
    );
    this.#isMeasured = accounting === "measured";
    this.#settler = new Settler(execution, { meter, signal });
    this.#freed = new FreedSpace(facts, meter, plan.targets);
    this.#canReachTargets = whenFutile === "collect" ? () => true : targetReach(facts, plan);
    this.#targets = plan.targets;
  }

  /** From here on these are the targets. */
  begin(targets: readonly ImageTarget[] = this.#targets): void {
    this.#targets = targets;
    this.#settler.begin(targets, this.#meter.progress());
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

  async beforeRemoval(): Promise<void> {
    this.#freed.appeared(await this.#meter.beforeRemoval());
  }

  /** Measures what the removal freed; waits if more should have appeared. */
  async removed(candidate: ImageCandidate, trigger: ImageTrigger): Promise<Removed> {
    const { sizeBytes: reportedBytes } = candidate.image;
    const gained = await this.#meter.gainedNow();
    const gains = this.#meter.gains();
    const atOnceBytes = this.#meter.credit(reportedBytes, candidate.unscaled?.estimateBytes);
    const result = { kind: "removed", reportedBytes } as const;
    if (!this.#isMeasured) return { ...result, measuredBytes: atOnceBytes, settled: "not-waited" };
    this.#freed.removed(candidate, gains);
    this.#settler.removed(expectedBytes(candidate));
    const isDue = trigger.kind !== "age" && this.#isDue();
    if (!isDue && !this.#givesNothing()) {
      const settled = settledAtOnce(candidate, gained, this.#meter.committed().length > 0);
      return { ...result, measuredBytes: atOnceBytes, settled };
    }
    const laterBytes = await this.#wait(isDue);
    const isCommitted = this.#meter.committed().length > 0;
    const settled = laterBytes > 0n ? "afterwards" : isCommitted ? "not-seen" : "at-once";
    return { ...result, measuredBytes: atOnceBytes + laterBytes, settled };
  }

  /** Removals for age are not waited for, but their space counts. */
  async settleAged(): Promise<void> {
    if (this.#isMeasured && this.#isDue()) await this.#wait(true);
  }

  /** Why the pass ends although candidates are left; `null` to go on. */
  end(): ImageEnd | null {
    return this.#end === null ? null : (this.reached() ?? this.#end);
  }

  freed(): readonly FreedHere[] {
    return this.#isMeasured ? this.#freed.here() : [];
  }

  async #wait(isDue: boolean): Promise<bigint> {
    const before = this.#meter.available();
    await this.#settler.wait(() => isDue && this.reached() !== null);
    this.#freed.appeared(this.#meter.risesSince(before));
    const laterBytes = this.#meter.creditRest();
    this.begin();
    if (this.#settler.isExhausted) this.#end = "settle-exhausted";
    if (this.#givesNothing()) {
      this.#end = "nothing-freed";
      this.nothingFreed = this.#freed.end(this.#watched());
    }
    return laterBytes;
  }

  #isDue(): boolean {
    return this.#settler.isDue(this.#targets, this.#meter.progress());
  }

  #givesNothing(): boolean {
    return this.#freed.givesNothing(this.#watched());
  }

  /** Devices of the targets that are not met, and those of the store if others than a disk's are. */
  #watched(): readonly string[] {
    const progress = this.#meter.progress();
    const open = this.#targets.filter((target) => targetsMet([target], progress) === null);
    const devices = open.flatMap((target) => ("device" in target ? [target.device] : []));
    const isOfDisks = open.length > 0 && devices.length === open.length;
    return isOfDisks ? devices : [...devices, ...this.#stores];
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
