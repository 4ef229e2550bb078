/** Decides which events are news: a persistent condition is reported once, then again when it changes. */

import type { Event, ImageOutcome, LoopName } from "../model/pass.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { Instant } from "../model/time.ts";
import { keyOf, type PressureVerdict } from "../policy/pressure/thresholds.ts";
import { unmatchedWords } from "../report/keep.ts";
import { PASS_ENDS } from "../report/pass-words.ts";
import { humanBytes } from "../report/words.ts";
import type { Journal } from "./ports.ts";

export interface LoopEnd {
  /** `null` for success. */
  readonly error: string | null;
  /** In a row, with this one. */
  readonly failures: number;
  readonly at: Instant;
}

type AnnouncerJournal = Pick<Journal, "event" | "say" | "failed" | "succeeded">;

export class Announcer {
  readonly #journal: AnnouncerJournal;
  /** By the purpose of the pass, the conditions that last since its last pass. */
  readonly #conditions = new Map<ImagePlan["purpose"], ReadonlySet<string>>();
  /** Thresholds that are due. */
  readonly #due = new Set<string>();
  /** Keep patterns that match no image. */
  #unmatched: ReadonlySet<string> = new Set();

  constructor(journal: AnnouncerJournal) {
    this.#journal = journal;
  }

  /** Raises the events of a pass whose condition begins, and returns them. */
  passed(
    events: readonly Event[],
    { purpose }: Pick<ImagePlan, "purpose">,
    { end, wantedBytes }: Pick<ImageOutcome, "end" | "wantedBytes">,
  ): readonly Event[] {
    // Missing bytes and missing inodes are two conditions. A ghost is announced once in any case.
    const keyOfEvent = ({ reason, message }: Event): string => {
      if (reason === "GhostImage") return message;
      return reason === "FreeDiskSpaceFailed" && wantedBytes === null ? `${reason}/inodes` : reason;
    };
    const before = this.#conditions.get(purpose) ?? new Set();
    const news = events.filter((event) => !before.has(keyOfEvent(event)));
    // A pass that failed or was ended does not show that space is no longer short.
    const { isRelieved = false } = PASS_ENDS[end];
    const lasting = [...before].filter(
      (key) => !isRelieved && key.startsWith("FreeDiskSpaceFailed"),
    );
    this.#conditions.set(purpose, new Set([...lasting, ...events.map(keyOfEvent)]));
    for (const event of news) this.#journal.event(event);
    return news;
  }

  /**
   * Reports how a loop's run ended, by the kubelet's rule: the first failure in a row is only logged, each further one is
   * an event, and success after failure is reported.
   */
  loopEnded(name: LoopName, { error: message, failures, at }: LoopEnd): void {
    const topic = `loop/${name}`;
    if (message === null) {
      this.#journal.succeeded(topic, `The ${name} loop`);
      return;
    }
    this.#journal.failed(topic, `${name} failed: ${message}`);
    const [reason, from] = LOOP_EVENTS[name] ?? [];
    if (reason !== undefined && failures === from)
      this.#journal.event({ reason, message, at, passId: null });
  }

  /** Raises `EvictionThresholdMet` when a threshold becomes due, once while the condition lasts. */
  pressure(verdict: PressureVerdict, at: Instant): void {
    const news = verdict.due.filter((one) => !this.#due.has(keyOf(one)));
    for (const one of verdict.due) this.#due.add(keyOf(one));
    if (!verdict.condition && this.#due.size > 0) {
      this.#due.clear();
      this.#journal.say(
        0,
        "disk pressure is over: every signal is above its threshold and minimum reclaim",
      );
    }
    for (const one of news) {
      const inodes = one.threshold.signal.endsWith(".inodesFree");
      const amount = (value: bigint): string => (inodes ? `${value} inodes` : humanBytes(value));
      this.#journal.event({
        reason: "EvictionThresholdMet",
        message: `Disk pressure: ${one.threshold.signal} at ${one.filesystem.mountpoint} is ${amount(one.available)}, below its threshold of ${amount(one.limit)}`,
        at,
        passId: null,
      });
    }
  }

  /** Logs keep patterns that match no image, once until they match one. */
  unmatchedKeepRules(patterns: readonly string[]): void {
    const news = patterns.filter((pattern) => !this.#unmatched.has(pattern));
    this.#unmatched = new Set(patterns);
    if (news.length > 0) this.#journal.say(1, unmatchedWords(news));
  }
}

/** From which failure in a row a loop raises an event. */
const LOOP_EVENTS: Readonly<Partial<Record<LoopName, readonly [Event["reason"], number]>>> = {
  "image-gc": ["ImageGCFailed", 2],
  pressure: ["ImageGCFailed", 2],
  "container-gc": ["ContainerGCFailed", 1],
};
