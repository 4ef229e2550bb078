/** A recorded history of the kubelet's image manager, replayed on the agent's detection and image pass with one memory. */

import { Announcer } from "../../src/gc/announcer.ts";
import { failureOf } from "../../src/gc/pass-events.ts";
import { runPass } from "../../src/gc/pass.ts";
import { detect } from "../../src/gc/prepare.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import type { Pass } from "../../src/model/pass.ts";
import { durationFromMs, instant } from "../../src/model/time.ts";
import { aFilesystem, aSnapshot, NOW } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, type FakeWorld } from "../support/fake-engine.ts";
import { containerOf, imageOf, type ImageVector, limitsOf } from "./image-vector.ts";

export interface ImageStep extends Pick<ImageVector, "filesystem" | "images"> {
  /** Since the last step. */
  readonly advanceMs: number;
  /** `restart`: a new process without memory, which detects at once. */
  readonly operation: "restart" | "detect" | "image-gc" | "delete-unused-images";
  readonly containers: readonly (Omit<ImageVector["containers"][number], "createdAt"> & {
    /** IDs of mounted images. */
    readonly imageVolumes?: readonly string[];
  })[];
  /** The list that fails in this step. */
  readonly fails?: "ListImages" | "ListContainers";
  readonly expect: ImageStepEffect;
}

export interface ImageStepEffect {
  /** Every RemoveImage call in order, failed ones too. */
  readonly removeAttempts: readonly string[];
  readonly error: boolean;
  readonly events: readonly string[];
}

export interface ImageHistory extends Pick<ImageVector, "name" | "policy"> {
  readonly steps: readonly ImageStep[];
}

/** What each step does, through detection and the image pass of the agent under `--compat kubelet`. */
export async function imageEffects(history: ImageHistory): Promise<readonly ImageStepEffect[]> {
  const runtime = { ...aSnapshot().runtime, version: "2.1.9" };
  const node: Partial<FakeWorld> = { limits: limitsOf(history), runtime, freed: () => 0n };
  let process = fakeEngine(node);
  let elapsedMs = 0;
  const effects: ImageStepEffect[] = [];
  for (const step of history.steps) {
    elapsedMs += step.advanceMs;
    const passed = durationFromMs(elapsedMs);
    const wall = instant(NOW + passed);
    if (step.operation === "restart")
      process = fakeEngine({ ...node, ledger: emptyLedger, startedAt: wall });
    Object.assign(process.world, worldOf(step), { wall, uptime: passed });
    effects.push(await effectOf(process, step.operation));
  }
  return effects;
}

function worldOf(step: ImageStep): Partial<FakeWorld> {
  const { capacityBytes, availableBytes } = step.filesystem;
  return {
    images: step.images.map(imageOf),
    containers: step.containers.map((one) =>
      containerOf({ ...one, createdAt: "2026-01-01T00:00:00Z" }),
    ),
    volumes: new Map(step.containers.map(({ id, imageVolumes }) => [id, imageVolumes ?? []])),
    filesystem: aFilesystem({
      capacityBytes: BigInt(capacityBytes),
      availableBytes: BigInt(availableBytes),
    }),
    refuses: new Set(step.images.filter(({ removeFails }) => removeFails).map(({ id }) => id)),
    fails: new Set(step.fails === undefined ? [] : [step.fails]),
  };
}

async function effectOf(
  process: FakeEngine,
  operation: ImageStep["operation"],
): Promise<ImageStepEffect> {
  const { writes, events } = process;
  const [writesBefore, eventsBefore] = [writes.length, events.length];
  const error =
    operation === "restart" || operation === "detect"
      ? await detectionFails(process)
      : failureOf(await passOf(process, operation)) !== null;
  return {
    removeAttempts: writes.slice(writesBefore).map((write) => write.replace("RemoveImage ", "")),
    error,
    events: events.slice(eventsBefore).map(({ reason }) => reason),
  };
}

const detectionFails = ({ engine }: FakeEngine): Promise<boolean> =>
  detect(engine, new AbortController().signal).then(
    () => false,
    () => true,
  );

async function passOf(
  { engine, world }: FakeEngine,
  operation: "image-gc" | "delete-unused-images",
): Promise<Pass> {
  const { pass } = await runPass(
    engine,
    {
      kind: "image-gc",
      purpose: operation === "image-gc" ? { kind: "periodic" } : { kind: "all-unused" },
      containers: "none",
      images: true,
      dryRun: false,
      lockWaitMs: 0,
      now: () => world.wall,
      random: () => 0,
      // The kubelet repeats every event; that crigc reports a lasting condition once has tests of its own.
      announcer: new Announcer(engine.journal),
    },
    new AbortController().signal,
  );
  return pass;
}
