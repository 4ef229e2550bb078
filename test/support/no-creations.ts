/** A node on which no container is being created. */

import type { AwaitsCreations } from "../../src/gc/image/image-execution.ts";
import type { HostReader } from "../../src/model/ports.ts";

export const noCreations: AwaitsCreations = {
  block: () => null,
  settled: async (fresh) => ({ fresh, block: null }),
};

export const noMarks: HostReader["containerMarks"] = async () => ({
  marks: [],
  unreadable: new Set(),
});
