/** A recorded history of the kubelet's eviction manager, replayed on the agent's pressure check with one state. */

import { checkPressure } from "../../src/agent/pressure.ts";
import type { PressureLimits } from "../../src/model/limits.ts";
import type { Filesystem } from "../../src/model/snapshot.ts";
import { durationFromMs } from "../../src/model/time.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import {
  noPressure,
  type PressureVerdict,
  reclaimFor,
  topologyOf,
} from "../../src/policy/pressure/thresholds.ts";
import { FILE, load } from "../config/loading.ts";
import { aFilesystem, defaultLimits, NOW } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

interface Usage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface PressureHistory {
  readonly name: string;
  readonly topology: "single" | "dedicated" | "split";
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly evictionPressureTransitionPeriodMs: number;
  readonly steps: readonly {
    readonly advanceMs: number;
    readonly nodefs: Usage;
    readonly imagefs: Usage;
    readonly expect: PressureStepEffect;
  }[];
}

export interface PressureStepEffect {
  readonly diskPressure: boolean;
  /** `SIGNAL hard` or `SIGNAL soft`: met for the grace period, or not resolved yet; sorted. */
  readonly met: readonly string[];
  /** What the kubelet deleted for the one threshold that it chose among them. */
  readonly reclaimed: readonly string[];
}

/** What each step does, through the check of the agent under `--compat kubelet`. */
export async function pressureEffects(
  history: PressureHistory,
): Promise<readonly PressureStepEffect[]> {
  const { engine } = fakeEngine({
    limits: { ...defaultLimits, pressure: limitsOf(history) },
    policy: kubeletPolicy(null),
  });
  let state = noPressure;
  let elapsedMs = 0;
  const effects: PressureStepEffect[] = [];
  for (const step of history.steps) {
    elapsedMs += step.advanceMs;
    const uptime = durationFromMs(elapsedMs);
    const filesystems = filesystemsOf(history.topology, step);
    const observe = {
      ...engine.observe,
      host: { ...engine.observe.host, clocks: () => ({ ...engine.observe.host.clocks(), uptime }) },
      disk: {
        ...engine.observe.disk,
        measure: async (path: string) =>
          filesystems.find((one) => one.path === path) ?? aFilesystem(),
      },
    };
    const known = filesystems.map((it) => ({ ...it, measuredAt: NOW }));
    const { verdict } = await checkPressure({ ...engine, observe }, { filesystems: known, state });
    state = verdict.state;
    effects.push(effectOf(verdict, filesystems, step.expect.reclaimed));
  }
  return effects;
}

/** As the kubelet's own configuration file would be read. */
function limitsOf(history: PressureHistory): PressureLimits {
  const { evictionHard, evictionSoft, evictionSoftGracePeriod, evictionMinimumReclaim } = history;
  const body = JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    evictionHard,
    evictionSoft,
    evictionSoftGracePeriod,
    evictionMinimumReclaim,
    evictionPressureTransitionPeriod: `${history.evictionPressureTransitionPeriodMs}ms`,
  });
  return load({ files: { [FILE]: body }, flags: [["compat", "kubelet"]] }).limits.pressure;
}

function filesystemsOf(
  topology: PressureHistory["topology"],
  { nodefs, imagefs }: PressureHistory["steps"][number],
): readonly Filesystem[] {
  const on = (path: string, usage: Usage, roles: Filesystem["roles"]): Filesystem =>
    aFilesystem({
      roles,
      path,
      device: path,
      capacityBytes: BigInt(usage.capacityBytes),
      availableBytes: BigInt(usage.availableBytes),
      inodes: BigInt(usage.inodes),
      inodesFree: BigInt(usage.inodesFree),
    });
  switch (topology) {
    case "single":
      return [on("/node", nodefs, ["imagefs", "containerfs", "nodefs"])];
    case "dedicated":
      return [on("/node", nodefs, ["nodefs"]), on("/images", imagefs, ["imagefs", "containerfs"])];
    case "split":
      return [on("/node", nodefs, ["nodefs", "containerfs"]), on("/images", imagefs, ["imagefs"])];
  }
}

/**
 * The kubelet reclaims for one threshold a round, in the order of a hash map; crigc for all that are due. So what the
 * kubelet reclaimed has to be what one of them allows; if it is, it counts as ours.
 */
function effectOf(
  { condition, due, reclaim }: PressureVerdict,
  filesystems: readonly Filesystem[],
  kubelets: readonly string[],
): PressureStepEffect {
  const topology = topologyOf(filesystems);
  const choices = due.map(({ threshold }) => reclaimed(reclaimFor(threshold.signal, topology)));
  const all = [...new Set(choices.flat())].toSorted();
  const ours = reclaimed(reclaim);
  const isOneOfThem = choices.some((choice) => choice.join() === kubelets.join());
  return {
    diskPressure: condition,
    met: due
      .map(({ threshold: { signal, grace } }) => `${signal} ${grace === 0n ? "hard" : "soft"}`)
      .toSorted(),
    reclaimed: isOneOfThem && ours.join() === all.join() ? kubelets : ours,
  };
}

const reclaimed = (allowed: { readonly containers: boolean; readonly images: boolean }) =>
  (["containers", "images"] as const).filter((part) => allowed[part]);
