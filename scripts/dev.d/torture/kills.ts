// SIGKILL at random points of real passes on a real containerd; what is remembered and what the next pass does are judged.

import { library, writeImageArchive } from "../../../test/support/containerd/archive.ts";
import { mebibyte } from "../../../test/support/containerd/disk.ts";
import { importImages, loadImages } from "../../../test/support/containerd/import.ts";
import { takeInventory } from "../../../test/support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../../test/support/containerd/node.ts";
import {
  runPod,
  runToEnd,
  startContainer,
  stopPod,
} from "../../../test/support/containerd/pods.ts";
import { nodeFlags } from "../../../test/support/containerd/program.ts";
import { runProgram, startProgram } from "../../../test/support/program.ts";
import type { Random } from "../../../test/support/random.ts";
import { readState, type Recorded, type Result, type Torture } from "./common.ts";

const UNUSED = 8;
const unusedName = (at: number): string => library(`unused-${at}:1`);
const spec = (name: string) => ({
  names: [name],
  withBusybox: false,
  layers: [{ seed: name, sizeBytes: mebibyte }],
});
/** Nothing but what keeps an image for what it is. */
const flags = [
  "--minimum-image-ttl-duration=0s",
  "--minimum-container-ttl-duration=0s",
  "--boot-grace=0s",
  "--pod-source=cri",
  `--keep=${library("kept:1")}`,
];
const agentFlags = [
  ...flags,
  "--image-store-budget=1900k",
  "--image-gc-period=200ms",
  "--container-gc-period=200ms",
  "--image-detection-period=200ms",
];

export async function kills({ rounds, random, deadlineMs }: Torture): Promise<Result> {
  const faults: string[] = [];
  const figures = { removed: 0, unknown: 0, during: 0, longestMs: 0 };
  let tried = 0;
  const node = await startNode("1.7", { disk: { sizeBytes: 512 * mebibyte } });
  try {
    const world = await prepare(node);
    for (; tried < rounds && performance.now() < deadlineMs; tried += 1) {
      const said = await oneKill({ ...world, random, figures }, tried);
      for (const fault of said) console.log(`  kill ${tried + 1}: ${fault}`);
      faults.push(...said.map((fault) => `kill ${tried + 1}: ${fault}`));
      if (faults.length > 20) break;
      if (tried % 10 === 9)
        console.log(`kills: ${tried + 1} of ${rounds}, ${faults.length} faults`);
    }
  } finally {
    await node.stop();
  }
  const { removed, unknown, during, longestMs } = figures;
  if (tried >= 10 && during === 0) faults.push("no kill came in the middle of removals");
  return {
    name: "kills",
    tried,
    faults,
    figures: `${during} in the middle of removals, ${removed} removals, ${unknown} of them cut off before they were recorded, next pass ${Math.round(longestMs)} ms at most`,
  };
}

type World = {
  readonly node: ContainerdNode;
  readonly protectedIds: ReadonlySet<string>;
  readonly unused: readonly { readonly id: string; readonly names: readonly string[] }[];
  readonly archive: ReturnType<typeof writeImageArchive>;
  /** Of the images that stay from the first to the last round. */
  readonly firstSeen: Map<string, bigint>;
};
type Figures = { removed: number; unknown: number; during: number; longestMs: number };

async function prepare(node: ContainerdNode): Promise<World> {
  await loadImages(node, [{ names: [library("web:1")] }, spec(library("kept:1"))]);
  const pod = await runPod(node, { name: "shop" });
  await startContainer(node, pod, { name: "web", image: library("web:1") });
  const archive = writeImageArchive(
    `${node.directory}/unused.tar`,
    Array.from({ length: UNUSED }, (_, at) => spec(unusedName(at))),
  );
  return {
    node,
    protectedIds: await listed(node),
    unused: archive.images,
    archive,
    firstSeen: new Map(),
  };
}

const listed = async (node: ContainerdNode): Promise<ReadonlySet<string>> =>
  new Set((await takeInventory(node)).images.map(({ id }) => id));

async function oneKill(
  world: World & { readonly random: Random; readonly figures: Figures },
  round: number,
): Promise<readonly string[]> {
  const { node, archive, random, figures } = world;
  const faults: string[] = [];
  await importImages(node, archive);
  if (round % 10 === 0) await leaveDeadPod(node, round);
  const before = await listed(node);
  const recordedBefore = readState(node.stateDirectory).removals.length;
  await killSomewhere({ node, random, before }, round);
  const killedMs = Date.now();
  const after = await settled(node);
  const gone = [...before].filter((id) => !after.has(id));
  const { recorded, missing } = await recordedSince(node, recordedBefore, gone);
  if (gone.length > 0 && gone.length < UNUSED) figures.during += 1;
  figures.removed += gone.length;
  figures.unknown += missing.length;
  if (missing.length > 1) faults.push(`the history lacks ${missing.length} removals`);
  const imagined = recorded.filter((id) => after.has(id));
  if (imagined.length > 0) faults.push(`${imagined.length} removals are recorded, and never were`);
  // What went and comes back at once must count as new.
  await importImages(node, archive);
  const [look, lookFaults] = await pass(node, ["gc", "--images", ...flags]);
  faults.push(...lookFaults, ...memoryFaults(world, killedMs, { gone, missing }));
  const [next, nextFaults] = await pass(node, ["gc", "--all-unused", ...flags]);
  faults.push(...nextFaults);
  figures.longestMs = Math.max(figures.longestMs, look, next);
  const left = await listed(node);
  const lost = [...world.protectedIds].filter((id) => !left.has(id));
  if (lost.length > 0) faults.push(`${lost.join(", ")} had to stay, and went`);
  const stayed = left.size - (world.protectedIds.size - lost.length);
  if (stayed > 0) faults.push(`the next pass left ${stayed} unused images`);
  return faults;
}

/** Work for the part of a pass that removes containers and sandboxes. */
async function leaveDeadPod(node: ContainerdNode, round: number): Promise<void> {
  const pod = await runPod(node, { name: `job-${round}` });
  await runToEnd(node, pod, { name: "job", image: library("web:1") });
  await stopPod(node, pod);
}

/** Half of the time at any moment, from before the first look to after the pass; else when some of the images are gone. */
async function killSomewhere(
  {
    node,
    random,
    before,
  }: {
    readonly node: ContainerdNode;
    readonly random: Random;
    readonly before: ReadonlySet<string>;
  },
  round: number,
): Promise<void> {
  const isAgent = round % 3 === 0;
  const words = isAgent ? ["run", ...agentFlags] : ["gc", "--all-unused", ...flags];
  const victim = startProgram([...words, ...nodeFlags(node)]);
  if (random.next() < 0.5) await Bun.sleep(random.next() * 2_000);
  else {
    const gone = 1 + Math.floor(random.next() * (UNUSED - 1));
    while (victim.exitCode() === null && before.size - (await listed(node)).size < gone)
      await Bun.sleep(1);
  }
  victim.signal("SIGKILL");
  await victim.exited;
}

/** The list once the call that was cut off has had its effect. */
async function settled(node: ContainerdNode): Promise<ReadonlySet<string>> {
  let last = await listed(node);
  for (let equal = 0; equal < 3;) {
    await Bun.sleep(50);
    const now = await listed(node);
    equal = now.size === last.size ? equal + 1 : 0;
    last = now;
  }
  return last;
}

/** The process that writes records ends a little later, with what it was sent. */
async function recordedSince(
  node: ContainerdNode,
  recordedBefore: number,
  gone: readonly string[],
): Promise<{ readonly recorded: readonly string[]; readonly missing: readonly string[] }> {
  const deadlineMs = performance.now() + 5_000;
  for (;;) {
    const { removals } = readState(node.stateDirectory);
    const recorded = removals.slice(recordedBefore).map(({ image }) => image);
    const missing = gone.filter((id) => !recorded.includes(id));
    if (missing.length <= 1 || performance.now() > deadlineMs) return { recorded, missing };
    await Bun.sleep(50);
  }
}

/** How long it took, and what was wrong: a lock that stayed would make it wait or end with another code. */
async function pass(
  node: ContainerdNode,
  words: readonly string[],
): Promise<readonly [number, readonly string[]]> {
  const run = () => runProgram([...words, ...nodeFlags(node)]);
  const first = await run();
  // A busy machine: the runtime itself did not answer in time, and that is said.
  const isBusy = first.exitCode === 3 && first.stderr.includes("did not answer within");
  const { exitCode, stderr, tookMs } = isBusy ? await run() : first;
  const faults: string[] = [];
  if (exitCode !== 0)
    faults.push(`${words.slice(0, 2).join(" ")} ended with ${exitCode}: ${stderr}`);
  if (/broken|put aside|memory-only/.test(stderr)) faults.push(`it said ${stderr}`);
  if (tookMs > 30_000) faults.push(`the next pass took ${Math.round(tookMs)} ms`);
  return [tookMs, faults];
}

function memoryFaults(
  { node, protectedIds, firstSeen }: World,
  killedMs: number,
  { gone, missing }: { readonly gone: readonly string[]; readonly missing: readonly string[] },
): readonly string[] {
  const { ledger, notices }: Recorded = readState(node.stateDirectory);
  const faults = [...notices];
  const nowMs = Date.now();
  for (const [id, record] of ledger.images) {
    const seenMs = Number(record.firstSeenAt / 1_000_000n);
    const usedMs = record.lastUsedAt === null ? null : Number(record.lastUsedAt / 1_000_000n);
    if (seenMs > nowMs || (usedMs ?? 0) > nowMs) faults.push(`${id} was seen in the future`);
    // The one that was cut off before it was recorded may still be remembered.
    if (gone.includes(id) && !missing.includes(id) && seenMs < killedMs)
      faults.push(`${id} came back ${killedMs - seenMs} ms after it counts as first seen`);
    if (!protectedIds.has(id)) continue;
    const first = firstSeen.get(id) ?? record.firstSeenAt;
    firstSeen.set(id, first);
    if (record.firstSeenAt !== first) faults.push(`${id} counts as first seen at another time`);
  }
  const known = new Set<string>(ledger.images.keys());
  for (const id of protectedIds) if (!known.has(id)) faults.push(`${id} is not remembered`);
  const used = [...ledger.images.values()].filter(({ lastUsedAt }) => lastUsedAt !== null);
  const latestMs = Math.max(
    ...used.map(({ lastUsedAt }) => Number((lastUsedAt ?? 0n) / 1_000_000n)),
  );
  if (latestMs < killedMs) faults.push("an image that runs was last used before the last look");
  return faults;
}
