/** Judges every image of a snapshot once: who uses it, what protects it, and what forbids any removal. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { ImageLimits } from "../../model/limits.ts";
import type { PodSourceState } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Selection } from "../../model/selection.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import type { Duration, Instant } from "../../model/time.ts";
import { standingBlocks } from "../blocks.ts";
import { compileKeepRules } from "../keep/keep.ts";
import { selectedImages } from "../selection.ts";
import { distinctImages, namesText } from "./image-index.ts";
import type { ProtectionContext } from "./protect.ts";
import { compareImages, type Ranked } from "./rank.ts";
import { repositoryPlaces } from "./repositories.ts";
import { sandboxNames } from "./sandbox-image.ts";
import { type Usage, usageOf } from "./usage.ts";

export interface Hold {
  /** `null`: until it is released. */
  readonly until: Instant | null;
  readonly reason: string;
}

export interface JudgeImages {
  readonly snapshot: Snapshot;
  /** As remembered after this snapshot. */
  readonly ledger: Ledger;
  readonly limits: ImageLimits;
  readonly hold: Hold | null;
  /** Containers that the same plan removes first; images are judged as if they were gone. */
  readonly without: ReadonlySet<ContainerId>;
  /** Whether the pod source may be believed, where that was judged; `null`: the reading itself is all there is. */
  readonly podSource: PodSourceState | null;
  /** What a removal by hand is limited to; none by default. */
  readonly selection?: Selection | null;
  /** How long this pass has already waited for starting pods; 0 at first. */
  readonly waitedForPods: Duration;
}

export interface Judgement {
  /** Each listed image once, in the order of removal. */
  readonly images: readonly Ranked[];
  readonly usage: Usage;
  readonly context: ProtectionContext;
  /** Reasons, beside the state of the disk, for which no image at all may go. */
  readonly blocks: readonly ImageBlock[];
}

export function judgeImages(input: JudgeImages): Judgement {
  const { snapshot, ledger, limits, without } = input;
  const usage = usageOf(snapshot, without);
  const keep = compileKeepRules(snapshot.keep.rules);
  const images = distinctImages(snapshot.images, limits.compat === "kubelet" ? "last" : "any")
    .map((image) => ({ image, record: recordOf(input, image) }))
    .toSorted(compareImages(limits.compat, ledger.origins));
  const context: ProtectionContext = {
    limits,
    users: usage.users,
    released: releasedImages(input, usage),
    keep,
    tags: new Set(snapshot.images.flatMap(({ repoTags }) => repoTags)),
    sandbox: sandboxNames(snapshot, limits.infraImages),
    places: limits.keepPerRepository > 0 ? repositoryPlaces(images, limits.compat) : new Map(),
    selected:
      (input.selection ?? null) === null
        ? null
        : selectedImages(images, input.selection ?? [], { snapshot, watched: ledger.watched }),
    now: snapshot.clocks.wall,
    watched: ledger.watched,
  };
  const blocks = standingBlocks({
    ...input,
    usage,
    keepProblems: [...snapshot.keep.problems, ...keep.problems],
  });
  return { images, usage, context, blocks };
}

/** An image that nobody remembers is new. */
function recordOf({ snapshot, ledger }: JudgeImages, image: Image): ImageRecord {
  const known = ledger.images.get(image.id);
  if (known !== undefined) return known;
  return {
    firstSeenAt: snapshot.clocks.wall,
    firstSeenWatched: ledger.watched,
    lastUsedAt: null,
    lastUsedWatched: null,
    names: namesText(image),
    earlierNames: [],
    sizeBytes: image.sizeBytes,
    ghost: null,
  };
}

function releasedImages({ snapshot, without }: JudgeImages, usage: Usage): ReadonlySet<ImageId> {
  if (without.size === 0) return new Set();
  return new Set([...usageOf(snapshot).users.keys()].filter((id) => !usage.users.has(id)));
}
