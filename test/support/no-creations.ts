/** A node on which no container is being created. */

import type { FreshNodeInput } from "../../src/gc/fresh-view.ts";
import type { HostReader } from "../../src/model/ports.ts";

export const noCreations: FreshNodeInput["creations"] = {
  settled: async (snapshot) => ({ snapshot, block: null }),
};

export const noMarks: HostReader["containerMarks"] = async () => ({
  marks: [],
  unreadable: new Set(),
});
