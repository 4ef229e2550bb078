// Progress on a terminal.

import { describe, expect, test } from "bun:test";

import { progressLine, terminalProgress } from "../../src/report/progress.ts";
import { GIB, image, plainScreen, terminal } from "./build.ts";

const removing = { image: image(1), gainedBytes: GIB, wantedBytes: 4n * GIB };

describe("progress", () => {
  test("progress shows how much is freed, of the target if there is one, and what is being removed", () => {
    const screen = { ...terminal, width: 100 };
    expect([
      progressLine(removing, 3, screen),
      progressLine({ ...removing, wantedBytes: null }, 1, screen),
    ]).toMatchSnapshot();
  });

  test("progress stays within the width", () => {
    for (const width of [60, 72, 80, 100, 200]) {
      const far = { ...removing, gainedBytes: 100n * GIB };
      expect(Bun.stringWidth(progressLine(far, 3, { ...terminal, width }))).toBeLessThan(width);
    }
  });

  test("progress is redrawn in place and erased once, and only on a terminal", () => {
    const written: string[] = [];
    for (const screen of [plainScreen, { ...terminal, width: 80 }]) {
      const progress = terminalProgress(screen, (text) => void written.push(text));
      progress.clear();
      progress.starting(removing);
      progress.starting(removing);
      progress.clear();
      progress.clear();
    }
    const ERASE = "\r\u001b[K";
    const line = expect.stringContaining("removing image");
    expect(written).toEqual([line, ERASE, line, ERASE]);
  });
});
