/** A runtime without container events. */

import type { EventSource } from "../../src/loop/ports.ts";

export const noAnnouncements: EventSource = { listen: () => ({ announcedSince: () => [] }) };
