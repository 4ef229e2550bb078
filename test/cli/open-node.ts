// A node for commands that look: a snapshot and a ledger behind the ports that a real one has.

import type { OpenNode } from "../../src/agent/node.ts";
import type { Openers } from "../../src/agent/openers.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { aLedger, aSnapshot } from "../support/build/values.ts";
import { noMarks, noPulls } from "../support/no-creations.ts";

export interface SeenNode {
  readonly snapshot?: Partial<Snapshot>;
  readonly ledger?: Ledger;
  /** What is on disk where plans go by another ledger. */
  readonly onDisk?: Ledger;
  readonly notices?: readonly string[];
}

/** The opener, and whether what it opened was closed again. */
export interface OpenedNode {
  readonly node: Openers["node"];
  readonly isClosed: () => boolean;
}

export function openNodeOf(seen: SeenNode = {}): OpenedNode {
  const snapshot = aSnapshot(seen.snapshot);
  let open = 0;
  const node: Openers["node"] = async (config): Promise<OpenNode> => {
    open += 1;
    return {
      ledger: seen.onDisk ?? seen.ledger ?? aLedger(),
      engine: {
        observe: {
          runtime: {
            info: async () => snapshot.runtime,
            listImages: async () => snapshot.images,
            listContainers: async () => snapshot.containers,
            listSandboxes: async () => snapshot.sandboxes,
            containerDetail: async () => null,
            sandboxDetail: async () => null,
            sandboxLogDirectory: async () => null,
            sandboxImage: async (id) => snapshot.sandboxImages.get(id) ?? null,
            imageStatus: async () => null,
            imageOrigin: async () => null,
            writableLayers: async () => null,
            reportedFilesystems: async () => ({ images: [], containers: [] }),
          },
          disk: {
            filesystems: async () => snapshot.filesystems,
            measure: async () => {
              throw new Error("nothing measures while it only looks");
            },
          },
          host: {
            clocks: () => snapshot.clocks,
            keepRules: async () => snapshot.keep,
            pods: async () => snapshot.pods,
            containerMarks: noMarks,
            pulls: noPulls,
            logs: async () => snapshot.logs,
          },
        },
        memory: volatileMemory(seen.ledger ?? aLedger()),
        timer: { monotonicNs: () => 0n, sleep: async () => undefined },
        limits: () => config.limits,
        hold: () => ({ kind: "none" }),
        remover: { placesOf: async (logs) => logs.map(() => []) },
        startedAt: null,
      },
      notices: seen.notices ?? [],
      [Symbol.dispose]: () => void (open -= 1),
    };
  };
  return { node, isClosed: () => open === 0 };
}
