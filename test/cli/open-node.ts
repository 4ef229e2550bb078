// A node for commands that look: a snapshot and a ledger behind the ports that a real one has.

import { type OpenNode, policyOf } from "../../src/engine/node.ts";
import type { Openers } from "../../src/engine/openers.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { aLedger, aSnapshot } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

export interface SeenNode {
  readonly snapshot?: Partial<Snapshot>;
  readonly ledger?: Ledger;
}

/** The opener, and whether what it opened was closed again. */
export interface OpenedNode {
  readonly node: Openers["node"];
  readonly isClosed: () => boolean;
}

export function openNodeOf(seen: SeenNode = {}): OpenedNode {
  const { clocks, filesystems, ...snapshot } = aSnapshot(seen.snapshot);
  const ledger = seen.ledger ?? aLedger();
  let open = 0;
  const node: Openers["node"] = async ({ limits, values }): Promise<OpenNode> => {
    open += 1;
    const world = {
      ...snapshot,
      images: [...snapshot.images],
      containers: [...snapshot.containers],
      sandboxes: [...snapshot.sandboxes],
      ...clocks,
    };
    const { engine } = fakeEngine({
      ...world,
      ledger,
      limits,
      policy: policyOf({ values }, false),
    });
    const { disk } = engine.observe;
    return {
      engine: {
        ...engine,
        observe: {
          ...engine.observe,
          disk: { ...disk, filesystems: async () => filesystems },
        },
      },
      [Symbol.dispose]: () => void (open -= 1),
    };
  };
  return { node, isClosed: () => open === 0 };
}
