/** A moment as it is written on a command line: a time, a day, or how long ago. */

import { parseDuration } from "../config/duration.ts";
import { quoted } from "../config/value.ts";
import { ConfigError } from "../model/errors.ts";
import { fromRfc3339, type Instant, instant } from "../model/time.ts";

/** `2026-01-15T12:00:00Z`, `2026-01-15` (its beginning in UTC), or `2h` (so long before `now`). Throws `ConfigError`. */
export function momentOf(text: string, source: string, now: Instant): Instant {
  const time = fromRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time !== null) return time;
  const ago = parseDuration(text);
  if (ago !== null && ago >= 0n) return instant(now - ago);
  const message = `${quoted(text)} is no moment; expected a time such as 2026-01-15T12:00:00Z, a day such as 2026-01-15, or how long ago, such as 36h`;
  throw new ConfigError([{ source, text, message }]);
}
