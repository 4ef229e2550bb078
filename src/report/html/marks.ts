/** The time axis of a chart: labels, and marks of passes and events with their text on hover and focus. */

import type { PassRow } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import { hours, type Instant, instant, toRfc3339 } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { counted, humanBytes } from "../bytes.ts";
import type { HistoryReport } from "../document/history.ts";
import { containerEndWords, endWords, eventTitle, passTitle } from "../pass-words.ts";
import { present } from "../terminal.ts";
import { type Period, placeIn } from "./disk-series.ts";
import { type Html, html } from "./text.ts";

export interface Mark {
  readonly at: Instant;
  readonly kind: "pass" | "failed" | "event";
  readonly text: string;
}

/** More would overlap; the newest are shown. */
const MARKS_SHOWN = 80;

/** One mark per pass that removed something or failed, and per event. */
export function marksOf({ passes, events }: HistoryReport): readonly Mark[] {
  return [
    ...passes.filter((pass) => pass.removed + pass.failed > 0 || pass.error !== null).map(passMark),
    ...events.map(eventMark),
  ]
    .toSorted((one, other) => (one.at < other.at ? -1 : 1))
    .slice(-MARKS_SHOWN);
}

function passMark(pass: PassRow): Mark {
  const freed = pass.measuredFreedBytes ?? 0n;
  const end =
    pass.error ??
    (pass.imagesEnd === null
      ? containerEndWords(pass.containersEnd ?? "done")
      : endWords(pass.imagesEnd, pass.purpose));
  const parts = present([
    `${pass.removed} removed`,
    freed > 0n && `${humanBytes(freed)} freed`,
    pass.failed > 0 && `${pass.failed} failed`,
    end,
  ]);
  return {
    at: pass.startedAt,
    kind: pass.error !== null || pass.failed > 0 ? "failed" : "pass",
    text: `${capitalised(passTitle(pass.kind))}: ${parts.join(", ")}`,
  };
}

const eventMark = ({ at, reason, message }: Event): Mark => ({
  at,
  kind: "event",
  text: `${capitalised(eventTitle(reason))}: ${message}`,
});

export function marksStrip(marks: readonly Mark[], period: Period): Html | null {
  if (marks.length === 0) return null;
  return html`<div
    class="marks"
    role="group"
    aria-label="${counted(marks.length, "pass or event", "passes and events")}"
  >
    ${marks.map((mark) => markOf(mark, placeIn(period, mark.at)))}
  </div>`;
}

// The text opens to the side with room for it.
const markOf = ({ at, kind, text }: Mark, place: number): Html =>
  html`<span
    class="mark ${kind}${place > 0.5 ? " late" : ""}"
    style="left:${(100 * place).toFixed(2)}%"
    tabindex="0"
    role="img"
    aria-label="${minuteLabel(at)} ${text}"
    ><span class="tip">${minuteLabel(at)} UTC<br />${text}</span></span
  >`;

const DAY = hours(24);
/** From a quarter of an hour to 90 days. */
const STEPS = [0.25, 1, 3, 6, 12, 24, 2 * 24, 7 * 24, 14 * 24, 30 * 24, 90 * 24].map(hours);
const LABELS_MAXIMUM = 8;

/** Labels at round times of UTC; a narrow screen shows every other one. */
export function timeAxis(period: Period): Html {
  const span = period.to - period.from;
  const step = STEPS.find((it) => span / it <= LABELS_MAXIMUM) ?? span;
  const label = step >= DAY ? dayLabel : minuteLabel;
  const first = (period.from / step + 1n) * step;
  const count = span <= 0n ? 0 : Number((period.to - first) / step) + 1;
  const times = Array.from({ length: count }, (_, index) => instant(first + BigInt(index) * step));
  return html`<div class="times" aria-hidden="true">
    ${times.map((at) => html`<span style="left:${(100 * placeIn(period, at)).toFixed(2)}%">${label(at)}</span>`)}
  </div>`;
}

const dayLabel = (at: Instant): string => toRfc3339(at).slice(5, 10);
const minuteLabel = (at: Instant): string => toRfc3339(at).slice(5, 16).replace("T", " ");
