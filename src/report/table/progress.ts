/** Progress of a pass on a terminal: one line, redrawn in place and erased before other output. */

import type { Image } from "../../model/snapshot.ts";
import { humanBytes } from "../bytes.ts";
import { imageName } from "../names.ts";
import { cutFor, fitted, paint, type Screen } from "../terminal.ts";

export interface Removing {
  readonly image: Image;
  /** Freed by this pass so far. */
  readonly gainedBytes: bigint;
  /** `null` or 0: no target in bytes. */
  readonly wantedBytes: bigint | null;
}

export interface Progress {
  /** Call before an image is removed. */
  starting(removing: Removing): void;
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
const BAR_WIDTH = 20;
/** Minimum width of the name; the bar is omitted if there is less. */
const NAME_WIDTH = 16;
/** The last column stays free, because some terminals wrap after it. */
const SPARE = 1;

/** `▕█████░░░░▏ 1.2 GiB of 4.0 GiB freed, removing image 3: nginx:1.25`. */
export function progressLine(
  removing: Removing,
  number: number,
  screen: Screen & { readonly width: number },
): string {
  const { gainedBytes, wantedBytes } = removing;
  const target = wantedBytes !== null && wantedBytes > 0n ? wantedBytes : null;
  const far =
    target === null
      ? `${humanBytes(gainedBytes)} freed`
      : `${humanBytes(gainedBytes)} of ${humanBytes(target)} freed`;
  const words = `${far}, removing image ${number}: `;
  const room = screen.width - SPARE - Bun.stringWidth(words);
  const hasBar = target !== null && room >= BAR_WIDTH + 1 + NAME_WIDTH;
  const name = fitted(
    imageName(removing.image),
    hasBar ? room - BAR_WIDTH - 1 : room,
    cutFor(screen, "middle"),
  );
  return `${hasBar ? `${bar(gainedBytes, target, screen)} ` : ""}${words}${name}`;
}

function bar(gainedBytes: bigint, wantedBytes: bigint, screen: Screen): string {
  const share = Number((gainedBytes * BigInt(BAR_WIDTH)) / wantedBytes);
  const full = Math.max(0, Math.min(BAR_WIDTH, share));
  const [done, open] = screen.unicode ? ["█", "░"] : ["#", "."];
  return paint(screen, "green", done.repeat(full)) + open.repeat(BAR_WIDTH - full);
}
