/** A fleet: what the snapshots of many nodes say together. */

import type { Instant } from "./time.ts";

/** An image by its ID, which is the same on every node. */
export interface FleetImage {
  readonly id: string;
  /** A tag or digest of the first node that has it, else the ID. */
  readonly name: string;
  /** A keep rule that matches it on each of its nodes: the name if it has it everywhere, else the ID. */
  readonly pattern: string;
  readonly sizeBytes: bigint;
  /** Nodes that have it. */
  readonly nodes: number;
  /** Nodes on which something uses it. */
  readonly usedOn: number;
  /** The only node that has it; `null`: several have. */
  readonly onlyOn: string | null;
}

/** What a node's snapshot says of it alone. */
export interface FleetFigures {
  readonly name: string;
  readonly observedAt: Instant;
  readonly images: number;
  /** As the runtime reports them. */
  readonly imagesBytes: bigint;
  readonly unusedImages: number;
  /** Of the image filesystem; `null`: unknown. */
  readonly capacityBytes: bigint | null;
  readonly availableBytes: bigint | null;
}

export interface FleetNode extends FleetFigures {
  /** Images that no other node has. */
  readonly onlyCopies: number;
  readonly onlyCopiesBytes: bigint;
  /** Images that came back after their removal; `null`: no history. */
  readonly returnedImages: number | null;
  readonly returnedBytes: bigint | null;
}
