/** The triggers of image removal in one pass: the targets of its purpose, without those that images cannot reach. */
import { assertNever } from "../../model/assert.ts";
import type { Compat } from "../../model/limits.ts";
import type { Futility, ImageTarget, Purpose } from "../../model/plan.ts";
import type { ImageBlock, ImageTrigger } from "../../model/reason.ts";
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import type { Facts } from "../facts.ts";
import { gainOf } from "../layer/gain.ts";
import { layersCount } from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import { type DiskTarget, futilityOf, type KnownLayers } from "../space/futility.ts";
import { pausesOf } from "../space/nothing-freed.ts";
import {
  type DiskJudgement,
  imageFilesystems,
  judgeDisks,
  storeTargets,
} from "../space/targets.ts";
import type { Judgement } from "./judge.ts";

export interface Asked {
  readonly disks: DiskJudgement;
  /** Everything that is met, futile or not. */
  readonly triggers: readonly ImageTrigger[];
  /** What a pass frees down to. */
  readonly targets: readonly ImageTarget[];
  readonly futility: readonly Futility[];
  /** Conditions of the disk that block removal. */
  readonly blocks: readonly ImageBlock[];
  /** Where removals gave no space back, of the filesystems that count here. */
  readonly nothingFreed: NothingFreed;
}

export interface NothingFreed {
  /** No image is removed there for now; reported if nothing else triggers. */
  readonly paused: readonly Extract<ImageBlock, { readonly kind: "nothing-freed" }>[];
  /** Paths of those on which one image may be tried. */
  readonly tried: readonly string[];
  /** Whether all that hold images are paused, so that no age, count or budget removes any. */
  readonly isStorePaused: boolean;
}

export function asked(input: Facts, judgement: Judgement): Asked {
  const disks = judgeDisks(input.snapshot, input.limits.images);
  const wanted = wantedTargets(input, disks).map((target) => judgeTarget(input, judgement, target));
  const collects = input.limits.images.whenFutile === "collect";
  const hopeless = hopelessDevices(wanted);
  const pauses = pausesOf(input);
  const nothingFreed = nothingFreedOf(input, pauses);
  // Other triggers (an age, a budget, another disk) are not futile because one disk is.
  const useful = wanted.filter(
    ({ target, futility }) =>
      !isPaused(target, pauses, nothingFreed) &&
      (collects ||
        !(futility?.futile === true || (isOfPressure(target) && hopeless.has(target.device)))),
  );
  return {
    disks,
    triggers: distinctTriggers(wanted.map(({ target }) => target)),
    targets: useful.map(({ target }) => target),
    futility: wanted.flatMap(({ futility }) => (futility === null ? [] : [futility])),
    blocks: looksAtDisks(input.purpose, input.limits.images.compat) ? disks.blocks : [],
    nothingFreed,
  };
}

/** By device, how long each is paused. */
type Pauses = ReturnType<typeof pausesOf>;

function nothingFreedOf({ snapshot, limits }: Facts, pauses: Pauses): NothingFreed {
  const known = snapshot.filesystems.flatMap(({ device, path }) => {
    const remaining = pauses.get(device);
    return remaining === undefined ? [] : [{ filesystem: path, remaining }];
  });
  const stores = imageFilesystems(snapshot, limits.images);
  return {
    paused: known
      .filter(({ remaining }) => remaining > 0n)
      .map((one) => ({ kind: "nothing-freed", ...one })),
    tried: known.filter(({ remaining }) => remaining === 0n).map(({ filesystem }) => filesystem),
    isStorePaused:
      stores.length > 0 && stores.every(({ device }) => (pauses.get(device) ?? 0n) > 0n),
  };
}

const isPaused = (target: ImageTarget, pauses: Pauses, { isStorePaused }: NothingFreed): boolean =>
  "device" in target ? (pauses.get(target.device) ?? 0n) > 0n : isStorePaused;

/** The blocks to report if every target is futile and there is no other trigger. */
export const futileBlocks = (futility: readonly Futility[]): readonly ImageBlock[] =>
  futility
    .filter(({ futile }) => futile)
    .map(({ filesystem, boundBytes, neededBytes, inodes }) => ({
      kind: "futile",
      filesystem,
      boundBytes,
      neededBytes,
      ...(inodes === undefined ? {} : { inodes: { bound: inodes.bound, needed: inodes.needed } }),
    }));

/** Each trigger once, in the order of the targets. */
export function distinctTriggers(targets: readonly ImageTarget[]): readonly ImageTrigger[] {
  const byText = new Map(targets.map(({ trigger }) => [textOf(trigger), trigger]));
  return [...byText.values()];
}

function wantedTargets(input: Facts, disks: DiskJudgement): readonly ImageTarget[] {
  switch (input.purpose.kind) {
    case "all-unused":
      return [{ kind: "everything", trigger: { kind: "all-unused" } }];
    case "pressure":
      return pressureTargets(input);
    case "periodic":
      return [
        ...disks.targets,
        ...storeTargets(
          input.snapshot,
          input.limits.images,
          knownLayers(input, [])?.forest ?? null,
        ),
        ...pressureTargets(input),
      ];
    default:
      return assertNever(input.purpose);
  }
}

const pressureTargets = (input: Facts): readonly ImageTarget[] =>
  input.pressureTargets.filter((target) => isObserved(target, input.snapshot));

/** A disk that has vanished since it was judged, for example by an unmount, triggers nothing. */
const isObserved = (target: ImageTarget, snapshot: Snapshot): boolean =>
  !("device" in target) || filesystemOf(target, snapshot) !== undefined;

const filesystemOf = (target: ImageTarget, { filesystems }: Snapshot): Filesystem | undefined =>
  filesystems.find(({ device }) => "device" in target && device === target.device);

interface JudgedTarget {
  readonly target: ImageTarget;
  readonly futility: Futility | null;
}

function judgeTarget(
  facts: Facts,
  { images, usage }: Judgement,
  target: ImageTarget,
): JudgedTarget {
  const { snapshot } = facts;
  const filesystem = filesystemOf(target, snapshot);
  if (!("device" in target) || filesystem === undefined) return { target, futility: null };
  const futilityFacts = {
    images: images().map(({ image }) => image),
    filesystems: snapshot.filesystems,
    logs: snapshot.logs,
    users: usage.users,
    layers: knownLayers(facts, [target]),
  };
  return { target, futility: futilityOf(target, filesystem, futilityFacts) };
}

/** `null` where layers do not matter. */
const knownLayers = (
  { limits, purpose, snapshot, ledger }: Facts,
  targets: readonly ImageTarget[],
): KnownLayers | null =>
  layersCount(limits.images, purpose, targets)
    ? {
        forest: forestOf(snapshot.images, ledger),
        mostPerMille: gainOf(ledger, snapshot.runtime).most,
      }
    : null;

/**
 * Disks whose pressure cannot be ended. It ends with the last of its thresholds: if one of them stays met whatever is
 * removed, removing images for a milder one is a waste.
 */
const hopelessDevices = (wanted: readonly JudgedTarget[]): ReadonlySet<string> =>
  new Set(
    wanted.flatMap(({ target, futility }) =>
      futility?.futile === true && isOfPressure(target) ? [target.device] : [],
    ),
  );

const isOfPressure = (target: ImageTarget): target is DiskTarget =>
  "device" in target && target.trigger.kind === "pressure";

/** The kubelet looks at no disk when it removes everything unused. */
const looksAtDisks = (purpose: Purpose, compat: Compat): boolean =>
  compat === "none" || purpose.kind === "periodic";

const textOf = (trigger: ImageTrigger): string =>
  trigger.kind === "pressure" ? `${trigger.kind} ${trigger.signal}` : trigger.kind;
