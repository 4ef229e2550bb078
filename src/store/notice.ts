// What the store tells whoever opened it: each line is said once, when it happens.

import type { StoreErrorKind } from "../model/errors.ts";

export interface StoreNotice {
  readonly kind:
    "broken-moved-aside" | "memory-only" | "write-failed" | "write-recovered" | "records-lost";
  /** `null` where nothing failed. */
  readonly error: StoreErrorKind | null;
  readonly message: string;
}
