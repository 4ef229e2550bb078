/** A pass's unique name, sortable by time. */

import { type PassId, passId } from "../model/ids.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";

/** `20260101T000000Z-1a2b3c`; `random` is any 24 bits. */
export function makePassId(now: Instant, random: number): PassId {
  const stamp = toRfc3339(now).slice(0, 19).replaceAll(/[-:]/g, "");
  return passId(`${stamp}Z-${(random & 0xffffff).toString(16).padStart(6, "0")}`);
}
