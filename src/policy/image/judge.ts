/** Judges every image of a snapshot once: its users, its protection, and what blocks all removal. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import { type ImageRecord, unusedRecord } from "../../model/ledger.ts";
import type { Selection } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import { imageBlocks } from "../blocks.ts";
import { once } from "../by-object.ts";
import type { Facts } from "../facts.ts";
import { compileKeepRules } from "../keep/keep.ts";
import { selectedImages } from "../selection.ts";
import { distinctImages, namesText } from "./image-index.ts";
import type { ProtectionContext } from "./protect.ts";
import { compareImages, type Ranked } from "./rank.ts";
import { repositoryPlaces } from "./repositories.ts";
import { sandboxNames } from "./sandbox-image.ts";
import { type Usage, usageOf } from "./usage.ts";

/** The input for judging images, in addition to the facts. */
export interface Among {
  /** Containers that the same plan removes first; images are judged as if they were removed. */
  readonly without: ReadonlySet<ContainerId>;
  /** The selection of a removal by hand. */
  readonly selection: Selection | null;
}

export interface Judgement {
  /** Each listed image once, in the order of removal. Computed when needed: mostly nothing has to be removed. */
  readonly images: () => readonly Ranked[];
  /** One of them; without the order, which takes longer than all else. */
  readonly image: (id: ImageId) => Ranked | undefined;
  readonly usage: Usage;
  readonly context: () => ProtectionContext;
  /** Reasons other than the state of the disk for which no image may be removed. */
  readonly blocks: readonly ImageBlock[];
}

export function judgeImages(facts: Facts, { without, selection }: Among): Judgement {
  const { snapshot, ledger } = facts;
  const limits = facts.limits.images;
  const usage = usageOf(snapshot, without);
  const keep = compileKeepRules(snapshot.keep.rules);
  const distinct = once(() =>
    distinctImages(snapshot.images, limits.compat === "kubelet" ? "last" : "any"),
  );
  const ranked = (image: Image): Ranked => ({ image, record: recordOf(facts, image) });
  const images = once(() =>
    distinct().map(ranked).toSorted(compareImages(limits.compat, ledger.origins)),
  );
  const byId = once(() => {
    const map = new Map<ImageId, Image>();
    for (const image of distinct()) map.set(image.id, image);
    return map;
  });
  const tags = once(() => new Set(snapshot.images.flatMap(({ repoTags }) => repoTags)));
  const context = once((): ProtectionContext => ({
    limits,
    users: usage.users,
    released: releasedImages(snapshot, without, usage),
    keep,
    get tags() {
      return tags();
    },
    sandbox: sandboxNames(snapshot, limits.infraImages),
    places: limits.keepPerRepository > 0 ? repositoryPlaces(images()) : new Map(),
    selected:
      selection === null
        ? null
        : selectedImages(images(), selection, { snapshot, watched: ledger.watched }),
    now: snapshot.clocks.wall,
    watched: ledger.watched,
    ageRestartedWatched: ledger.ageRestartedWatched,
  }));
  const blocks = imageBlocks(facts, usage, [...snapshot.keep.problems, ...keep.problems]);
  const image = (id: ImageId): Ranked | undefined => {
    const listed = byId().get(id);
    return listed === undefined ? undefined : ranked(listed);
  };
  return { images, image, usage, context, blocks };
}

/** An image without a record is new. */
function recordOf({ snapshot, ledger }: Facts, image: Image): ImageRecord {
  const known = ledger.images.get(image.id);
  if (known !== undefined) return known;
  return unusedRecord({
    firstSeenAt: snapshot.clocks.wall,
    firstSeenWatched: ledger.watched,
    names: namesText(image),
    sizeBytes: image.sizeBytes,
  });
}

function releasedImages(
  snapshot: Snapshot,
  without: Among["without"],
  usage: Usage,
): ReadonlySet<ImageId> {
  if (without.size === 0) return new Set();
  return new Set([...usageOf(snapshot).users.keys()].filter((id) => !usage.users.has(id)));
}
