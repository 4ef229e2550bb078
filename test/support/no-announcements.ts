/** A runtime without container events. */

import type { EventSource } from "../../src/gc/ports.ts";

export const noAnnouncements: EventSource = { listen: () => ({ announcedSince: () => [] }) };
