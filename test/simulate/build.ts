// Traces in a few words, and a scenario to replay them in.

import type { NodeTrace, TraceImage } from "../../src/model/trace.ts";
import type { Scenario } from "../../src/simulate/replay.ts";
import { replayable } from "../../src/simulate/replayed-trace.ts";
import { simLimits } from "../sim/simulation.ts";
import { idOf, MIB } from "../support/build/values.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export const traced = (name: string, mib: number, layers: TraceImage["layers"] = null) =>
  ({
    kind: "Image",
    image: idOf(name),
    names: [`registry.example/${name}:v1`],
    sizeBytes: BigInt(mib) * MIB,
    layers,
  }) as const;

export const usedAt = (name: string, fromMs: number, untilMs = fromMs) =>
  ({ kind: "Use", image: idOf(name), name: null, fromMs, untilMs }) as const;

export const presentAt = (name: string, fromMs: number) =>
  ({ kind: "Present", image: idOf(name), fromMs, untilMs: null }) as const;

export const aTrace = (change: Partial<NodeTrace>): NodeTrace => ({
  node: "node-1",
  fromMs: 0,
  untilMs: 6 * HOUR,
  precisionMs: 5 * MINUTE,
  capacityBytes: null,
  otherBytes: null,
  images: [],
  present: [],
  uses: [],
  ...change,
});

/** On a disk of 100 MiB, without eviction thresholds. */
export const aScenario = (trace: NodeTrace, change: Partial<Scenario> = {}): Scenario => ({
  trace: replayable(trace),
  capacityBytes: 100n * MIB,
  otherBytes: 0n,
  limits: { ...simLimits, pressure: { ...simLimits.pressure, thresholds: [] } },
  periods: { "image-detection": 5 * MINUTE, "image-gc": 5 * MINUTE, pressure: 10_000 },
  keep: { rules: [], problems: [], directoriesRead: [] },
  restartEveryMs: null,
  flushEveryMs: null,
  readsLayers: true,
  order: "policy",
  ...change,
});
