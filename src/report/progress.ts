/** Progress of a pass on a terminal: one line, redrawn in place and erased before other output. */

import type { Image } from "../model/snapshot.ts";
import { humanBytes } from "./bytes.ts";
import { imageName } from "./names.ts";
import { cutFor, fitted, type Screen } from "./terminal.ts";

export interface RemovalProgress {
  readonly image: Image;
  /** Freed by this pass so far. */
  readonly gainedBytes: bigint;
  /** `null` or 0: no target in bytes. */
  readonly wantedBytes: bigint | null;
}

export interface Progress {
  /** Call before an image is removed. */
  starting(removing: RemovalProgress): void;
  /** Erases the line; before each log line, and at the end. */
  clear(): void;
}

/** Draws nothing without a terminal; there the log reports progress. */
export function terminalProgress(screen: Screen, write: (text: string) => void): Progress {
  let isDrawn = false;
  let started = 0;
  const clear = (): void => {
    if (isDrawn) write(ERASE);
    isDrawn = false;
  };
  return {
    clear,
    starting: (removing) => {
      started += 1;
      if (screen.width === null) return;
      clear();
      write(progressLine(removing, started, { ...screen, width: screen.width }));
      isDrawn = true;
    },
  };
}

/** To the first column; erase to the end of the line. */
const ERASE = "\r\u001b[K";
/** The last column stays free, because some terminals wrap after it. */
const SPARE = 1;

/** `1.2 GiB of 4.0 GiB freed, removing image 3: nginx:1.25`. */
export function progressLine(
  { image, gainedBytes, wantedBytes }: RemovalProgress,
  number: number,
  screen: Screen & { readonly width: number },
): string {
  const of = wantedBytes !== null && wantedBytes > 0n ? ` of ${humanBytes(wantedBytes)}` : "";
  const words = `${humanBytes(gainedBytes)}${of} freed, removing image ${number}: `;
  const room = screen.width - SPARE - Bun.stringWidth(words);
  return words + fitted(imageName(image), room, cutFor(screen, "middle"));
}
