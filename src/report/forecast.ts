/** Words the forecast of a filesystem. */

import type { Forecast } from "../model/disk-usage.ts";
import { humanBytes, humanDuration } from "./bytes.ts";

/** `reaches 85% in 6h, full in 21h if nothing is removed, at 1.2 GiB/h (measured over 18h)`. */
export function forecastWords(forecast: Forecast, highPercent: number | null): string {
  const { bytesPerHour, span } = forecast;
  const when = [...highWords(forecast, highPercent), fullWords(forecast)];
  const known =
    forecast.untilHigh === null && forecast.untilFull === null ? when.slice(0, 1) : when;
  return `${known.join(", ")}, at ${humanBytes(bytesPerHour)}/h (measured over ${humanDuration(span)})`;
}

function highWords(
  { untilHigh, horizon }: Forecast,
  highPercent: number | null,
): readonly string[] {
  if (highPercent === null || highPercent >= 100 || untilHigh === 0n) return [];
  return untilHigh === null
    ? [`does not reach ${highPercent}% within ${humanDuration(horizon)}`]
    : [`reaches ${highPercent}% in ${humanDuration(untilHigh)}`];
}

const fullWords = ({ untilFull, horizon }: Forecast): string =>
  untilFull === null
    ? `not full within ${humanDuration(horizon)}`
    : `full in ${humanDuration(untilFull)} if nothing is removed`;
