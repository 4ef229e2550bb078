/** What a pass wants, in one sentence a target. */

import { assertNever } from "../model/assert.ts";
import type { ImageTarget } from "../model/plan.ts";
import { counted, humanBytes } from "./bytes.ts";
import { clean } from "./terminal.ts";
import { triggerWords } from "./words.ts";

export function targetWords(target: ImageTarget): string {
  const why = triggerWords(target.trigger);
  switch (target.kind) {
    case "available-bytes":
      return `free ${humanBytes(target.wantedBytes)} on ${clean(target.path)} (until ${humanBytes(target.availableBytes)} are available): ${why}`;
    case "free-inodes":
      return `free ${counted(target.wantedInodes, "inode")} on ${clean(target.path)} (until ${target.inodesFree} are free): ${why}`;
    case "store-bytes":
      return `shrink the image store by ${humanBytes(target.wantedBytes)} (to ${humanBytes(target.maximumBytes)}): ${why}`;
    case "image-count":
      return `remove ${counted(target.wantedImages, "image")} (down to ${target.maximumImages}): ${why}`;
    case "everything":
      return `remove every image that may go: ${why}`;
    default:
      return assertNever(target);
  }
}
