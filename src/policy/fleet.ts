/** Many nodes by their snapshots, one at a time: which images how many of them have and use. Remembers images, not nodes. */
import type { FleetFigures, FleetImage } from "../model/reports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { compared } from "../model/values.ts";
import { distinctImages } from "./image/image-index.ts";
import { wholeDigest } from "./image/reference.ts";
import { usageOf } from "./image/usage.ts";
import { parseKeepPattern } from "./keep/keep-pattern.ts";

export class Fleet {
  readonly #images = new Map<string, FleetImage>();

  /** The node's own figures; its images count from now on. Each node must be added once. */
  add(name: string, snapshot: Snapshot): FleetFigures {
    const images = distinctImages(snapshot.images, "any");
    const { users } = usageOf(snapshot);
    for (const { id, repoTags, repoDigests, sizeBytes } of images) {
      const key = wholeDigest(id) ?? id;
      const before = this.#images.get(key);
      const names = [...repoTags, ...repoDigests];
      const first = before?.name ?? names.find(isPattern) ?? key;
      const isEverywhere =
        names.includes(first) && (before === undefined || before.pattern === first);
      this.#images.set(key, {
        id: key,
        name: first,
        pattern: isEverywhere || !isPattern(key) ? first : key,
        sizeBytes:
          before === undefined || before.sizeBytes < sizeBytes ? sizeBytes : before.sizeBytes,
        nodes: (before?.nodes ?? 0) + 1,
        usedOn: (before?.usedOn ?? 0) + Number(users.has(id)),
        onlyOn: before === undefined ? name : null,
      });
    }
    const disk = snapshot.filesystems.find(({ roles }) => roles.includes("imagefs"));
    return {
      name,
      observedAt: snapshot.observedAt,
      images: images.length,
      imagesBytes: images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n),
      unusedImages: images.filter(({ id }) => !users.has(id)).length,
      capacityBytes: disk?.capacityBytes ?? null,
      availableBytes: disk?.availableBytes ?? null,
    };
  }

  /** The images on the fewest nodes first, of these the largest. */
  images(): readonly FleetImage[] {
    return [...this.#images.values()].toSorted(
      (one, other) =>
        one.nodes - other.nodes ||
        compared(other.sizeBytes, one.sizeBytes) ||
        compared(one.id, other.id),
    );
  }
}

const isPattern = (name: string): boolean => parseKeepPattern(name).kind === "valid";
