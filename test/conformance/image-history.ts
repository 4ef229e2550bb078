/** A recorded history of the kubelet's image manager, replayed on the agent's detection and image pass with one memory. */

import { failureOf } from "../../src/gc/pass-warnings.ts";
import { detect } from "../../src/gc/prepare.ts";
import { durationFromMs, instant } from "../../src/model/time.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import { aFilesystem, aSnapshot, NOW } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, type FakeWorld } from "../support/fake-engine.ts";
import {
  containerOf,
  imageOf,
  imagePass,
  type ImageVector,
  limitsOf,
  refusedOf,
} from "./image-vector.ts";

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
      process = fakeEngine({ ...node, policy: kubeletPolicy(passed) });
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
    detail: (id) => ({
      imageVolumes: step.containers.find((one) => one.id === id)?.imageVolumes ?? [],
    }),
    filesystem: aFilesystem({
      capacityBytes: BigInt(capacityBytes),
      availableBytes: BigInt(availableBytes),
    }),
    fails: new Set([...refusedOf(step), ...(step.fails === undefined ? [] : [step.fails])]),
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
      : failureOf(await imagePass(process, operation)) !== null;
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
