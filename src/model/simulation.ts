/** What a replayed trace gave, for each node and each combination of settings. */

import { bytes, count, list, nullable, type Of, record, text } from "./codec.ts";

const pulls = {
  pulls: count,
  pulledBytes: bytes,
  /** Of these, images that a pass had removed. */
  pullsAgain: count,
  pulledAgainBytes: bytes,
};

/** Of the offline bound, which knows the future and removes first what is used last. */
const bound = record(pulls);

export const simulatedNode = record({
  node: text,
  ...pulls,
  uses: count,
  /** Uses whose image was not there when they began. */
  coldStarts: count,
  /** Pulls for which the disk had no room at first. */
  unfittedPulls: count,
  removals: count,
  removedBytes: bytes,
  passes: count,
  capacityBytes: bytes,
  peakBytes: bytes,
  meanBytes: bytes,
  spanMs: count,
  /** The high threshold, then each eviction threshold on bytes: how long the disk was over it. */
  over: list(record({ threshold: text, forMs: count })),
  /** `null`: not computed. */
  bound: nullable(bound),
});
export type SimulatedNodeFigures = Of<typeof simulatedNode>;

/** One combination of settings. */
export const simulatedRun = record({
  settings: list(record({ name: text, value: text })),
  nodes: list(simulatedNode),
});
export type SimulatedRun = Of<typeof simulatedRun>;
