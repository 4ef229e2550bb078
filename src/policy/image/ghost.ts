/** Images that are still listed after their removal: when they are tried again, and from when on they are kept. */

import type { Ghost, ImageRecord, Ledger } from "../../model/ledger.ts";
import type { Image, RuntimeInfo } from "../../model/snapshot.ts";
import { hours, type Watched, watched } from "../../model/time.ts";
import { withEntry } from "../../model/values.ts";
import { releaseKey } from "../version.ts";

/** A ghost is tried again after an hour, which doubles with each attempt up to this. */
const PAUSE_HOURS_MAX = 24;

export interface GhostAttempt {
  readonly image: Pick<Image, "id">;
  readonly record: ImageRecord;
  /** `cut-off`: the runtime went away during the call. */
  readonly end: "answered" | "unanswered" | "cut-off";
  readonly runtime: RuntimeInfo;
}

/** Records an image that is still listed although its removal succeeded, timed out or was cut off. */
export function rememberGhost(ledger: Ledger, attempt: GhostAttempt): Ledger {
  if (ledger.observedAt === null) return ledger;
  const { image, end, runtime } = attempt;
  const record = ledger.images.get(image.id) ?? attempt.record;
  const before = record.ghost;
  const answered = before?.answeredWatched ?? null;
  const wasRetriedAtOnce = before?.retriedAtOnce === true;
  const isAtOnce = end === "cut-off" && !wasRetriedAtOnce;
  const retriedAtOnce = isAtOnce || wasRetriedAtOnce;
  const attempts = (before?.attempts ?? 0) + 1;
  const pauses = Math.max(1, attempts - Number(retriedAtOnce));
  const pauseHours = Math.min(2 ** Math.min(pauses - 1, 10), PAUSE_HOURS_MAX);
  const ghost: Ghost = {
    since: before?.since ?? ledger.observedAt,
    attempts,
    retryWatched: isAtOnce ? ledger.watched : watched(ledger.watched + hours(pauseHours)),
    answeredWatched: answered ?? (end === "answered" ? ledger.watched : null),
    isFinal: end === "answered" && answered !== null && ledger.watched - answered >= hours(1),
    names: null,
    runtime: releaseKey(runtime),
    instance: runtime.instance,
    retriedAtOnce,
  };
  return { ...ledger, images: withEntry(ledger.images, image.id, { ...record, ghost }) };
}

/** The ghost at this observation; the same object if nothing changed, `null` if it may be removed like any image. */
export function ghostNow(
  ghost: Ghost,
  {
    names,
    runtime,
    now,
  }: { readonly names: string; readonly runtime: RuntimeInfo; readonly now: Watched },
): Ghost | null {
  if (ghost.isFinal) {
    if (ghost.runtime !== releaseKey(runtime)) return null;
    if (ghost.names === null) return { ...ghost, names };
    return ghost.names === names ? ghost : null;
  }
  const isRestarted =
    ghost.instance !== "" && runtime.instance !== "" && ghost.instance !== runtime.instance;
  if (!isRestarted || ghost.retriedAtOnce || ghost.retryWatched <= now) return ghost;
  return { ...ghost, retryWatched: now, retriedAtOnce: true };
}
