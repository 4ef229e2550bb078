// A state directory for a test, opened as the process that holds the node opens it and as a command that reads does.

import { join } from "node:path";

import { type Instant, instantFromMs } from "../../src/model/time.ts";
import type { StatePlaces } from "../../src/state/files.ts";
import { openReader } from "../../src/state/reader.ts";
import { Recorder } from "../../src/state/recorder.ts";
import { State } from "../../src/state/state.ts";

export const now = instantFromMs(Date.parse("2026-01-02T03:04:05Z"));

export const placesOf = (
  directory: string,
  { machineId = "", runDirectory = join(directory, "..", "run") }: Opening = {},
): StatePlaces => ({
  directory,
  runDirectory,
  userId: process.getuid?.() ?? 0,
  machineId,
});

interface Opening {
  readonly clock?: () => Instant;
  readonly machineId?: string;
  /** `run` beside the state directory by default. */
  readonly runDirectory?: string;
}

export async function write(directory: string, opening: Opening = {}) {
  const notices: string[] = [];
  const { clock = () => now } = opening;
  const state = await State.open({
    ...placesOf(directory, opening),
    notify: (notice) => notices.push(notice),
  });
  return {
    state,
    store: new Recorder(state, clock),
    notices,
    close: (patienceMs?: number) => closed(state, patienceMs),
  };
}

/** Returns the number of removals that the history lacks. */
export const closed = (state: State, patienceMs = 10_000): Promise<number> =>
  state.close(patienceMs);

export function read(
  directory: string,
  { isOwner = true, ...opening }: Opening & { readonly isOwner?: boolean } = {},
) {
  const notices: string[] = [];
  const places = placesOf(directory, opening);
  const reader = openReader({ ...places, notify: (notice) => notices.push(notice) }, isOwner);
  return { reader, notices };
}
