/** A node on which no container is being created, without pull records and without container events. */

import type { FreshNodeInput } from "../../src/gc/fresh-view.ts";
import type { EventSource } from "../../src/gc/ports.ts";
import type { HostReader, PullReader } from "../../src/model/ports.ts";

export const noCreations: FreshNodeInput["creations"] = {
  settled: async (snapshot) => ({ snapshot, block: null }),
};

export const noMarks: HostReader["containerMarks"] = async () => ({
  marks: [],
  unreadable: new Set(),
});

export const noPulls: PullReader = {
  read: async () => ({ kind: "failed", message: "there are none", intents: null }),
  intents: async () => null,
  records: async () => [],
};

export const noAnnouncements: EventSource = { listen: () => ({ announcedSince: () => [] }) };
