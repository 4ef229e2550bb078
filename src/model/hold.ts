/** A hold: collection is paused until it expires or is released. */

import type { Instant } from "./time.ts";

export type HoldState =
  | { readonly kind: "none" }
  | {
      readonly kind: "held";
      /** `null`: until it is released. */
      readonly until: Instant | null;
      readonly since: Instant | null;
      readonly reason: string;
    };
