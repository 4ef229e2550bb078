/** Decides which events are news: a persistent condition is reported once, then again when it changes. */

import type { Compat } from "../model/limits.ts";
import type { Event, ImageEnd, LoopName } from "../model/pass.ts";
import type { Futility, ImagePlan } from "../model/plan.ts";
import { type Duration, type Instant, minutes, since } from "../model/time.ts";
import { keyOf, type PressureVerdict } from "../policy/pressure/thresholds.ts";
import { apart, futilityDiffers } from "../policy/space/futility.ts";
import { unmatchedWords } from "../report/keep.ts";
import { humanBytes } from "../report/words.ts";
import type { Journal } from "./ports.ts";

/** Events about a disk, whose text always differs because free bytes do. */
const OF_DISKS: readonly Event["reason"][] = ["ImageGCFutile", "FreeDiskSpaceFailed"];
/** Reported ghosts to remember; beyond this the oldest are dropped. */
const GHOSTS_MAX = 1_000;
/** The shortest time between two reports on a disk that changes all the time. */
const REST: Duration = minutes(10);

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
  /** Reported states and ghosts, as `reason message`. */
  readonly #reported = new Set<string>();
  /** By reason and disk, the state that was reported; `null` for a budget, which is not about a disk. */
  readonly #disks = new Map<string, Futility | null>();
  readonly #disksAt = new Map<string, Instant>();
  /** Thresholds that are due. */
  readonly #due = new Set<string>();
  /** Keep patterns that match no image. */
  #unmatched: ReadonlySet<string> = new Set();
  /** When it was last reported that pressure cannot be relieved. */
  #unrelievedAt: Instant | undefined;

  constructor(journal: AnnouncerJournal) {
    this.#journal = journal;
  }

  /** Raises the events of a pass that are news, and returns them. */
  passed(events: readonly Event[], plan: ImagePlan, end?: ImageEnd): readonly Event[] {
    for (const [key, state] of this.#disks) if (hasChanged(state, plan)) this.#disks.delete(key);
    // Of the event on removals that give nothing back, the ledger knows whether it is news.
    const isEpisode = ({ reason }: Event) => reason === "ImageGCFutile" && end === "nothing-freed";
    const news = events.filter((event) => isEpisode(event) || this.#isNews(event, plan));
    this.#forgetReported(new Set(events.map(keyOfEvent)));
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
    if (name === "image-gc" && failures > 1)
      this.#journal.event({ reason: "ImageGCFailed", message, at, passId: null });
    // These loops run every minute or few seconds, so a persistent failure is reported ever more rarely.
    if (!isPowerOfTwo(failures)) return;
    if (name === "container-gc")
      this.#journal.event({ reason: "ContainerGCFailed", message, at, passId: null });
    if (name === "pressure" && failures > 1 && isRested(this.#unrelievedAt, at)) {
      this.#unrelievedAt = at;
      const text = `Cannot relieve disk pressure: ${message}`;
      this.#journal.event({ reason: "ImageGCFailed", message: text, at, passId: null });
    }
  }

  /**
   * Raises `EvictionThresholdMet` when a threshold becomes due, once while the condition lasts. The kubelet raises it
   * with each attempt, for the one threshold that it acts on.
   */
  pressure(verdict: PressureVerdict, at: Instant, compat: Compat = "none"): void {
    const news =
      compat === "kubelet"
        ? verdict.due.slice(0, 1)
        : verdict.due.filter((one) => !this.#due.has(keyOf(one)));
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

  #isNews(event: Event, plan: ImagePlan): boolean {
    if (OF_DISKS.includes(event.reason)) return this.#isDiskNews(event, plan);
    const key = keyOfEvent(event);
    const isNews = !this.#reported.has(key);
    this.#reported.add(key);
    return isNews;
  }

  /** States that no longer last, and the oldest ghosts. */
  #forgetReported(current: ReadonlySet<string>): void {
    const ghosts: string[] = [];
    for (const key of this.#reported) {
      if (key.startsWith("GhostImage ")) ghosts.push(key);
      else if (!current.has(key)) this.#reported.delete(key);
    }
    for (const key of ghosts.slice(0, Math.max(0, ghosts.length - GHOSTS_MAX)))
      this.#reported.delete(key);
  }

  #isDiskNews({ reason, at }: Event, plan: ImagePlan): boolean {
    const states: readonly (Futility | null)[] =
      plan.futility.length === 0 ? [null] : plan.futility;
    const news = states.filter((state) => {
      const key = keyOfDisk(reason, state);
      return !this.#isSaid(key, state) && isRested(this.#disksAt.get(key), at);
    });
    for (const state of news) {
      this.#disks.set(keyOfDisk(reason, state), state);
      this.#disksAt.set(keyOfDisk(reason, state), at);
    }
    return news.length > 0;
  }

  #isSaid(key: string, state: Futility | null): boolean {
    const before = this.#disks.get(key);
    if (before === undefined) return false;
    return before === null || state === null || !futilityDiffers(before, state);
  }
}

const keyOfEvent = ({ reason, message }: Event): string => `${reason} ${message}`;

const keyOfDisk = (reason: Event["reason"], futility: Futility | null): string =>
  futility === null
    ? reason
    : `${reason} ${futility.inodes === undefined ? "bytes" : "inodes"} ${futility.filesystem}`;

/** Whether a disk or a budget is no longer as it was reported, so that it is news if it comes back. */
function hasChanged(state: Futility | null, { purpose, triggers, usage }: ImagePlan): boolean {
  if (state === null)
    return purpose === "periodic" && !triggers.some(({ kind }) => kind === "budget");
  const disk = usage.find(({ filesystem }) => filesystem.path === state.filesystem)?.filesystem;
  if (disk === undefined) return false;
  return state.inodes === undefined
    ? apart(state.breakdown.availableBytes, disk.availableBytes, disk.capacityBytes)
    : apart(state.inodes.free, disk.inodesFree, disk.inodes);
}

/** Whether the last report is old enough, or the clock was set back since. */
function isRested(reportedAt: Instant | undefined, at: Instant): boolean {
  if (reportedAt === undefined) return true;
  const span = at > reportedAt ? since(at, reportedAt) : since(reportedAt, at);
  return span >= REST;
}

const isPowerOfTwo = (count: number): boolean => Number.isInteger(Math.log2(count));
