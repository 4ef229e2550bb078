/**
 * What the kubelet's pull records say of images, settled when an image is first seen: the kubelet prunes records of
 * images in use, keeps those of removed images, and makes records for images that it did not pull.
 */
import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { PullIntent, PullIntentRecord, PullState } from "../../model/records.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import { hours, type ObservedTime, watchedSince } from "../../model/time.ts";
import { sameOr } from "../by-object.ts";
import { indexImages, listedImages, namesText, possibleImages } from "./image-index.ts";
import { isLoaded } from "./protect.ts";

/**
 * An older intent is of a pull that a crash interrupted. Counts from when crigc first saw it: the time of its file is
 * that of a wall clock, which may have been set since.
 */
const PULL_MAX = hours(1);
/** A pulled image is listed soon after its intent ended. */
const ENDED_KEPT = hours(24);

/** Whatever the kubelet's records say later, this holds while the image is listed. */
export const isSettled = (record: Pick<ImageRecord, "pull"> | undefined): boolean =>
  record?.pull === "pulled" || record?.pull === "no-record";

/** Images with a name that the kubelet is pulling, and that name. */
export function pullsUnderWay(
  { images, pulls }: Pick<Snapshot, "images" | "pulls">,
  { pullIntents, watched }: Pick<Ledger, "pullIntents" | "watched">,
): ReadonlyMap<ImageId, string> {
  const intents = intentsNow(pulls.intents, pullIntents, watched);
  return imagesNamed(images, intents, (intent) => isUnderWay(intent, watched));
}

export const isUnderWay = (
  { endedWatched, firstSeenWatched }: PullIntentRecord,
  now: ObservedTime,
): boolean => endedWatched === null && watchedSince(now, firstSeenWatched) < PULL_MAX;

function imagesNamed(
  images: readonly Image[],
  intents: Ledger["pullIntents"],
  counts: (intent: PullIntentRecord) => boolean,
): ReadonlyMap<ImageId, string> {
  const named = new Map<ImageId, string>();
  for (const [name, intent] of intents) {
    if (!counts(intent)) continue;
    const listed = listedImages(indexImages(images), name);
    const doubt = { failed: false, mayBeId: false };
    const ids = listed.length > 0 ? listed : possibleImages(images, name, doubt);
    for (const id of ids) named.set(id, name);
  }
  return named;
}

function intentsNow(
  intents: readonly PullIntent[] | null,
  before: Ledger["pullIntents"],
  now: ObservedTime,
): Ledger["pullIntents"] {
  if (intents === null) return before;
  const after = new Map<string, PullIntentRecord>();
  for (const { image, markedAt } of intents) {
    const known = before.get(image);
    const isSame = known?.markedAt === markedAt && known.endedWatched === null;
    after.set(image, isSame ? known : { markedAt, firstSeenWatched: now, endedWatched: null });
  }
  for (const [image, intent] of before) {
    if (after.has(image)) continue;
    const { endedWatched } = intent;
    if (endedWatched === null) after.set(image, { ...intent, endedWatched: now });
    else if (watchedSince(now, endedWatched) < ENDED_KEPT) after.set(image, intent);
  }
  return sameOr(before, after);
}

/** One observation: what the images are now, and what the ledger remembers of the kubelet's records. */
export class PullMemory {
  readonly #ledger: Ledger;
  readonly #snapshot: Snapshot;
  readonly #now: ObservedTime;
  readonly #underWay: ReadonlyMap<ImageId, string>;
  readonly #unreadable: ReadonlySet<ImageId>;
  readonly intents: Ledger["pullIntents"];

  /** `ledger`: before this observation, without images that it does not list. */
  constructor(ledger: Ledger, snapshot: Snapshot, now: ObservedTime) {
    this.#ledger = ledger;
    this.#snapshot = snapshot;
    this.#now = now;
    this.intents = intentsNow(snapshot.pulls.intents, ledger.pullIntents, now);
    this.#unreadable = new Set(snapshot.pulls.kind === "read" ? snapshot.pulls.unreadable : []);
    this.#underWay = pullsUnderWay(snapshot, { pullIntents: this.intents, watched: now });
  }

  /** `null`: unknown, so that the next observation decides. */
  stateOf(image: Image): PullState | null {
    const before = this.#ledger.images.get(image.id);
    if (before !== undefined && isSettled(before))
      return this.#isReplaced(image, before) ? "no-record" : before.pull;
    if (this.#underWay.has(image.id)) return "pulling";
    const { pulls } = this.#snapshot;
    if (pulls.kind === "failed" || this.#unreadable.has(image.id)) return null;
    if (!pulls.recorded.has(image.id)) return "no-record";
    const since = this.#keysOf(image.id)
      .flatMap((key) => this.#ledger.outlivedPulls.get(key) ?? [])
      .toSorted((one, other) => Number(other - one))[0];
    return since === undefined || this.#isPulledSince(image, since) ? "pulled" : "no-record";
  }

  /** Pulled images keep a digest of their repository in containerd; one that lost it came back between two lists. */
  #isReplaced(image: Image, before: ImageRecord): boolean {
    if (namesText(image) === before.names) return false;
    const hasName = image.repoTags.length + image.repoDigests.length > 0;
    const repoDigests = before.names.split("\n").filter((name) => name.includes("@"));
    return this.#isContainerd() && hasName && isLoaded(image) && !isLoaded({ repoDigests });
  }

  #isContainerd(): boolean {
    return this.#snapshot.runtime.name === "containerd";
  }

  /**
   * A record outlives its image, so it does not tell how an image came back. In containerd only a pull gives it a digest
   * of its repository. Elsewhere it must be listed once its intent has ended: a pull that fails leaves no image, and the
   * image may then be loaded instead.
   */
  #isPulledSince(image: Image, since: ObservedTime): boolean {
    if (this.#isContainerd()) return !isLoaded(image);
    // An intent that lasted longer was of an interrupted pull, whatever ended it.
    const ended = ({ endedWatched, firstSeenWatched }: PullIntentRecord): boolean =>
      endedWatched !== null &&
      endedWatched > since &&
      endedWatched >= this.#ledger.watched &&
      watchedSince(endedWatched, firstSeenWatched) < PULL_MAX;
    return imagesNamed(this.#snapshot.images, this.intents, ended).has(image.id);
  }

  /** `images`: their records after this observation. */
  outlived(images: Ledger["images"]): Ledger["outlivedPulls"] {
    const { pulls } = this.#snapshot;
    const before = this.#ledger.outlivedPulls;
    if (pulls.kind === "failed") return before;
    const after = new Map(pulls.unlisted.map((file) => [file, before.get(file) ?? this.#now]));
    for (const [id, record] of images)
      for (const key of isSettled(record) ? [] : this.#keysOf(id)) {
        const since = before.get(key);
        if (since !== undefined) after.set(key, since);
      }
    return sameOr(before, after);
  }

  #keysOf(id: ImageId): readonly string[] {
    const { pulls } = this.#snapshot;
    return [id, ...((pulls.kind === "read" && pulls.recorded.get(id)) || [])];
  }
}

/** For images that are dropped from the ledger: a record that names one may outlive it. */
export const forgottenPulls = (
  { images, outlivedPulls, watched }: Ledger,
  dropped: readonly ImageId[],
): Ledger["outlivedPulls"] => {
  const settled = dropped.filter((id) => isSettled(images.get(id)));
  return settled.length === 0
    ? outlivedPulls
    : new Map([...outlivedPulls, ...settled.map((id) => [id, watched] as const)]);
};
