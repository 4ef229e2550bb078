/** What a pass does while containers are being created: it waits, says so, and counts in the ledger if it was held up. */

import type { Pass } from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { LedgerMemory } from "../model/ports.ts";
import type { ImageBlock } from "../model/reason.ts";
import { imageBlock } from "../report/image-reasons.ts";
import { freshLists } from "./fresh-lists.ts";
import { CreationWait } from "./image/creation-wait.ts";
import { blocksOf } from "./pass-failure.ts";
import type { Engine } from "./ports.ts";
import type { Prepared } from "./prepare.ts";
import type { Steps } from "./steps.ts";

export interface WaitReport {
  /** Called with the block when a wait for containers that are being created begins, with `null` when it ends. */
  readonly waits?: (block: ImageBlock | null) => void;
}

export function creationWaitOf(
  engine: Engine,
  request: WaitReport & { readonly purpose: Purpose },
  { steps, soonest }: { readonly steps: Steps; readonly soonest: AbortSignal },
): CreationWait {
  const { memory, timer, limits, journal } = engine;
  const isUnderPressure = request.purpose.kind === "pressure";
  const after = isUnderPressure ? "; under disk pressure the pass goes on after 5 s" : "";
  return new CreationWait({
    memory,
    timer,
    limits,
    isUnderPressure,
    soonest,
    waiting: (name, wait) => steps.wait(name, wait),
    waits: (block) => {
      journal.say(
        1,
        block === null ? "Image removal waits no longer" : `${waitWords(block)}${after}`,
      );
      request.waits?.(block);
    },
  });
}

const waitWords = (block: ImageBlock): string => `Image removal waits: ${imageBlock.text(block)}`;

/** Waits until no container is being created, or the pass may no longer wait. */
export async function untilCreated(
  engine: Engine,
  { wait, prepared }: { readonly wait: CreationWait; readonly prepared: Prepared },
  signal: AbortSignal,
): Promise<void> {
  const { observe, timer, journal } = engine;
  const lists = freshLists({
    observe,
    timer,
    events: { announcedSince: () => [] },
    first: prepared.snapshot,
    say: (message) => journal.say(1, message),
  });
  const first = { snapshot: prepared.snapshot, missed: new Set<never>() };
  await wait.settled(first, () => lists(signal, timer.monotonicNs()));
}

/** Counts the passes in a row that removed no image because they were held up; one that was cut short does not count. */
export function rememberHeldUp(memory: LedgerMemory, pass: Pass, wait: CreationWait): void {
  const { images, purpose, dryRun } = pass;
  if (images === null || dryRun || purpose.kind === "pressure" || images.end === "stopped") return;
  const blocks = blocksOf(pass);
  const isHeldUp =
    images.end === "blocked" &&
    blocks.every((kind) => kind === "pod-starting") &&
    images.items.every(({ result }) => result.kind === "skipped");
  if (isHeldUp && !wait.hasWaitedInFull()) return;
  const before = memory.current();
  const heldUpPasses = isHeldUp ? before.heldUpPasses + 1 : 0;
  if (heldUpPasses !== before.heldUpPasses) memory.replace({ ...before, heldUpPasses });
}
