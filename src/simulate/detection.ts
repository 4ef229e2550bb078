/** What the simulated agent knows: its ledger, by detections of which those that would find nothing new are left out. */

import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { ImageItem } from "../model/pass.ts";
import type { KeepRules, Snapshot } from "../model/snapshot.ts";
import { duration } from "../model/time.ts";
import { raiseAgingTerm, unusedFor } from "../policy/image/rank.ts";
import { usageOf } from "../policy/image/usage.ts";
import { rememberOrigins } from "../policy/layer/origins.ts";
import { forgetImages, forgetRemoved, remember } from "../policy/remember.ts";
import { rememberGain } from "../policy/space/freed.ts";
import type { SimulatedNode } from "./node.ts";

interface DetectionOptions {
  readonly node: SimulatedNode;
  readonly limits: Limits;
  readonly keep: KeepRules;
  readonly fromMs: number;
  readonly periodMs: number;
  /** Called when containers that had ended are no longer listed. */
  readonly onEnded: () => void;
}

export class Detection {
  ledger: Ledger = emptyLedger;
  readonly #options: DetectionOptions;
  /** Of the last observation; nothing has changed since it if not `#isUnseen`. */
  #seenMs = -Infinity;
  #isUnseen = true;
  #changedMs: number;

  constructor(options: DetectionOptions) {
    this.#options = options;
    this.#changedMs = options.fromMs;
  }

  /** The node is not as it was at the last observation. */
  changed(nowMs: number): void {
    this.#isUnseen = true;
    this.#changedMs = nowMs;
  }

  restarted(): void {
    this.ledger = emptyLedger;
  }

  /** The detections between the last observation and now. */
  catchUp(nowMs: number): void {
    const { fromMs, periodMs, node } = this.#options;
    const ticks = (atMs: number): number => Math.ceil((atMs - fromMs) / periodMs);
    const at = (tick: number): number => fromMs + tick * periodMs;
    const last = ticks(nowMs) - 1;
    const first = ticks(this.#changedMs);
    if (this.#isUnseen && first > last) return;
    if (this.#isUnseen) this.observe(at(first));
    // What is in use is so until then.
    if (node.containers > 0 && at(last) > this.#seenMs) this.observe(at(last));
  }

  observe(atMs: number): Snapshot {
    const { limits, node, onEnded } = this.#options;
    const snapshot = node.snapshot(atMs);
    this.ledger = remember({
      ledger: this.ledger,
      snapshot,
      usage: usageOf(snapshot),
      // The agent looks all the time, although detections that find nothing new are left out here.
      limits: { ...limits.memory, detectionPeriod: ALWAYS },
      pods: this.ledger.pods,
    });
    if (this.#isUnseen) this.#readLayers();
    this.#seenMs = atMs;
    this.#isUnseen = false;
    const containers = node.forgetEnded();
    if (containers.length === 0) return snapshot;
    const remaining = node.containers;
    this.ledger = forgetRemoved(this.ledger, { containers, sandboxes: [], remaining });
    onEnded();
    return snapshot;
  }

  #readLayers(): void {
    const { node } = this.#options;
    const read = node.unreadOrigins(this.ledger.origins);
    if (read.size === 0) return;
    this.ledger = { ...this.ledger, ...rememberOrigins(this.ledger, node.images, read) };
  }

  removed(items: readonly ImageItem[], { runtime }: Snapshot): void {
    const learned = rememberGain(items.reduce(raiseAgingTerm, this.ledger), { runtime, items });
    this.ledger = forgetImages(
      learned,
      items.map(({ candidate }) => candidate.image.id),
    );
  }

  /** When time alone may change a plan: an image reaches an age, or a grace period ends. Infinity: never. */
  nextAgeMs(): number {
    const { limits, keep } = this.#options;
    // Their ends are many, and few nodes have any.
    if (keep.rules.some(({ lease }) => lease !== undefined)) return this.#seenMs;
    const { minimumAge, maximumAge } = limits.images;
    const { watched, graceUntil, images } = this.ledger;
    const waits: bigint[] = graceUntil === null ? [] : [graceUntil - watched];
    if (maximumAge > 0n) waits.push(maximumAge - watched);
    for (const record of images.values()) {
      waits.push(record.firstSeenWatched + minimumAge - watched);
      if (maximumAge > 0n) waits.push(maximumAge - unusedFor(record, watched));
    }
    const ahead = waits.filter((wait) => wait >= 0n).map((wait) => Math.floor(Number(wait) / 1e6));
    return this.#seenMs + Math.min(...ahead) + 1;
  }
}

/** Longer than any trace. */
const ALWAYS = duration(2n ** 62n);
