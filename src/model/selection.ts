/** What a removal by hand is limited to. Nothing here removes more: every rule that keeps an image keeps it all the same. */

import type { ImageId } from "./ids.ts";
import type { Duration } from "./time.ts";

export type Criterion =
  /** Images that were named. */
  | { readonly kind: "id"; readonly id: ImageId }
  /** A keep pattern matches one of its names. */
  | { readonly kind: "reference"; readonly pattern: string }
  /** Unused for at least this observed time. */
  | { readonly kind: "unused-for"; readonly span: Duration }
  /** Without a tag. */
  | { readonly kind: "untagged" }
  /** Of more than this reported size. */
  | { readonly kind: "larger-than"; readonly bytes: bigint }
  /** Containers, sandboxes and logs of the namespace, and images that its containers use. */
  | { readonly kind: "namespace"; readonly name: string };

/** An image is selected if, of each kind that is given, one criterion fits. */
export type Selection = readonly Criterion[];
