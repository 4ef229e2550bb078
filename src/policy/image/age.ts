/** Selects images to remove for their age, whatever the disk usage. */
import type { ImageLimits } from "../../model/limits.ts";
import { type Instant, type Watched, watchedSince } from "../../model/time.ts";
import { type Ranked, unusedFor } from "./rank.ts";

export interface AgeContext {
  /** With a maximum age above 0; at 0 there is none. */
  readonly limits: Pick<ImageLimits, "maximumAge" | "compat">;
  readonly watched: Watched;
  /** When the agent started; `null` without an agent. */
  readonly startedAt: Instant | null;
}

/** Whether the image was unused for longer than the maximum age, whatever protects it. */
export function isPastMaximumAge({ record }: Ranked, context: AgeContext): boolean {
  const { limits, watched, startedAt } = context;
  if (limits.compat === "none") return unusedFor(record, watched) > limits.maximumAge;
  // The kubelet forgets with each start, so it judges no age before it has run for one maximum age itself. The memory of an
  // agent that forgets like it begins at 0.
  if (startedAt === null || watched <= limits.maximumAge) return false;
  const { lastUsedWatched } = record;
  return lastUsedWatched === null || watchedSince(watched, lastUsedWatched) > limits.maximumAge;
}
