// What `gc` and `rm` log next to their report.
import { expect, test } from "bun:test";

import { quietOn } from "../../../src/cli/read/selection.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { Screen } from "../../../src/report/terminal.ts";

const screen = (width: number | null): Screen => ({ width, colour: false, unicode: true });

test.each([
  ["on a terminal logs only warnings", 80, [], 0],
  ["in a pipe logs its passes and removals", null, [], 2],
  [
    "on a terminal with -v 4 logs its steps",
    80,
    [{ name: "logging.verbosity" as const, written: "-v", text: "4" }],
    4,
  ],
])("gc %s", (_what, width, flags, verbosity) => {
  const config = loadConfig({ flags, env: {}, reader: { file: () => null, names: () => null } });
  expect(quietOn(screen(width), config).logging.verbosity).toBe(verbosity);
});
