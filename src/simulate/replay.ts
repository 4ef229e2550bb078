/** Replays a trace on a simulated node, whose agent decides by the policy of the real one. */

import type { ImageId } from "../model/ids.ts";
import type { Limits } from "../model/limits.ts";
import type { ImageItem } from "../model/pass.ts";
import type { ImageTarget, Purpose } from "../model/plan.ts";
import { duration, type Instant, instantFromMs, toMs } from "../model/time.ts";
import { FULL_PATIENCE } from "../policy/image/creations.ts";
import { reclaimTargets, SOONEST_MS } from "../policy/pressure/pace.ts";
import { judgePressure, noPressure } from "../policy/pressure/thresholds.ts";
import { collectsImages } from "../policy/space/targets.ts";
import { Detection } from "./detection.ts";
import { type Figures, Measures, usageLevels } from "./measures.ts";
import { type NodeOptions, SimulatedNode } from "./node.ts";
import { farthestFirst, isTriggered, removeByPlan } from "./pass.ts";
import type { Replayable, ReplayedImage, TraceEvent } from "./replayed-trace.ts";

export interface Scenario extends Omit<NodeOptions, "startedAt"> {
  readonly trace: Replayable;
  readonly limits: Limits;
  readonly periods: {
    readonly "image-detection": number;
    readonly "image-gc": number;
    readonly pressure: number;
  };
  /** `null`: the agent never restarts. Only with `compat: kubelet` does it forget. */
  readonly restartEveryMs: number | null;
  /** Everything unused is removed so often, as by a cron job; `null`: never. */
  readonly flushEveryMs: number | null;
  /** `offline`: what is used farthest in the future goes first. */
  readonly order: "policy" | "offline";
}

export interface Replayed {
  readonly figures: Figures;
  /** In order. */
  readonly removed: readonly ImageId[];
}

export function replay(scenario: Scenario): Replayed {
  return new Replay(scenario).run();
}

/** What the agent does next, by name; several at one time run in this order. */
const ALARMS = ["restart", "retry", "pressure", "image-gc", "flush"] as const;
type Alarm = (typeof ALARMS)[number];

class Replay {
  readonly #scenario: Scenario;
  readonly #node: SimulatedNode;
  readonly #measures: Measures;
  readonly #alarms: Record<Alarm, number>;
  readonly #detection: Detection;
  #startedAt: Instant;
  #nowMs: number;
  #pressure = noPressure;
  /** Uses of each image that could not be pulled yet. */
  readonly #waiting = new Map<ReplayedImage, Set<string>>();

  constructor(scenario: Scenario) {
    const { trace, capacityBytes, keep, limits } = scenario;
    this.#scenario = scenario;
    this.#nowMs = trace.fromMs;
    this.#startedAt = instantFromMs(trace.fromMs);
    this.#node = new SimulatedNode({ ...scenario, startedAt: this.#startedAt });
    this.#measures = new Measures(usageLevels(limits, capacityBytes), trace.fromMs);
    this.#detection = new Detection({
      node: this.#node,
      limits,
      keep,
      fromMs: trace.fromMs,
      periodMs: scenario.periods["image-detection"],
      onEnded: () => this.#wake(),
    });
    this.#alarms = {
      restart: trace.fromMs + (scenario.restartEveryMs ?? Infinity),
      retry: Infinity,
      pressure: trace.fromMs,
      "image-gc": trace.fromMs,
      flush: trace.fromMs + (scenario.flushEveryMs ?? Infinity),
    };
  }

  run(): Replayed {
    const { trace, capacityBytes } = this.#scenario;
    for (const image of trace.initial) this.#node.bring(image);
    this.#measures.holds(this.#node);
    for (const event of trace.events) {
      this.#advance(event.atMs);
      this.#happen(event);
    }
    this.#advance(trace.untilMs);
    this.#measures.until(trace.untilMs, this.#node);
    return { figures: this.#measures.figures(capacityBytes), removed: this.#measures.removed };
  }

  /** Lets the agent do what is due before this time. What happens at the same time comes first. */
  #advance(atMs: number): void {
    for (;;) {
      const dueMs = Math.min(...Object.values(this.#alarms));
      if (dueMs >= atMs) break;
      this.#moveTo(dueMs);
      for (const alarm of ALARMS) if (this.#alarms[alarm] <= dueMs) this.#ring(alarm);
    }
    this.#moveTo(atMs);
  }

  #moveTo(atMs: number): void {
    this.#measures.until(atMs, this.#node);
    this.#nowMs = Math.max(this.#nowMs, atMs);
  }

  #happen(event: TraceEvent): void {
    this.#detection.catchUp(this.#nowMs);
    const { image } = event;
    const waiting = this.#waiting.get(image);
    switch (event.kind) {
      case "begin":
        this.#measures.counts.uses += 1;
        if (!this.#node.has(image.image.id)) this.#measures.counts.coldStarts += 1;
        this.#use(event.use, image);
        break;
      case "arrival":
        this.#pull(image);
        break;
      case "end":
        waiting?.delete(event.use);
        if (waiting?.size === 0) this.#waiting.delete(image);
        this.#node.end(event.use);
    }
    this.#changed();
  }

  #use(use: string, image: ReplayedImage): void {
    if (!this.#waiting.has(image) && this.#pull(image))
      return this.#node.begin(use, image.image.id, instantFromMs(this.#nowMs));
    this.#waiting.getOrInsertComputed(image, () => new Set()).add(use);
    this.#alarms.retry = this.#nextOf(this.#scenario.periods["image-gc"]);
  }

  /** `false`: the disk has no room for it, not even after a pass. */
  #pull(replayed: ReplayedImage): boolean {
    const { id } = replayed.image;
    const node = this.#node;
    if (node.has(id)) return true;
    const fits = (): boolean => node.missingBytes(replayed) <= node.availableBytes;
    if (!fits()) {
      this.#measures.counts.unfittedPulls += 1;
      node.partialBytes = node.availableBytes;
      this.#measures.holds(node);
      this.#relievePressure();
      if (node.missingBytes(replayed) > node.availableBytes + node.partialBytes) this.#collect();
      node.partialBytes = 0n;
      if (!fits()) return false;
    }
    this.#bring(replayed);
    return true;
  }

  #bring(replayed: ReplayedImage): void {
    this.#measures.pulled(replayed.image.id, this.#node.missingBytes(replayed));
    this.#node.bring(replayed);
    this.#measures.holds(this.#node);
  }

  #ring(alarm: Alarm): void {
    const { restartEveryMs, flushEveryMs, limits } = this.#scenario;
    this.#alarms[alarm] = Infinity;
    switch (alarm) {
      case "restart":
        this.#alarms.restart = this.#nowMs + (restartEveryMs ?? Infinity);
        this.#startedAt = instantFromMs(this.#nowMs);
        if (limits.images.compat === "none") return;
        this.#detection.restarted();
        return this.#changed();
      case "retry":
        return this.#retry();
      case "pressure":
        return this.#relievePressure();
      case "image-gc":
        return this.#collect();
      case "flush":
        this.#alarms.flush = this.#nowMs + (flushEveryMs ?? Infinity);
        this.#pass({ kind: "all-unused" });
    }
  }

  #retry(): void {
    for (const [image, uses] of this.#waiting) {
      const isThere = this.#node.has(image.image.id);
      if (!isThere && this.#node.missingBytes(image) > this.#node.availableBytes) continue;
      if (!isThere) this.#bring(image);
      this.#waiting.delete(image);
      for (const use of uses) this.#node.begin(use, image.image.id, instantFromMs(this.#nowMs));
      this.#changed();
    }
    if (this.#waiting.size > 0)
      this.#alarms.retry = this.#nextOf(this.#scenario.periods["image-gc"]);
  }

  /** The node is not as the last pass left it. */
  #changed(): void {
    this.#detection.changed(this.#nowMs);
    this.#wake();
  }

  #wake(): void {
    const { limits, periods } = this.#scenario;
    const soonMs = limits.images.compat === "kubelet" ? periods.pressure : SOONEST_MS;
    this.#alarms.pressure = Math.min(this.#alarms.pressure, this.#nowMs + soonMs);
    this.#alarms["image-gc"] = Math.min(
      this.#alarms["image-gc"],
      this.#nextOf(periods["image-gc"]),
    );
  }

  /** The end of the period that has begun, counted from the start. */
  #nextOf(periodMs: number): number {
    const { fromMs } = this.#scenario.trace;
    return fromMs + (Math.floor((this.#nowMs - fromMs) / periodMs) + 1) * periodMs;
  }

  #collect(): void {
    const { limits } = this.#scenario;
    if (!collectsImages(limits.images)) return;
    this.#detection.catchUp(this.#nowMs);
    if (!isTriggered(this.#node, limits.images)) return;
    const removed = this.#pass({ kind: "periodic" });
    if (removed.length === 0) this.#wakeFor("image-gc");
  }

  #relievePressure(): void {
    const verdict = this.#judgePressure();
    const waitMs = verdict.met
      .filter((one) => !verdict.due.includes(one))
      .map(({ threshold, metFor }) => toMs(duration(threshold.grace - metFor)));
    this.#alarms.pressure = this.#nowMs + Math.min(...waitMs);
    if (verdict.due.length === 0 || !verdict.reclaim.images) return;
    const signals = [...new Set(verdict.due.map(({ threshold }) => threshold.signal))];
    const { compat } = this.#scenario.limits.images;
    const targets = reclaimTargets(compat, signals, verdict);
    const removed = this.#pass({ kind: "pressure", signals }, targets);
    if (this.#judgePressure().due.length === 0) return;
    // A pass that removed nothing would remove nothing again until something changes.
    if (removed.length === 0) this.#wakeFor("pressure");
  }

  #judgePressure(): ReturnType<typeof judgePressure> {
    const { limits } = this.#scenario;
    const verdict = judgePressure({
      limits: limits.pressure,
      compat: limits.images.compat,
      filesystems: [this.#node.filesystem()],
      state: this.#pressure,
      uptime: this.#node.uptime(this.#nowMs),
    });
    this.#pressure = verdict.state;
    return verdict;
  }

  #pass(purpose: Purpose, pressureTargets: readonly ImageTarget[] = []): readonly ImageItem[] {
    this.#detection.catchUp(this.#nowMs);
    this.#measures.counts.passes += 1;
    const snapshot = this.#detection.observe(this.#nowMs);
    const facts = {
      snapshot,
      ledger: this.#detection.ledger,
      limits: this.#scenario.limits,
      purpose,
      parts: { containers: "none", images: true },
      hold: { kind: "none" },
      startedAt: this.#startedAt,
      pressureTargets,
      creationPatience: FULL_PATIENCE,
    } as const;
    const { order, trace } = this.#scenario;
    const reorder = order === "offline" ? farthestFirst(trace.begins, this.#nowMs) : null;
    const items = removeByPlan(facts, this.#node, reorder);
    if (items.length === 0) return items;
    for (const { candidate, result } of items)
      if (result.kind === "removed") this.#measures.gone(candidate.image.id, result.measuredBytes);
    this.#detection.removed(items, snapshot);
    this.#changed();
    return items;
  }

  /** A pass that found nothing finds nothing until something changes, or time alone changes its plan. */
  #wakeFor(alarm: "pressure" | "image-gc"): void {
    const { trace, periods } = this.#scenario;
    const [{ fromMs }, periodMs] = [trace, periods[alarm]];
    const dueMs = fromMs + Math.ceil((this.#detection.nextAgeMs() - fromMs) / periodMs) * periodMs;
    const nextMs = Math.max(this.#nextOf(periodMs), dueMs);
    this.#alarms[alarm] = Math.min(this.#alarms[alarm], nextMs);
  }
}
