/** Filesystems on which three removals freed nothing: images there are kept until the disk changes. */

import type { ImageOutcome } from "../../model/outcome.ts";
import type { ImagePlan } from "../../model/plan.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import { apart } from "./futility.ts";

/** Otherwise each pass would remove three more images in vain, every ten seconds under pressure. */
export class NoGainDevices {
  readonly #disks = new Map<string, Filesystem>();

  /** Devices that have not changed since nothing was gained there. */
  among(filesystems: readonly Filesystem[]): ReadonlySet<string> {
    for (const now of filesystems) {
      const then = this.#disks.get(now.device);
      if (then !== undefined && hasChanged(then, now)) this.#disks.delete(now.device);
    }
    return new Set(this.#disks.keys());
  }

  /** Records the end of a pass whose plan was based on these filesystems. */
  note(plan: ImagePlan, outcome: ImageOutcome, filesystems: readonly Filesystem[]): void {
    if (outcome.end !== "nothing-freed") return;
    for (const target of plan.targets) {
      if (target.kind !== "available-bytes" && target.kind !== "free-inodes") continue;
      const filesystem = filesystems.find(({ device }) => device === target.device);
      if (filesystem !== undefined) this.#disks.set(target.device, filesystem);
    }
  }
}

const hasChanged = (then: Filesystem, now: Filesystem): boolean =>
  then.capacityBytes !== now.capacityBytes ||
  apart(then.availableBytes, now.availableBytes, now.capacityBytes) ||
  apart(then.inodesFree, now.inodesFree, now.inodes);
